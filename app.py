"""Timbre's door: the composition root, and the only reader of arguments and environment.

`python app.py` serves the studio; `say`, `voices` and `info` work without it.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from engine import (
    Capabilities,
    CheckpointError,
    Engine,
    InvalidSetting,
    InvalidText,
    Library,
    TimbreError,
    checked,
    open_engine,
    read_capabilities,
)
from studio import commands
from studio.choosing import Choices

ROOT = Path(__file__).resolve().parent
MINI = ROOT / "presets" / "mini"
BUILT_IN_VOICES = ROOT / "presets" / "voices"
FAULT, REFUSED, INTERRUPTED = 1, 2, 130

Models = Annotated[
    list[str] | None,
    typer.Option("--model", envvar="TIMBRE_MODEL", help="A folder or a hub id. May be repeated."),
]
Device = Annotated[str, typer.Option(envvar="TIMBRE_DEVICE", help="auto, cpu, cuda, cuda:1 …")]
Dtype = Annotated[
    str, typer.Option(envvar="TIMBRE_DTYPE", help="auto, float32, bfloat16 or float16.")
]
Profile = Annotated[
    str | None,
    typer.Option(envvar="TIMBRE_PROFILE", help="latency, balanced, throughput or cpu."),
]
Data = Annotated[Path, typer.Option(envvar="TIMBRE_DATA", help="Where saved voices are kept.")]
Host = Annotated[str, typer.Option(envvar="TIMBRE_HOST", help="The address to listen on.")]
Port = Annotated[int, typer.Option(envvar="TIMBRE_PORT", min=1, max=65535)]
Keys = Annotated[
    list[str] | None,
    typer.Option("--api-key", envvar="TIMBRE_API_KEYS", help="Who may ask; none: everybody."),
]
Origins = Annotated[
    list[str] | None,
    typer.Option("--allow-origin", envvar="TIMBRE_ORIGINS", help="Sites that may call the API."),
]
KeyRate = Annotated[str, typer.Option(envvar="TIMBRE_KEY_RATE", help="Like 60/minute.")]
AddressRate = Annotated[str, typer.Option(envvar="TIMBRE_ADDRESS_RATE", help="Like 60/minute.")]

cli = typer.Typer(
    help="A voice studio for Qwen3-TTS. Without a command it serves the studio.",
    add_completion=False,
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@dataclass(frozen=True)
class Place:
    """Where a command finds its model and its voices."""

    models: list[str] | None
    device: str
    dtype: str
    profile: str | None
    data: Path

    def engine(self) -> Engine:
        """The models, loaded."""
        console.line(f"Loading {', '.join(self._models())} …")
        return open_engine(self._models(), self.device, self.dtype, self.profile)

    def capabilities(self) -> dict[str, Capabilities]:
        """What the models can do, unloaded."""
        return read_capabilities(self._models())

    def library(self) -> Library:
        return Library(self.data / "voices", BUILT_IN_VOICES)

    def _models(self) -> list[str]:
        return self.models or [_mini()]


class Console:
    """News for a person go to standard error; results go to standard output."""

    def __init__(self) -> None:
        self._open = False  # a line of progress is on the screen

    def line(self, text: str) -> None:
        typer.echo("\r" * self._open + text, err=True)
        self._open = False

    def progress(self, text: str) -> None:
        self._open = sys.stderr.isatty()
        if self._open:
            typer.echo(f"\r{text} ", err=True, nl=False)

    def result(self, text: str) -> None:
        if self._open:
            self.line("")
        typer.echo(text)


console = Console()


@cli.command()
def serve(
    host: Host = "127.0.0.1",
    port: Port = 7860,
    model: Models = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    profile: Profile = None,
    data: Data = ROOT / "data",
    api_key: Keys = None,
    allow_origin: Origins = None,
    key_rate: KeyRate = "",
    address_rate: AddressRate = "",
) -> None:
    """Serve the studio as a web page, and the API beside it (docs/api.md)."""
    place = Place(model, device, dtype, profile, data)
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when gradio is imported
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", "100")
    from studio import page
    from studio.api import ApiSettings, create_api

    with plainly():
        settings = checked(
            ApiSettings,
            keys=tuple(api_key or ()),
            origins=tuple(allow_origin or ()),
            key_rate=key_rate,
            address_rate=address_rate,
        )
        address = page.listen(host, port)
        with place.engine() as engine:
            library = place.library()
            application = create_api(engine, library, settings)
            page.mount_page(application, engine, library)
            console.line(f"Open http://{host}:{port} in a browser. Ctrl-C stops.")
            page.serve(application, address)


@cli.command()
def say(
    text: Annotated[str, typer.Argument(help="The text; - reads it as it comes.")] = "",
    text_option: Annotated[str, typer.Option("--text", help="The same as TEXT.")] = "",
    voice: Annotated[str, typer.Option(help="A speaker or a saved voice.")] = "",
    instruct: Annotated[str, typer.Option(help="How to speak, in words.")] = "",
    reference: Annotated[Path | None, typer.Option(help="A recording to clone.")] = None,
    transcript: Annotated[str, typer.Option(help="What is said in the recording.")] = "",
    blend: Annotated[str, typer.Option(help="Voices and weights: ryan:0.7,vivian:0.3")] = "",
    spherical: Annotated[bool, typer.Option("--spherical", help="Blend along the sphere.")] = False,
    language: Annotated[str, typer.Option()] = "auto",
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed, the same sound.")] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always the likeliest code.")] = False,
    max_frames: Annotated[int | None, typer.Option(min=1, help="80 ms each.")] = None,
    out: Annotated[Path | None, typer.Option(help="A .wav, .flac, .mp3 or .ogg file.")] = None,
    play: Annotated[bool, typer.Option("--play", help="Play it while it is made.")] = False,
    model: Models = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    profile: Profile = None,
    data: Data = ROOT / "data",
) -> None:
    """Speak a text to a file, or to the loudspeaker."""
    place = Place(model, device, dtype, profile, data)
    with plainly():
        written = _text(text, text_option)
        order = commands.Order(
            text="" if written == "-" else written,
            words=read_words() if written == "-" else None,
            voice=voice,
            instruct=instruct,
            reference=commands.record(reference, console) if reference else None,
            transcript=transcript,
            blend=blend,
            spherical=spherical,
            language=language,
            seed=seed,
            greedy=greedy,
            max_frames=max_frames,
            out=out,
            play=play,
        )
        commands.check(order, Choices(place.capabilities(), place.library()))
        with place.engine() as engine:
            take = commands.say(order, engine, place.library(), console)
        named = f"{out}: " if out else ""
        console.result(named + take.summary(open_text=order.words is not None))
        if take.ending == "cancelled":
            raise typer.Exit(INTERRUPTED)


@cli.command()
def voices(
    model: Models = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    profile: Profile = None,
    data: Data = ROOT / "data",
) -> None:
    """List who can speak."""
    place = Place(model, device, dtype, profile, data)
    with plainly():
        for line in commands.list_voices(place.capabilities(), place.library()):
            console.result(line)


@cli.command()
def info(
    model: Models = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    profile: Profile = None,
    data: Data = ROOT / "data",
) -> None:
    """Tell what the checkpoint is and can do."""
    place = Place(model, device, dtype, profile, data)
    with plainly():
        for line in commands.list_abilities(place.capabilities()):
            console.result(line)


@contextmanager
def plainly() -> Iterator[None]:
    """One line for what goes wrong, and an exit code; no traceback unless TIMBRE_DEBUG is set."""
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


def read_words() -> Iterator[str]:
    """Standard input in the pieces it comes in. Unbuffered, so that no piece waits for a line."""
    buffer: Any = sys.stdin.buffer
    source = getattr(buffer, "raw", buffer)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := source.read(4096):
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def _text(argument: str, option: str) -> str:
    if argument and option:
        raise InvalidSetting("Give the text once, either as TEXT or as --text.")
    text = argument or option
    if not text.strip():
        raise InvalidText("There is nothing to say. Give a text, or - to read standard input.")
    return text


def _mini() -> str:
    """The embedded model."""
    if not (MINI / "config.json").is_file():
        raise CheckpointError(
            "There is no embedded model in presets/mini. Name a checkpoint: --model FOLDER, "
            "or --model Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice to download one."
        )
    return str(MINI)


def main() -> None:
    """`python app.py [--options]` means `serve`."""
    arguments = sys.argv[1:]
    asked = arguments and (arguments[0] == "--help" or not arguments[0].startswith("-"))
    cli(arguments if asked else ["serve", *arguments])


if __name__ == "__main__":
    main()
