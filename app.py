"""The entry and composition root; alone in reading arguments and the environment.

`python app.py`, or `timbre` where it is installed, serves the studio; the commands are in
`studio/cli/commands.py`. Arguments win over the environment, and both over the defaults of
`studio/settings.py`.
"""

from __future__ import annotations

from studio.cli.interrupts import end_at_once  # isort: split

if __name__ == "__main__":
    end_at_once()  # what is imported below takes a moment

import os
import sys
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from studio.cli.commands import Program, command_line, console, context_of, given
from studio.cli.early_process import early_process
from studio.cli.plain_errors import FAULT, explain
from studio.layout import PREFIX
from studio.server.process.gc_freeze import start_lean

if TYPE_CHECKING:
    from studio.cli.app_context import AppContext
    from studio.settings import StudioSettings


@cache
def _environment() -> type[StudioSettings]:
    """The settings, filled from environment variables such as TIMBRE_PORT."""
    from pydantic_settings import BaseSettings, SettingsConfigDict

    from studio.settings import StudioSettings

    class Environment(BaseSettings, StudioSettings):
        model_config = SettingsConfigDict(
            env_prefix=PREFIX,
            env_nested_delimiter="_",
            env_nested_max_split=1,
            env_ignore_empty=True,
        )

    return Environment


def read_settings(**arguments: Any) -> StudioSettings:
    """Settings from arguments and environment. Raises InvalidSetting."""
    from engine import InvalidSetting, checked
    from studio.server import hf_space
    from studio.settings import advice, fixed, names

    unknown = {name for name in os.environ if name.startswith(PREFIX)}
    unknown -= set(names())
    if ignored := unknown & fixed():
        console.line(f"No settings any more, without effect: {', '.join(sorted(ignored))}.")
        for name in ignored:
            del os.environ[name]
        unknown -= ignored
    if unknown:
        problems = "; ".join(f"{name}: {advice(name)}" for name in sorted(unknown))
        raise InvalidSetting(f"{problems}.")
    here = hf_space.defaults(os.environ)
    unset = {name: value for name, value in here.items() if not os.environ.get(_variable(name))}
    return checked(_environment(), **unset | given(**arguments))


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"


def serve_cluster(context: AppContext) -> None:
    from engine import InvalidSetting
    from studio import cluster

    settings = context.settings
    if settings.wyoming:
        raise InvalidSetting("Wyoming is served by one process: leave out --wyoming or --replicas.")
    os.environ.update(cluster.ray_environment(settings.cluster, os.environ))
    cluster.serve(context)


program = Program(os.environ, read_settings, serve_cluster)
cli = command_line(program)


def speech_application(arguments: dict[str, Any]) -> Any:
    """For Ray Serve's configuration (deploy/serve.yaml), whose arguments are settings."""
    return _application("timbre-speech", arguments)


def studio_application(arguments: dict[str, Any]) -> Any:
    """As `speech_application`."""
    return _application("timbre-studio", arguments)


def _application(name: str, arguments: dict[str, Any]) -> Any:
    from studio import cluster

    quiet_libraries()
    return cluster.application(context_of(read_settings(**arguments)), name)


def quiet_libraries() -> None:
    """What libraries read of the environment when they are imported: no telemetry, and threads of
    torch that leave the cores to the CPU's kernels, where by default they spin behind every product
    for milliseconds."""
    for name, value in {
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "GRADIO_ANALYTICS_CACHE_FREQUENCY": "1000000000",  # no summaries
        "GOMP_SPINCOUNT": "10000",  # GNU's OpenMP
        "KMP_BLOCKTIME": "1",  # LLVM's and Intel's, in milliseconds
    }.items():
        os.environ.setdefault(name, value)


def main() -> None:
    """Run the command line; `timbre [--options]` means `serve`."""
    quiet_libraries()
    arguments = sys.argv[1:]
    eager = ("-h", "--help", "--version", "--install-completion", "--show-completion")
    named = arguments and (arguments[0] in eager or not arguments[0].startswith("-"))
    if not named:
        arguments.insert(0, "serve")
    start_lean()
    try:
        with early_process(arguments, os.environ) as booted:
            cli(arguments, obj=replace(program, booted=booted))
    except OSError as error:  # of a help that nobody can read
        console.line(f"error: {explain(error)}")
        sys.exit(FAULT)


if __name__ == "__main__":
    main()
