"""What the recordings are like, file by file, before a training begins: HTML, no components."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from engine import Message, TimbreError, Vector, Waveform
from studio.ui.i18n import both
from studio.ui.recordings.checks import LEVELS, picture_of
from training.voice.people import are_two, second_person
from training.voice.recordings import LongRecording, measured_recording
from training.voice.segments import LONGEST, SOUNDS, cut

Embed: TypeAlias = Callable[[Waveform], Vector]

TOO_QUIET: Final = -40.0  # dB of full scale, of what is audible
NOISY: Final = 26.0  # dB between speech and noise
OPEN: Final = 12  # files whose table is shown at once
PIECES: Final = 8  # of a long recording whose speaker is asked for
REMEMBERED: Final = 2_000  # files
HEADS: Final = ("Recording", "", "Seconds", "Level", "Noise below the speech", "Clipped", "")
SUM: Final = "{count} recordings, {minutes:.1f} minutes; {bad} are kept out."
LOUD: Final = "Clipped: lower the input level, or go a little away from the microphone."
SOME_NOISE: Final = "Some noise: a quieter room is better."
STRANGER: Final = Message("sounds like somebody else")
TWO: Final = "Two people speak in these: keep the recordings of one."
KEPT_OUT: Final = "Kept out: {reason}"


@dataclass(frozen=True, eq=False)
class Heard:
    """A recording as it is shown, without its samples."""

    name: str
    seconds: float = 0.0
    cells: str = ""
    picture: str = ""
    advice: str = ""
    fault: Message | None = None
    vectors: tuple[Vector, ...] = ()


class RecordingsTable:
    """Hears each file once: the list is shown anew with every file that is added."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._known: OrderedDict[tuple[str, int, int], Heard] = OrderedDict()

    def told(self, files: Sequence[str] | None) -> str:
        """A table of these files; those that are kept out come first, with the reason."""
        sounds = [path for file in files or () if (path := Path(file)).suffix.lower() in SOUNDS]
        if not sounds:
            return ""
        heard = [self._heard(path) for path in sounds]
        others, two = _strangers(heard)
        faults = [each.fault or (STRANGER if each in others else None) for each in heard]
        rows = sorted(zip(heard, faults, strict=True), key=lambda row: row[1] is None)
        seconds = sum(each.seconds for each, fault in rows if fault is None)
        bad = sum(fault is not None for fault in faults)
        summary = both(SUM, count=len(sounds), minutes=seconds / 60, bad=bad)
        summary += f" <b>⚠️ {both(TWO)}</b>" if two else ""
        few = len(sounds) <= OPEN
        head = "".join(f"<th>{both(each) if each else ''}</th>" for each in HEADS)
        body = "".join(_row(each, fault, few) for each, fault in rows)
        table = f"<table><tr>{head}</tr>{body}</table>"
        shown = " open" if few or bad else ""
        return f"<details{shown}><summary>{summary}</summary>{table}</details>"

    def _heard(self, path: Path) -> Heard:
        try:
            state = path.stat()
        except OSError:
            return self._listened(path)  # which says what is wrong
        key = str(path), state.st_mtime_ns, state.st_size
        found = self._known.pop(key, None) or self._listened(path)
        self._known[key] = found
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found

    def _listened(self, path: Path) -> Heard:
        try:
            found = measured_recording(path)
        except TimbreError as error:
            return Heard(path.name, fault=error.message)
        fault = found.fault.message if found.fault else None
        if fault is None and found.quality.has_others:
            fault = found.quality.flaw
        return Heard(
            found.name,
            found.seconds,
            _cells(found),
            picture_of(found.recording),
            _advice(found),
            fault,
            () if fault else self._vectors(found),
        )

    def _vectors(self, found: LongRecording) -> tuple[Vector, ...]:
        pieces = [found.waveform]
        if found.seconds > LONGEST:
            pieces = list(cut(found.waveform))
            pieces = pieces[:: -(-len(pieces) // PIECES)]
        try:
            return tuple(self._embed(piece) for piece in pieces)
        except TimbreError:  # no model here clones, or it is busy
            return ()


def _strangers(heard: Sequence[Heard]) -> tuple[list[Heard], bool]:
    """The recordings of a second person, and whether nobody can say which of the two is meant."""
    owners = [each for each in heard for _ in each.vectors]
    vectors = [vector for each in heard for vector in each.vectors]
    if not vectors:
        return [], False
    second = second_person(np.stack(vectors))
    theirs = [owners[number] for number in second]
    two = bool(second) and are_two(len(second), len(vectors))
    return [each for each in heard if theirs.count(each) * 2 > len(each.vectors)], two


def _row(heard: Heard, fault: Message | None, few: bool) -> str:
    """`few`: there is room for a picture of each, else for those of which something is told."""
    told = both(heard.advice)
    if fault is not None:
        told = f"⚠️ {both(Message(KEPT_OUT, reason=fault))}"
    name = f"<td>{escape(heard.name)}</td>"
    if not heard.cells:
        return f"<tr>{name}<td colspan=6>{told}</td></tr>"
    picture = heard.picture if few or told else ""
    return f"<tr>{name}<td>{picture}</td>{heard.cells}<td>{told}</td></tr>"


def _cells(found: LongRecording) -> str:
    cells = (
        f"{found.seconds:.1f}",
        f"{found.level:.0f} dB",
        f"{min(99.0, found.quality.noise):.0f} dB",
        f"{found.quality.clipped:.1%}",
    )
    return "".join(f"<td>{cell}</td>" for cell in cells)


def _advice(found: LongRecording) -> str:
    if found.quality.is_clipped:
        return LOUD
    if found.level < TOO_QUIET:
        return LEVELS["quiet"]
    return SOME_NOISE if found.quality.noise < NOISY else ""
