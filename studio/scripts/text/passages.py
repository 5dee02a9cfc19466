"""Builds a script from passages.

A passage is text by one speaker as an importer found it: a paragraph, a turn of a dialogue, a
heading. Here it is split into lines. This module knows no file formats.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine import InvalidText
from studio.scripts.model import (
    LONGEST_DIRECTION,
    LONGEST_NAME,
    MAX_LINES,
    Line,
    Record,
    Script,
    check_speakers,
)
from studio.scripts.text.cues import at_cues, cues_of
from studio.scripts.text.sentences import BREATH, LONGEST_SHORT, SpokenPiece, spoken_pieces
from studio.scripts.text.tags import at_pauses

MAX_CHARACTERS = 2_000_000
# Soft hyphens and marks of direction: they are for the eye, and stand within and before names.
UNHEARD = dict.fromkeys((0xAD, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
MAX_CHAPTERS = 2_000


@dataclass(frozen=True)
class Passage:
    """A paragraph or turn of one speaker."""

    text: str
    speaker: str = ""
    direction: str = ""
    heading: bool = False  # the title of a new chapter
    silent: bool = False  # a title that is not spoken
    pause: float | None = None  # after it
    left_out: str = ""  # a kind of part that is not read (studio/scripts/books.py)


class NothingToSpeak(InvalidText): ...


class SpeechOptions(Record):
    """How passages are split into lines."""

    language: str = "auto"
    breath: SpokenPiece = BREATH
    speak_headings: bool = True


_NARRATORS = (
    "narrator narration voiceover narratrice erzähler erzählerin narrateur narrador narradora "
    "narratore рассказчик 旁白 叙述者 ナレーター ナレーション 내레이터 나레이터"
)
NARRATORS = frozenset(_NARRATORS.split())

PLAIN = SpeechOptions()


def build(passages: Iterable[Passage], options: SpeechOptions = PLAIN) -> Script:
    """Build a script. Raises InvalidText if it is empty or too long."""
    return build_parts(passages, options)[0]


def build_parts(
    passages: Iterable[Passage], options: SpeechOptions = PLAIN
) -> tuple[Script, list[tuple[Passage, int | None]]]:
    """A script, and what is left out of it, each with the id of the line before it."""
    lines: list[Line] = []
    chapters: list[str] = []
    left_out: list[tuple[Passage, int | None]] = []
    for number, passage in enumerate(_bounded(passages)):
        if passage.left_out:
            left_out.append((passage, lines[-1].id if lines else None))
            continue
        if passage.heading or not chapters:
            chapters.append(clean(passage.text) if passage.heading else "")
        if passage.silent or (passage.heading and not options.speak_headings):
            continue
        place = Line(id=0, text="", chapter=len(chapters) - 1, paragraph=number)
        for line in split(passage, options, place):
            lines.append(line.model_copy(update={"id": len(lines)}))
            _check_lines(len(lines))
    return _finished(lines, chapters), left_out


def split(passage: Passage, options: SpeechOptions, place: Line) -> Iterator[Line]:
    """The lines of a passage, all with the id, chapter and paragraph of `place`."""
    spoken = place.having(
        text="",
        speaker=_who(passage.speaker),
        direction=clean(passage.direction)[:LONGEST_DIRECTION],
        pause=None,
    )
    pieces = at_pauses(clean(passage.text))
    if pieces[-1][1] is None:
        pieces[-1] = (pieces[-1][0], passage.pause)
    for text, pause in pieces:
        parts = [
            part.strip() for piece in at_cues(text.strip()) for part in _spoken(piece, options)
        ]
        for part in parts[:-1]:
            yield spoken.model_copy(update={"text": part})
        last = parts[-1] if parts else ""
        if last or pause is not None:
            yield spoken.model_copy(update={"text": last, "pause": pause})


def _spoken(piece: str, options: SpeechOptions) -> list[str]:
    """What is said in one go each. A cue holds for what follows it, which stays together."""
    breath = options.breath
    if cues_of(piece):
        breath = breath.having(shortest=min(LONGEST_SHORT, breath.longest))
    return spoken_pieces(piece, options.language, breath)


def _who(speaker: str) -> str:
    """A speaker's name; the narrator, by whatever name, has none."""
    name = clean(speaker)[:LONGEST_NAME].strip()
    return "" if name.casefold() in NARRATORS else name


def clean(text: str) -> str:
    """One line of text, without control characters, with single spaces and letters in one piece."""
    text = composed(text)
    other = {ord(char): None for char in set(text) if not _is_text(char)}
    return " ".join(text.translate(other | UNHEARD).split())


def composed(text: str) -> str:
    """The text with each letter and its accents as one character: macOS and PDFs take them apart,
    and no name would be found."""
    return unicodedata.normalize("NFC", text)


def _is_text(char: str) -> bool:
    # Cc control, Cs lone surrogate, Co private, Cn unassigned; Cf holds joiners that scripts need
    return char.isspace() or unicodedata.category(char) not in ("Cc", "Cs", "Co", "Cn")


def _bounded(passages: Iterable[Passage]) -> Iterator[Passage]:
    total = 0
    for passage in passages:
        total += len(passage.text)
        if total > MAX_CHARACTERS:
            raise InvalidText(
                "The script is longer than {most:,} characters. Split it into parts.",
                most=MAX_CHARACTERS,
            )
        if passage.text.strip():
            yield passage


def _check_lines(count: int) -> None:
    if count > MAX_LINES:
        raise InvalidText(
            "The script has more than {most:,} lines. Split it into parts, a few chapters each.",
            most=MAX_LINES,
        )


def _finished(lines: list[Line], chapters: list[str]) -> Script:
    if not any(line.text for line in lines):
        raise NothingToSpeak("There is nothing to speak in this script. Write or paste some text.")
    if len(chapters) > MAX_CHAPTERS:
        raise InvalidText(
            "The script has more than {most:,} chapters. Split it.",
            most=MAX_CHAPTERS,
        )
    return check_speakers(Script(lines=tuple(lines), chapters=tuple(chapters), issued=len(lines)))
