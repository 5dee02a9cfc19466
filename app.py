"""The command line and composition root; alone in reading arguments and the environment.

`python app.py`, or `timbre` where it is installed, serves the studio; `say`, `train`, `voices`,
`info`, `pack`, `bench`, `check` and `settings` are commands. A command imports what it needs when
it is run.
Arguments win over the environment, and both over the defaults of `studio/settings.py`.
"""

from __future__ import annotations

from studio.cli.interrupts import end_at_once, raised  # isort: split

if __name__ == "__main__":
    end_at_once()  # what is imported below takes a moment

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from engine import SOUND_FORMATS
from studio import VERSION
from studio.cli.console import Console
from studio.cli.early_process import early_process
from studio.layout import COMMAND, PREFIX
from studio.server.process.gc_freeze import start_lean

if TYPE_CHECKING:
    from engine import BootedProcess
    from studio.cli.app_context import AppContext
    from studio.cli.remote import Server as RemoteServer
    from studio.cli.say_options import SayOptions
    from studio.cli.speech_output import Take
    from studio.settings import StudioSettings

FAULT, REFUSED, INTERRUPTED = 1, 2, 130
LARGEST_SEED = 2**63 - 1

Models = Annotated[
    list[str] | None, typer.Option("--model", "-m", help="A folder or a hub id. May be repeated.")
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:1, mps, xpu")]
Dtype = Annotated[str | None, typer.Option(help="auto, float32, bfloat16 or float16.")]
Weights = Annotated[str | None, typer.Option(help="On CPUs: auto, full, 8bit or 4bit.")]
Profile = Annotated[str | None, typer.Option(help="latency, throughput or cpu.")]
Data = Annotated[Path | None, typer.Option(help="Where saved voices are kept.")]
Server = Annotated[str | None, typer.Option(help="Use this Timbre server: http://HOST:PORT")]
Key = Annotated[str | None, typer.Option(help="An API key for that server.")]

cli = typer.Typer(
    name="timbre",
    help="A voice studio for Qwen3-TTS. Without a command it serves the studio.",
    epilog=f"Every option can be set in the environment too: {COMMAND} settings",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
console = Console()


def _version(wanted: bool) -> None:
    if wanted:
        console.result(f"timbre {VERSION}")
        raise typer.Exit


@cli.callback()
def timbre(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


@cli.command()
def serve(
    command: typer.Context,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", "-p", min=1, max=65535)] = None,
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
    wyoming: Annotated[
        str | None, typer.Option(help="A port for Home Assistant's Wyoming: 10200 or HOST:10200.")
    ] = None,
    mcp: Annotated[
        bool | None, typer.Option("--mcp", help="Tools for programs that speak MCP, at /mcp.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(min=0, help="Many engines, served by Ray (docs/cluster.md).")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(help="A Ray cluster to join: auto or HOST:PORT.")
    ] = None,
) -> None:
    """Serve the studio as a web page, and the API beside it (docs/api.md)."""
    with plainly():
        from studio.cli.own_process import process_ahead
        from studio.server import hf_space

        api = _given(
            keys=api_key,
            origins=allow_origin,
            key_rate=key_rate,
            address_rate=address_rate,
            mcp=mcp,
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
            wyoming=wyoming,
            api=api,
            cluster=_given(replicas=replicas, address=ray_address),
        )
        _quiet_gradio()
        _calm_torch()
        if settings.cluster.replicas:
            serve_cluster(settings)
        elif hf_space.is_zero(os.environ):
            from studio.cli.serve import serve_lent

            serve_lent(_context(settings))
        else:
            with process_ahead(settings, command.obj) as booted:
                from studio.cli.serve import serve_studio

                serve_studio(_context(settings), booted)


def serve_cluster(settings: StudioSettings) -> None:
    from engine import InvalidSetting
    from studio import cluster

    if settings.wyoming:
        raise InvalidSetting("Wyoming is served by one process: leave out --wyoming or --replicas.")

    os.environ.update(cluster.ray_environment(settings.cluster, os.environ))
    cluster.serve(_context(settings))


def _context(settings: StudioSettings) -> AppContext:
    from studio.cli.app_context import AppContext

    return AppContext(settings, console)


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
    return cluster.application(_context(read_settings(**arguments)), name)


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
    command: typer.Context,
    text: Annotated[
        list[str] | None, typer.Argument(help="The text; - reads standard input as it arrives.")
    ] = None,
    text_option: Annotated[str, typer.Option("--text", help="The same as TEXT.")] = "",
    voice: Annotated[str, typer.Option("--voice", "-v", help="A speaker or a saved voice.")] = "",
    instruct: Annotated[str, typer.Option(help="How to speak, in words.")] = "",
    reference: Annotated[Path | None, typer.Option(help="A recording to clone.")] = None,
    transcript: Annotated[str, typer.Option(help="What is said in the recording.")] = "",
    consent: Annotated[
        bool, typer.Option("--consent", help="The recording's owner agrees to the copy.")
    ] = False,
    blend: Annotated[str, typer.Option(help="Voices and weights: robert:0.7,clara:0.3")] = "",
    spherical: Annotated[bool, typer.Option("--spherical", help="Blend along the sphere.")] = False,
    mood: Annotated[str, typer.Option(help="A mood and its strength: brighter:0.5")] = "",
    language: Annotated[str, typer.Option("--language", "-l")] = "auto",
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=LARGEST_SEED, help="The same seed gives the same audio."),
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
        Path | None,
        typer.Option(
            "--out",
            "--output",
            "-o",
            help=f"A file, by its ending: {', '.join(SOUND_FORMATS)}; - is standard output.",
        ),
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
        _refuse_lone(key, settings)
        if settings.server:
            _refuse_local(
                model=model, device=device, dtype=dtype, weights=weights, profile=profile, data=data
            )
        spoken = _text(" ".join(text or ()), text_option)
        given: dict[str, Any] = dict(
            voice=voice,
            instruct=instruct,
            reference=reference,
            transcript=transcript,
            consent=consent,
            blend=blend,
            spherical=spherical,
            mood=mood,
            language=language,
            seed=seed,
            greedy=greedy,
            spell_out=spell_out,
            max_frames=max_frames,
            out=out,
            play=play,
        )
        if settings.server:
            say_there(_options(spoken, given), settings)
        else:
            say_here(spoken, given, settings, command.obj)


def _options(text: str, given: dict[str, Any]) -> SayOptions:
    from studio.cli.console import read_words
    from studio.cli.say_options import SayOptions

    if text == "-":
        return SayOptions(text="", words=read_words(), **given)
    return SayOptions(text=text, words=None, **given)


def _report(take: Take, options: SayOptions) -> None:
    """Say what was spoken. What was interrupted has an exit code of its own."""
    named = f"{options.out}: " if options.out else ""
    report = console.line if options.piped else console.result
    report(named + take.summary(open_text=options.words is not None))
    if take.ending == "cancelled":
        raise typer.Exit(INTERRUPTED)


def say_here(
    text: str, given: dict[str, Any], settings: StudioSettings, early: BootedProcess | None
) -> None:
    """On an engine whose process, if it has one, starts while the options are looked at."""
    from studio.cli.own_process import process_ahead

    _calm_torch()
    with process_ahead(settings, early) as booted:
        options = _options(text, given)
        _report(_say_here(options, settings, booted), options)


def _say_here(options: SayOptions, settings: StudioSettings, booted: BootedProcess | None) -> Take:
    from studio.cli.local_speech import (
        LocalSynthesis,
        check,
        check_language,
        check_text,
        record,
    )
    from studio.cli.speech_output import check_loudspeaker, speak
    from studio.voices.voice_catalog import Choices

    context = _context(settings)
    able = context.capabilities()
    check(options, Choices(able, context.library()))
    check_language(options.language, able.values())
    check_text(options, able)
    recording = record(options.reference, console) if options.reference else None
    check_loudspeaker(options)
    with context.engine(booted) as engine:
        here = LocalSynthesis(engine, context.library(), console)
        return speak(options, here.open(options, recording), console)


def say_there(options: SayOptions, settings: StudioSettings) -> None:
    from studio.cli.say_options import check_options
    from studio.cli.speech_output import speak

    check_options(options)
    _report(speak(options, _server(settings).open(options), console), options)


@cli.command()
def voices(model: Models = None, data: Data = None, server: Server = None, key: Key = None) -> None:
    """List the voices."""
    with plainly():
        settings = read_settings(model=model, data=data, server=server, key=key)
        _refuse_lone(key, settings)
        if settings.server:
            _refuse_local(model=model, data=data)
        for line in _voices(settings):
            console.result(line)


@cli.command()
def info(model: Models = None, data: Data = None) -> None:
    """Show what the checkpoints are and can do, and where everything is."""
    with plainly():
        from studio.cli.listing import list_abilities, list_places

        settings = read_settings(model=model, data=data)
        for line in list_abilities(_context(settings).capabilities()):
            console.result(line)
        for line in list_places(settings.data, os.environ):
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

        _context(settings).pack()


@cli.command()
def bench(
    card: Annotated[
        bool, typer.Option("--card", help="As lines to send in (docs/results-from-users.md).")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", help="A file for it, as JSON.")
    ] = None,
    voice: Annotated[str, typer.Option("--voice", "-v", help="Who speaks.")] = "",
    reference: Annotated[
        Path | None, typer.Option(help="A Python that has qwen-tts: are its codes the same?")
    ] = None,
    model: Models = None,
    device: Device = None,
    dtype: Dtype = None,
    weights: Weights = None,
    profile: Profile = None,
    data: Data = None,
) -> None:
    """Measure this machine: first audio, speed, streams, memory. Takes a minute or two."""
    with plainly():
        from studio.cli.machine_card import (
            ADVICE,
            check_place,
            main_lines,
            not_measured,
            run,
            save,
        )
        from studio.cli.own_process import process_ahead
        from studio.cli.reference import asked, compared
        from studio.voices.voice_catalog import Choices

        _calm_torch()
        settings = read_settings(
            model=model, device=device, dtype=dtype, weights=weights, profile=profile, data=data
        )
        if out:
            check_place(out)
        with process_ahead(settings) as booted:
            context = _context(settings)
            heard = context.transcribe()
            choices = Choices(context.capabilities(), context.library())
            speaker = choices.read(voice, "") if voice else choices.default("")
            if reference:
                asked(reference, speaker)
            opened = partial(context.engine, booted)
            made = run(opened, context.models()[0], speaker, heard, console)
        if reference:
            full = {"device": "cpu", "dtype": "float32", "weights": "full"}
            exact = _context(read_settings(model=model, data=data, **full))
            made |= compared(reference, context.models()[0], speaker, exact.engine)
        if out:
            save(out, made)
        if card:
            console.line(ADVICE)
        for line in main_lines(made, not_measured(heard, reference), card):
            console.result(line)


@cli.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="Audio files of up to a minute.")],
) -> None:
    """Check audio files for the inaudible watermark."""
    with plainly():
        from studio.watermark import judge

        for file in files:
            found = judge(file)
            said = f"{found.said} {found.advice}".strip()
            console.result(f"{file}: {said} (score {found.score:.2f})")


@cli.command()
def train(
    recordings: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Recordings, or folders of them, with texts beside (docs/own-voice.md)."
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="What the voice is called.")] = "",
    consent: Annotated[
        str, typer.Option(help="Whose voice it is, and that they agree: Ann Lee, my own voice.")
    ] = "",
    language: Annotated[str, typer.Option(help="What is spoken.")] = "auto",
    transcriber: Annotated[
        str, typer.Option(help="A faster-whisper model that writes down what is said.")
    ] = "",
    rows: Annotated[int, typer.Option(min=1, max=64, help="Rows that are learned.")] = 8,
    epochs: Annotated[int, typer.Option(min=1, max=40)] = 8,
    adapter: Annotated[
        bool, typer.Option("--adapter", help="Train a copy of the model instead (LoRA).")
    ] = False,
    resume: Annotated[str, typer.Option(help="The id of a training that was stopped.")] = "",
    listed: Annotated[bool, typer.Option("--list", help="List the trainings and end.")] = False,
    delete: Annotated[
        str, typer.Option(help="The id of a training to delete, with its recordings.")
    ] = "",
    model: Models = None,
    device: Device = None,
    data: Data = None,
) -> None:
    """Train a voice of one's own from recordings."""
    with plainly():
        from engine import InvalidSetting
        from studio.cli.train import TrainOptions, delete_training, trainings_told
        from studio.cli.train import train as run
        from training.voice.prepare import Wish

        settings = read_settings(model=model, device=device, data=data)
        if delete:
            console.line(delete_training(settings.data, delete))
            return
        if listed:
            for each in trainings_told(settings.data):
                console.result(each)
            return
        _calm_torch()
        context = _context(settings)
        if not (name.strip() or resume):
            raise InvalidSetting("Give the voice a name: --name 'My voice'.")
        heard = transcriber or settings.transcriber
        way: Literal["rows", "adapter"] = "adapter" if adapter else "rows"
        wish = Wish(
            name, context.models()[0], consent, language, rows, epochs, settings.device, way
        )
        options = TrainOptions(recordings or [], wish, heard, resume)
        kept = run(options, settings.data, context.library(), console)
        console.result(f"Saved. Speak with it: {COMMAND} say {kept} TEXT")


@cli.command()
def mood(
    verb: Annotated[
        Literal["learn", "record", "list", "export", "import", "delete"],
        typer.Argument(
            help="learn NAME PLAIN MOODY …, record VOICE MOOD FILE, export NAME FILE, …"
        ),
    ],
    names: Annotated[list[str] | None, typer.Argument(help="Sound files, or voices.")] = None,
    words: Annotated[str, typer.Option(help="Other names in texts: gladly happy")] = "",
    consent: Annotated[
        bool, typer.Option("--consent", help="Who speaks in the recordings agrees.")
    ] = False,
    transcript: Annotated[str, typer.Option(help="What is said in the recording.")] = "",
    model: Models = None,
    device: Device = None,
    data: Data = None,
) -> None:
    """Moods for voices (docs/moods.md)."""
    with plainly():
        from studio.cli.moods import MoodCommand, run

        _calm_torch()
        context = _context(read_settings(model=model, device=device, data=data))
        command = MoodCommand(verb, names or (), words.split(), consent, transcript)
        able, library = context.capabilities(), context.library()
        for line in run(command, library, able, context.engine, console):
            console.result(line)


@cli.command(name="settings")
def tell_settings() -> None:
    """List the environment variables."""
    with plainly():
        from studio.settings import table

        console.result(table())


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
    told = {name: value for name, value in here.items() if not os.environ.get(_variable(name))}
    return checked(_environment(), **told | _given(**arguments))


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"


def _given(**arguments: Any) -> dict[str, Any]:
    """Arguments that were given."""
    return {name: value for name, value in arguments.items() if value not in (None, [], {})}


def _refuse_local(**options: object) -> None:
    """Options of a model that is loaded here, where a server speaks."""
    from engine import InvalidSetting

    if given := [f"--{name}" for name, value in options.items() if value]:
        raise InvalidSetting(
            f"{' and '.join(given)} cannot go with --server: the server has its own. Leave one out."
        )


def _refuse_lone(key: str | None, settings: StudioSettings) -> None:
    from engine import InvalidSetting

    if key and not settings.server:
        raise InvalidSetting("--key is for a server. Name it with --server.")


def _server(settings: StudioSettings) -> RemoteServer:
    from studio.cli.connection import Connection
    from studio.cli.remote import Server

    return Server(Connection(settings.server, settings.key.get_secret_value()), console)


def _voices(settings: StudioSettings) -> Iterator[str]:
    if settings.server:
        return _server(settings).voices()
    from studio.cli.listing import list_voices

    context = _context(settings)
    return list_voices(context.capabilities(), context.library())


@contextmanager
def plainly() -> Iterator[None]:
    """Errors as one line and an exit code; a traceback only with TIMBRE_DEBUG."""
    try:
        with raised():
            yield
    except KeyboardInterrupt as stopped:
        console.line(str(stopped) or "Stopped.")
        raise typer.Exit(INTERRUPTED) from None
    except typer.Exit:
        raise
    except BrokenPipeError:  # as in `voices | head -1`: who reads has what he wanted
        console.discard()
        raise typer.Exit(0) from None
    except Exception as error:
        from engine import TimbreError

        if isinstance(error, TimbreError):
            console.line(f"error: {error}")
            raise typer.Exit(REFUSED) from None
        if os.environ.get("TIMBRE_DEBUG"):
            raise
        console.line(f"error: {_explain(error)}")
        raise typer.Exit(FAULT) from None


def _explain(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.strerror}. Nothing more can be written there."
    return f"{type(error).__name__}: {error}. TIMBRE_DEBUG=1 shows where."


def _text(argument: str, option: str) -> str:
    from engine import InvalidSetting, InvalidText

    if argument and option:
        raise InvalidSetting("Give the text once, either as TEXT or as --text.")
    text = argument or option
    if not text.strip():
        raise InvalidText("There is nothing to say. Give a text, or - to read standard input.")
    return text


def main() -> None:
    """Run the command line; `timbre [--options]` means `serve`. Disables telemetry."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    arguments = sys.argv[1:]
    own = ("-h", "--help", "--version", "--install-completion", "--show-completion")
    asked = arguments and (arguments[0] in own or not arguments[0].startswith("-"))
    if not asked:
        arguments.insert(0, "serve")
    _calm_torch()
    start_lean()
    try:
        with early_process(arguments, os.environ) as booted:
            cli(arguments, obj=booted)
    except OSError as error:  # of a help that nobody can read
        console.line(f"error: {_explain(error)}")
        sys.exit(FAULT)


if __name__ == "__main__":
    main()
