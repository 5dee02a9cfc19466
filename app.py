"""The command line and composition root; alone in reading arguments and the environment.

`python app.py` serves the studio; `say`, `voices`, `info`, `pack`, `check` and `settings` are
commands. Arguments win over the environment, and both over the defaults of `studio/settings.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from engine import InvalidSetting, InvalidText, TimbreError, checked
from studio import cli as commands
from studio.server import hf_space
from studio.settings import PREFIX, StudioSettings, advice, names, table
from studio.voices.voice_catalog import Choices
from studio.watermark import judge

FAULT, REFUSED, INTERRUPTED = 1, 2, 130

Models = Annotated[
    list[str] | None, typer.Option("--model", help="A folder or a hub id. May be repeated.")
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:1, mps, xpu")]
Dtype = Annotated[str | None, typer.Option(help="auto, float32, bfloat16 or float16.")]
Weights = Annotated[str | None, typer.Option(help="On CPUs: auto, full, 8bit or 4bit.")]
Profile = Annotated[str | None, typer.Option(help="latency, balanced, throughput or cpu.")]
Data = Annotated[Path | None, typer.Option(help="Where saved voices are kept.")]
Server = Annotated[str | None, typer.Option(help="Use this Timbre server: http://HOST:PORT")]
Key = Annotated[str | None, typer.Option(help="An API key for that server.")]

cli = typer.Typer(
    help="A voice studio for Qwen3-TTS. Without a command it serves the studio.",
    epilog="Every option can be set in the environment too: python app.py settings",
    add_completion=False,
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
console = commands.Console()


class Environment(BaseSettings, StudioSettings):
    """The settings, filled from environment variables such as TIMBRE_PORT."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="_",
        env_nested_max_split=1,
        env_ignore_empty=True,
    )


@cli.command()
def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535)] = None,
    model: Models = None,
    device: Device = None,
    dtype: Dtype = None,
    weights: Weights = None,
    profile: Profile = None,
    data: Data = None,
    api_key: Annotated[list[str] | None, typer.Option(help="API keys; none: no login.")] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="Other sites whose pages may send requests (CORS).")
    ] = None,
    key_rate: Annotated[str | None, typer.Option(help="Like 60/minute.")] = None,
    address_rate: Annotated[str | None, typer.Option(help="Like 60/minute.")] = None,
    replicas: Annotated[
        int | None, typer.Option(min=0, help="Many engines, served by Ray (docs/cluster.md).")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(help="A Ray cluster to join: auto or HOST:PORT.")
    ] = None,
) -> None:
    """Serve the studio as a web page, and the API beside it (docs/api.md)."""
    with plainly():
        api = _given(
            keys=api_key, origins=allow_origin, key_rate=key_rate, address_rate=address_rate
        )
        settings = read_settings(
            host=host,
            port=port,
            model=model,
            device=device,
            dtype=dtype,
            weights=weights,
            profile=profile,
            data=data,
            api=api,
            cluster=_given(replicas=replicas, address=ray_address),
        )
        _quiet_gradio()
        _calm_torch()
        context = commands.AppContext(settings, console)
        if settings.cluster.replicas:
            serve_cluster(context)
        elif hf_space.is_zero(os.environ):
            commands.serve_lent(context)
        else:
            commands.serve_studio(context)


def serve_cluster(context: commands.AppContext) -> None:
    from studio import cluster

    os.environ.update(cluster.ray_environment(context.settings.cluster, os.environ))
    cluster.serve(context)


def speech_application(arguments: dict[str, Any]) -> Any:
    """For Ray Serve's configuration (deploy/serve.yaml), whose arguments are settings."""
    return _application("timbre-speech", arguments)


def studio_application(arguments: dict[str, Any]) -> Any:
    """As `speech_application`."""
    return _application("timbre-studio", arguments)


def _application(name: str, arguments: dict[str, Any]) -> Any:
    from studio import cluster

    _quiet_gradio()
    _calm_torch()
    return cluster.application(commands.AppContext(read_settings(**arguments), console), name)


def _quiet_gradio() -> None:
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when gradio is imported
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", "1000000000")  # no summaries


def _calm_torch() -> None:
    """Torch's threads spin on their cores behind every product, by default for milliseconds, while
    the CPU's kernels need these cores. Read when torch is imported."""
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # GNU's OpenMP
    os.environ.setdefault("KMP_BLOCKTIME", "1")  # LLVM's and Intel's, in milliseconds


@cli.command()
def say(
    text: Annotated[
        str, typer.Argument(help="The text; - reads standard input as it arrives.")
    ] = "",
    text_option: Annotated[str, typer.Option("--text", help="The same as TEXT.")] = "",
    voice: Annotated[str, typer.Option(help="A speaker or a saved voice.")] = "",
    instruct: Annotated[str, typer.Option(help="How to speak, in words.")] = "",
    reference: Annotated[Path | None, typer.Option(help="A recording to clone.")] = None,
    transcript: Annotated[str, typer.Option(help="What is said in the recording.")] = "",
    consent: Annotated[
        bool, typer.Option("--consent", help="The recording's owner agrees to the copy.")
    ] = False,
    blend: Annotated[str, typer.Option(help="Voices and weights: robert:0.7,clara:0.3")] = "",
    spherical: Annotated[bool, typer.Option("--spherical", help="Blend along the sphere.")] = False,
    language: Annotated[str, typer.Option()] = "auto",
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same seed gives the same audio.")
    ] = None,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="Always take the most likely code.")
    ] = False,
    spell_out: Annotated[
        bool,
        typer.Option(
            "--spell-out/--as-written",
            help="Figures and abbreviations as words, for a model that needs it.",
        ),
    ] = True,
    max_frames: Annotated[int | None, typer.Option(min=1, help="80 ms each.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="A .wav, .flac, .mp3 or .ogg file; - is standard output.")
    ] = None,
    play: Annotated[bool, typer.Option("--play", help="Play while generating.")] = False,
    model: Models = None,
    device: Device = None,
    dtype: Dtype = None,
    weights: Weights = None,
    profile: Profile = None,
    data: Data = None,
    server: Server = None,
    key: Key = None,
) -> None:
    """Speak a text to a file, or to the loudspeaker."""
    with plainly():
        settings = read_settings(
            model=model,
            device=device,
            dtype=dtype,
            weights=weights,
            profile=profile,
            data=data,
            server=server,
            key=key,
        )
        text = _text(text, text_option)
        options = commands.SayOptions(
            text="" if text == "-" else text,
            words=commands.read_words() if text == "-" else None,
            voice=voice,
            instruct=instruct,
            reference=reference,
            transcript=transcript,
            consent=consent,
            blend=blend,
            spherical=spherical,
            language=language,
            seed=seed,
            greedy=greedy,
            spell_out=spell_out,
            max_frames=max_frames,
            out=out,
            play=play,
        )
        _report((say_there if settings.server else say_here)(options, settings), options)


def _report(take: commands.Take, options: commands.SayOptions) -> None:
    """Say what was spoken. What was interrupted has an exit code of its own."""
    named = f"{options.out}: " if options.out else ""
    report = console.line if options.piped else console.result
    report(named + take.summary(open_text=options.words is not None))
    if take.ending == "cancelled":
        raise typer.Exit(INTERRUPTED)


def say_here(options: commands.SayOptions, settings: StudioSettings) -> commands.Take:
    _calm_torch()
    context = commands.AppContext(settings, console)
    commands.check(options, Choices(context.capabilities(), context.library()))
    recording = commands.record(options.reference, console) if options.reference else None
    with context.engine() as engine:
        here = commands.LocalSynthesis(engine, context.library(), console)
        return commands.speak(options, here.open(options, recording), console)


def say_there(options: commands.SayOptions, settings: StudioSettings) -> commands.Take:
    commands.check_options(options)
    return commands.speak(options, _server(settings).open(options), console)


@cli.command()
def voices(model: Models = None, data: Data = None, server: Server = None, key: Key = None) -> None:
    """List the voices."""
    with plainly():
        settings = read_settings(model=model, data=data, server=server, key=key)
        for line in _voices(settings):
            console.result(line)


@cli.command()
def info(model: Models = None) -> None:
    """Show what the checkpoints are and can do."""
    with plainly():
        context = commands.AppContext(read_settings(model=model), console)
        for line in commands.list_abilities(context.capabilities()):
            console.result(line)


@cli.command()
def pack(
    models: Annotated[
        list[str] | None, typer.Argument(help="Folders or hub ids. None: the embedded model.")
    ] = None,
    weights: Weights = None,
    data: Data = None,
) -> None:
    """Prepare models for this processor, so that even the first start on it is short.

    Weights are rounded and laid out, and kernels compiled and checked. Containers do this when
    they are built.
    """
    with plainly():
        _calm_torch()
        settings = read_settings(model=models, weights=weights, data=data)
        commands.AppContext(settings, console).pack()


@cli.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="Audio files of up to a minute.")],
) -> None:
    """Check audio files for the inaudible watermark."""
    with plainly():
        for file in files:
            found = judge(file)
            said = f"{found.said} {found.advice}".strip()
            console.result(f"{file}: {said} (score {found.score:.2f})")


@cli.command(name="settings")
def tell_settings() -> None:
    """List the environment variables."""
    console.result(table())


def read_settings(**arguments: Any) -> StudioSettings:
    """Settings from arguments and environment. Raises InvalidSetting."""
    unknown = {name for name in os.environ if name.startswith(PREFIX)}
    unknown -= set(names())
    if unknown:
        problems = "; ".join(f"{name}: {advice(name)}" for name in sorted(unknown))
        raise InvalidSetting(f"{problems}.")
    here = hf_space.defaults(os.environ)
    told = {name: value for name, value in here.items() if not os.environ.get(_variable(name))}
    try:
        return checked(Environment, **told | _given(**arguments))
    except SettingsError as error:
        example = "TIMBRE_ENGINE_CHUNK_SCHEDULE=[1, 2, 4]"
        raise InvalidSetting(f"This list cannot be read; write it like {example}.") from error


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"


def _given(**arguments: Any) -> dict[str, Any]:
    """Arguments that were given."""
    return {name: value for name, value in arguments.items() if value not in (None, [], {})}


def _server(settings: StudioSettings) -> commands.Server:
    connection = commands.Connection(settings.server, settings.key.get_secret_value())
    return commands.Server(connection, console)


def _voices(settings: StudioSettings) -> Iterator[str]:
    if settings.server:
        return _server(settings).voices()
    context = commands.AppContext(settings, console)
    return commands.list_voices(context.capabilities(), context.library())


@contextmanager
def plainly() -> Iterator[None]:
    """Errors as one line and an exit code; a traceback only with TIMBRE_DEBUG."""
    try:
        yield
    except TimbreError as error:
        console.line(f"error: {error}")
        raise typer.Exit(REFUSED) from None
    except KeyboardInterrupt:
        console.line("Stopped.")
        raise typer.Exit(INTERRUPTED) from None
    except typer.Exit:
        raise
    except Exception as error:
        if os.environ.get("TIMBRE_DEBUG"):
            raise
        console.line(f"error: {type(error).__name__}: {error}. TIMBRE_DEBUG=1 shows where.")
        raise typer.Exit(FAULT) from None


def _text(argument: str, option: str) -> str:
    if argument and option:
        raise InvalidSetting("Give the text once, either as TEXT or as --text.")
    text = argument or option
    if not text.strip():
        raise InvalidText("There is nothing to say. Give a text, or - to read standard input.")
    return text


def main() -> None:
    """Run the command line; `python app.py [--options]` means `serve`. Disables telemetry."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    arguments = sys.argv[1:]
    asked = arguments and (arguments[0] == "--help" or not arguments[0].startswith("-"))
    cli(arguments if asked else ["serve", *arguments])


if __name__ == "__main__":
    main()
