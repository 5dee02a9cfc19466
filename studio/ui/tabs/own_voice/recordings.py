"""What the recordings are like, file by file, before a training begins: HTML, no components."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from engine import Message, TimbreError, Vector, Waveform
from studio.ui.i18n import both
from studio.ui.recordings.checks import LEVELS, picture_of
from training.voice.recordings import LongRecording, measured_recording
from training.voice.second_person import are_two, second_person
from training.voice.segments import LONGEST, SOUNDS, cut

Embed: TypeAlias = Callable[[Waveform], Vector]

TOO_QUIET: Final = -40.0  # dB of full scale, of what is audible
NOISY: Final = 26.0  # dB between speech and noise
OPEN: Final = 12  # files whose table is shown at once
PIECES: Final = 8  # of a long recording whose speaker is asked for
REMEMBERED: Final = 2_000  # files
SUM: Final = "{count} recordings, {minutes:.1f} minutes; kept out: {bad}."
NUMBERS: Final = (
    "{seconds:.1f} s, level {level:.0f} dB, noise {noise:.0f} dB below the speech, "
    "{clipped:.1%} clipped"
)
LOUD: Final = "Clipped: lower the input level, or go a little away from the microphone."
SOME_NOISE: Final = "Some noise: a quieter room is better."
STRANGER: Final = Message("sounds like somebody else")
TWO: Final = "Two people speak in these: keep the recordings of one."
KEPT_OUT: Final = "Kept out: {reason}"
TAKEN: Final = "Taken anyway: {reason}"
LISTENING: Final = "Listening to the recordings …"


@dataclass(frozen=True, eq=False)
class Heard:
    """A recording as it is shown, without its samples."""

    name: str
    seconds: float = 0.0
    numbers: str = ""
    picture: str = ""
    advice: str = ""
    fault: Message | None = None
    readable: bool = True  # then nothing but its sound can keep it out
    vectors: tuple[Vector, ...] = ()


class Told(NamedTuple):
    """What is shown of all files, and the names of those that can be taken anyway."""

    html: str
    takeable: tuple[str, ...] = ()


class RecordingsTable:
    """Hears each file once: the list is shown anew with every file that is added."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._known: OrderedDict[tuple[str, int, int], Heard] = OrderedDict()

    def told(self, files: Sequence[str] | None, anyway: Collection[str] = ()) -> Told:
        """A list of these files; those that a check speaks against come first, with the reason.
        `anyway`: the names of those that are taken in spite of it."""
        sounds = sounds_of(files)
        if not sounds:
            return Told("")
        heard = [self._heard(path) for path in sounds]
        others, two = _strangers(heard)
        faults = [each.fault or (STRANGER if each in others else None) for each in heard]
        rows = sorted(zip(heard, faults, strict=True), key=lambda row: row[1] is None)
        takeable = tuple(each.name for each, fault in rows if fault and each.readable)
        taken = {*takeable} & {*anyway}
        used = [each for each, fault in rows if fault is None or each.name in taken]
        seconds, bad = sum(each.seconds for each in used), len(heard) - len(used)
        summary = both(SUM, count=len(sounds), minutes=seconds / 60, bad=bad)
        summary += f" <b>⚠️ {both(TWO)}</b>" if two else ""
        few = len(sounds) <= OPEN
        body = "".join(_row(each, fault, few, each.name in taken) for each, fault in rows)
        shown = " open" if few or bad or taken else ""
        html = f"<details{shown}><summary>{summary}</summary><ul>{body}</ul></details>"
        return Told(html, takeable)

    def _heard(self, path: Path) -> Heard:
        try:
            state = path.stat()
        except OSError:
            return self._listened(path)  # which says what is wrong
        key = str(path), state.st_mtime_ns, state.st_size
        found = self._known.pop(key, None) or self._listened(path)
        if found.fault or found.vectors:  # a model that is busy now may hear who speaks later
            self._known[key] = found
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found

    def _listened(self, path: Path) -> Heard:
        try:
            found = measured_recording(path)
        except TimbreError as error:
            return Heard(path.name, fault=error.message, readable=False)
        fault = found.fault.message if found.fault else None
        if fault is None and found.quality.has_others:
            fault = found.quality.flaw
        return Heard(
            found.name,
            found.seconds,
            _numbers(found),
            picture_of(found.recording),
            _advice(found),
            fault,
            vectors=() if fault else self._vectors(found),
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


def sounds_of(files: Sequence[str] | None) -> list[Path]:
    """Those of the files that are recordings."""
    return [path for file in files or () if (path := Path(file)).suffix.lower() in SOUNDS]


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


def _row(heard: Heard, fault: Message | None, few: bool, taken: bool) -> str:
    """`few`: there is room for a picture of each, else for those of which something is told."""
    told = f"<p>{both(heard.advice)}</p>" if heard.advice else ""
    if fault is not None:
        told = f"<p>⚠️ {both(Message(TAKEN if taken else KEPT_OUT, reason=fault))}</p>"
    picture = heard.picture if few or told else ""
    numbers = f"<small>{heard.numbers}</small>" if heard.numbers else ""
    return f"<li>{picture}<div><b>{escape(heard.name)}</b> {numbers}{told}</div></li>"


def _numbers(found: LongRecording) -> str:
    return both(
        NUMBERS,
        seconds=found.seconds,
        level=found.level,
        noise=min(99.0, max(0.0, found.quality.noise)),
        clipped=found.quality.clipped,
    )


def _advice(found: LongRecording) -> str:
    if found.quality.is_clipped:
        return LOUD
    if found.level < TOO_QUIET:
        return LEVELS["quiet"]
    return SOME_NOISE if found.quality.noise < NOISY else ""
