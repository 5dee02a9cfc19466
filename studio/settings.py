"""Every setting of an operator, as data: what `app.py` fills from arguments and environment.

A setting's words are the comment on its line; `table()` tells them all, and docs/settings.md is
that table. Every default is written once, here or in the group it belongs to. Reads no
environment and no arguments.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_origin

from pydantic import BaseModel, Field, SecretStr

from engine import EngineSettings, Settings
from studio.api_settings import ApiSettings
from studio.listed import Names

HOUSE = Path(__file__).resolve().parents[1]
PREFIX = "TIMBRE_"


class StudioSettings(Settings):
    """Where the model and the data are, who is served, and the groups of the rest."""

    # The model.
    model: Names = ()  # folders or hub ids; none: the embedded model
    device: str = "auto"  # auto, cpu, cuda, cuda:1 …
    dtype: str = "auto"  # auto, float32, bfloat16 or float16
    profile: str | None = None  # latency, balanced, throughput or cpu; unset: by the device

    # The place.
    data: Path = HOUSE / "data"  # the folder of saved voices and takes
    host: str = "127.0.0.1"  # the address to listen on; 0.0.0.0 is every one
    port: int = Field(7860, ge=1, le=65535)  # of that address
    hosts: Names = ()  # names this server answers to, besides addresses and its own; * is any
    page: bool = True  # false: the API alone, without Gradio
    guests: bool = False  # strangers come: each has own takes and voices, and nobody loads models
    guest_days: float = Field(7.0, gt=0)  # then what a stranger has made is removed
    guest_requests: int = Field(8, ge=1)  # of one stranger in the engine at a time
    frames: Names = ()  # sites that may show the page in a frame, like https://example.org
    grace: float = Field(20.0, ge=0)  # seconds for what is being spoken when SIGTERM comes
    watermark: bool = False  # mark all sound inaudibly; needs requirements-watermark.txt
    debug: bool = False  # a fault of ours shows where it happened

    # The command line as a client.
    server: str = ""  # `say` and `voices` ask this address instead of loading a model
    key: SecretStr = SecretStr("")  # an API key for that server

    # Groups.
    api: ApiSettings = ApiSettings()
    engine: EngineSettings = EngineSettings()

    def engine_changes(self) -> dict[str, Any]:
        """What was set of the engine's settings: the profile decides the rest."""
        return self.engine.model_dump(exclude_unset=True)


def names(kind: type[BaseModel] = StudioSettings, prefix: str = PREFIX) -> Iterator[str]:
    """The environment's name of every setting."""
    for row in _rows(kind, prefix):
        yield row[0]


def table() -> str:
    """All settings as Markdown: names, defaults, meaning."""
    lines = ["| variable | default | |", "|---|---|---|"]
    lines += (f"| `{name}` | {default} | {words} |" for name, default, words in _rows())
    return "\n".join(lines)


def _rows(
    kind: type[BaseModel] = StudioSettings, prefix: str = PREFIX
) -> Iterator[tuple[str, str, str]]:
    words = _words(kind)
    for name, field in kind.model_fields.items():
        group = field.annotation
        if inspect.isclass(group) and not get_origin(group) and issubclass(group, BaseModel):
            yield from _rows(group, f"{prefix}{name.upper()}_")
        else:
            default = _default(field.get_default(call_default_factory=True))
            yield f"{prefix}{name.upper()}", default, words.get(name, "")


def _words(kind: type[BaseModel]) -> dict[str, str]:
    """The comments on the lines of a group's fields."""
    found = re.findall(r"^    (\w+): .*  # (.*)$", inspect.getsource(kind), re.M)
    return {name: words.replace("|", "\\|") for name, words in found}


def _default(value: Any) -> str:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, Path):
        value = value.relative_to(HOUSE) if value.is_relative_to(HOUSE) else value
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, tuple):
        value = list(value) if value else ""
    return "" if value in ("", None) else f"`{value}`"
