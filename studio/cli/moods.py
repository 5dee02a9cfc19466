"""`mood`: learn, list, export, import and delete moods, and recordings of voices in moods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from engine import (
    Capabilities,
    InvalidSetting,
    Library,
    SavedMood,
    SpeechEngine,
    UnknownVoice,
    load_reference_audio,
    write_atomic,
)
from studio.cli.console import Reporter
from studio.voices.moods import Moods, learn
from studio.voices.voice_catalog import Choices

LARGEST: Final = 1 << 20  # bytes of a file


@dataclass(frozen=True)
class MoodCommand:
    """`names`: of `learn` a name and then pairs, plain and moody; of `export` a mood and a file."""

    verb: str
    names: Sequence[str] = ()
    words: Sequence[str] = field(default_factory=tuple)
    consent: bool = False
    transcript: str = ""  # of a recording that is kept


def run(
    command: MoodCommand,
    library: Library,
    capabilities: Mapping[str, Capabilities],
    open_: Callable[[], SpeechEngine],
    tell: Reporter,
) -> list[str]:
    """Do it; returns lines for the user."""
    names = command.names
    if command.verb == "list":
        return [_line(each) for each in Moods(capabilities, library).list()]
    if command.verb == "learn":
        if len(names) < 3 or len(names) % 2 == 0:
            raise InvalidSetting(
                "Give a name, then pairs: mood learn glad PLAIN GLAD [PLAIN GLAD …]; each is a "
                "sound file or a voice's name."
            )
        sources = [Path(each) if Path(each).is_file() else each for each in names[1:]]
        pairs = list(zip(sources[::2], sources[1::2], strict=True))
        with open_() as engine:
            find = Choices(engine.capabilities(), library).read
            kept = learn(engine, library, names[0], pairs, find, command.words, command.consent)
        return [_line(kept)]
    if command.verb == "record":
        if len(names) != 3:
            raise InvalidSetting("Give a voice, a mood and a recording: mood record anna glad FILE")
        with open_() as engine:
            return [_record(command, engine, library)]
    if command.verb == "export":
        name, target = _two(names)
        write_atomic(target, library.moods.export(_found(library, name).id))
        return [f"{target}"]
    if command.verb == "import":
        return [_line(library.moods.import_file(_read(Path(each)))) for each in names]
    gone = [_found(library, each) for each in names]
    for each in gone:
        library.moods.delete(each.id)
    return [f"{each.name} is in the trash." for each in gone]


def _record(command: MoodCommand, engine: SpeechEngine, library: Library) -> str:
    """Keep another recording of a saved voice's person, in a mood."""
    voice, mood, source = command.names
    if not command.consent:
        raise InvalidSetting(
            "Only keep a recording whose owner has agreed to it, and say so with --consent."
        )
    if (saved := library.find(voice)) is None:
        raise UnknownVoice("No saved voice is called '{name}'.", name=voice[:80])
    recording = load_reference_audio(Path(source))
    words = recording.continued(command.transcript.strip())
    clone = engine.clone(recording.waveform, words)
    kept = library.keep_reference(saved.id, mood, clone)
    return f"{kept.name}: {', '.join(each.mood for each in kept.card.references)}"


def _line(mood: SavedMood) -> str:
    card = mood.card.mood
    learned = ""
    if card and card.pairs > 1:
        learned = f"{card.pairs} pairs, agreement {card.agreement:.2f}, spread {card.spread:.2f}"
    elif card:
        learned = "1 pair"
    space = mood.mood.space or "any model"
    return "\t".join((mood.name, space, learned, " ".join(mood.mood.words))).rstrip()


def _found(library: Library, name: str) -> SavedMood:
    if (found := library.moods.find(name)) is None:
        raise UnknownVoice("No mood is called '{name}'.", name=name[:80])
    return found


def _two(names: Sequence[str]) -> tuple[str, Path]:
    if len(names) != 2:
        raise InvalidSetting("Give a mood and a file: mood export glad glad.safetensors")
    return names[0], Path(names[1])


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidSetting("There is no file {path} that can be read.", path=path) from error
