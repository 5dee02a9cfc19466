"""The commands: their options, and what each one runs.

A command imports what it needs when it is run, so that `--help` needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from engine import SOUND_FORMATS
from studio import VERSION
from studio.cli.console import Console
from studio.cli.plain_errors import INTERRUPTED, REFUSED, plainly
from studio.layout import COMMAND

if TYPE_CHECKING:
    from engine import BootedProcess
    from studio.cli.app_context import AppContext
    from studio.settings import StudioSettings

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

console = Console()


@dataclass(frozen=True)
class Program:
    """What `app.py` passes in; `booted`: a process that waits for an engine."""

    environment: MutableMapping[str, str]
    read_settings: Callable[..., StudioSettings]  # from options, and the environment
    serve_cluster: Callable[[AppContext], None]
    booted: BootedProcess | None = None


def command_line(program: Program) -> typer.Typer:
    cli = typer.Typer(
        name="timbre",
        help="A voice studio for Qwen3-TTS. Without a command it serves the studio.",
        epilog=f"Every option can be set in the environment too: {COMMAND} settings",
        context_settings={"help_option_names": ["-h", "--help"], "obj": program},
        no_args_is_help=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    cli.callback()(timbre)
    for command in (serve, say, voices, info, pack, bench, check, train, mood, settings):
        cli.command()(plainly(command, console, program.environment))
    return cli


def context_of(settings: StudioSettings) -> AppContext:
    from studio.cli.app_context import AppContext

    return AppContext(settings, console)


def given(**arguments: Any) -> dict[str, Any]:
    """Arguments that were given."""
    return {name: value for name, value in arguments.items() if value not in (None, [], {})}


def _version(wanted: bool) -> None:
    if wanted:
        console.result(f"timbre {VERSION}")
        raise typer.Exit


def timbre(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


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
    from studio.cli.own_process import process_ahead
    from studio.server import hf_space

    program: Program = command.obj
    api = given(
        keys=api_key,
        origins=allow_origin,
        key_rate=key_rate,
        address_rate=address_rate,
        mcp=mcp,
    )
    settings = program.read_settings(
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
        cluster=given(replicas=replicas, address=ray_address),
    )
    if settings.cluster.replicas:
        program.serve_cluster(context_of(settings))
    elif hf_space.is_zero(program.environment):
        from studio.cli.serve import serve_lent

        serve_lent(context_of(settings))
    else:
        with process_ahead(settings, program.booted) as booted:
            from studio.cli.serve import serve_studio

            serve_studio(context_of(settings), booted)


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
    early_start: Annotated[
        Literal["off", "pauses", "pieces"] | None,
        typer.Option(
            help="Where speech is made slower than it plays: wait, then play without a pause; or "
            "play pieces that end at pauses; or each piece as soon as it is made.",
        ),
    ] = None,
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
    from studio.cli.own_process import process_ahead

    program: Program = command.obj
    local = dict(
        model=model, device=device, dtype=dtype, weights=weights, profile=profile, data=data
    )
    settings = program.read_settings(**local, server=server, key=key)
    _check_server(settings, key, **local)
    chosen: dict[str, Any] = dict(
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
        early_start=early_start,
    )
    with nullcontext() if settings.server else process_ahead(settings, program.booted) as booted:
        from studio.cli.say_options import read_options

        options = read_options(" ".join(text or ()), text_option, **chosen)
        if settings.server:
            from studio.cli.remote import say_there

            take = say_there(options, context_of(settings))
        else:
            from studio.cli.local_speech import say_here

            take = say_here(options, context_of(settings), booted)
        named = f"{options.out}: " if options.out else ""
        report = console.line if options.piped else console.result
        report(named + take.summary(open_text=options.words is not None))
    if take.ending == "cancelled":
        raise typer.Exit(INTERRUPTED)
    if options.words and options.words.cut:
        raise typer.Exit(REFUSED)


def voices(
    command: typer.Context,
    model: Models = None,
    data: Data = None,
    server: Server = None,
    key: Key = None,
) -> None:
    """List the voices."""
    program: Program = command.obj
    context = context_of(program.read_settings(model=model, data=data, server=server, key=key))
    _check_server(context.settings, key, model=model, data=data)
    if context.settings.server:
        from studio.cli.remote import server_of

        lines = server_of(context).voices()
    else:
        from studio.cli.listing import list_voices

        lines = list_voices(context.capabilities(), context.library())
    for line in lines:
        console.result(line)


def info(command: typer.Context, model: Models = None, data: Data = None) -> None:
    """Show what the checkpoints are and can do, and where everything is."""
    from studio.cli.listing import list_abilities, list_places

    program: Program = command.obj
    context = context_of(program.read_settings(model=model, data=data))
    for line in list_abilities(context.capabilities()):
        console.result(line)
    for line in list_places(context.settings.data, program.environment):
        console.result(line)


def pack(
    command: typer.Context,
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
    program: Program = command.obj
    context_of(program.read_settings(model=models, weights=weights, data=data)).pack()


def bench(
    command: typer.Context,
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
    from studio.cli.machine_card import ADVICE, bench_machine

    program: Program = command.obj
    context = context_of(
        program.read_settings(
            model=model, device=device, dtype=dtype, weights=weights, profile=profile, data=data
        )
    )
    lines = bench_machine(context, voice, reference, out, card)
    if card:
        console.line(ADVICE)
    for line in lines:
        console.result(line)


def check(
    files: Annotated[list[Path], typer.Argument(help="Audio files of up to a minute.")],
) -> None:
    """Check audio files for the inaudible watermark."""
    from studio.watermark import judge

    for file in files:
        found = judge(file)
        verdict = f"{found.said} {found.advice}".strip()
        console.result(f"{file}: {verdict} (score {found.score:.2f})")


def train(
    command: typer.Context,
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
    anyway: Annotated[
        list[str] | None,
        typer.Option(help="A recording's name: learn from it though its sound keeps it out."),
    ] = None,
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
    from engine import InvalidSetting
    from studio.cli.train import TrainOptions, delete_training, list_trainings
    from studio.cli.train import train as run
    from training.voice.prepare import Wish

    program: Program = command.obj
    context = context_of(program.read_settings(model=model, device=device, data=data))
    settings = context.settings
    if delete:
        console.line(delete_training(settings.data, delete, context.cache))
        return
    if listed:
        for each in list_trainings(settings.data):
            console.result(each)
        return
    if not (name.strip() or resume):
        raise InvalidSetting("Give the voice a name: --name 'My voice'.")
    heard = transcriber or settings.transcriber
    way: Literal["rows", "adapter"] = "adapter" if adapter else "rows"
    wish = Wish(name, context.models()[0], consent, language, rows, epochs, settings.device, way)
    options = TrainOptions(recordings or [], wish, heard, resume, anyway or [])
    kept = run(options, settings.data, context.library(), context.capabilities(), console)
    console.result(f"Saved. Speak with it: {COMMAND} say {kept} TEXT")


def mood(
    command: typer.Context,
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
    from studio.cli.moods import MoodCommand, run

    program: Program = command.obj
    context = context_of(program.read_settings(model=model, device=device, data=data))
    wanted = MoodCommand(verb, names or (), words.split(), consent, transcript)
    able, library = context.capabilities(), context.library()
    for line in run(wanted, library, able, context.engine, console):
        console.result(line)


def settings() -> None:
    """List the environment variables."""
    from studio.settings import table

    console.result(table())


def _check_server(settings: StudioSettings, key: str | None, **local: object) -> None:
    """Refuse options of a model that is loaded here where a server speaks, and a key without one.

    Raises InvalidSetting.
    """
    from engine import InvalidSetting

    if not settings.server:
        if key:
            raise InvalidSetting("--key is for a server. Name it with --server.")
    elif options := [f"--{name}" for name, value in local.items() if value]:
        raise InvalidSetting(
            f"{' and '.join(options)} cannot go with --server: the server has its own. "
            "Leave one out."
        )
