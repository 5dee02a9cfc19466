"""Cuts recordings at pauses into lines of 3 to 12 seconds, and gives each line its words.

Words come from a text file beside the recording, from its subtitles, or from a recogniser that the
user names. Lines whose words cannot be theirs by their length are set aside and say so. No torch.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from engine.audio.recording_quality import OTHERS, has_others
from engine.errors import InvalidAudio, InvalidSetting, InvalidText, TimbreError
from engine.messages import Message
from engine.types import SAMPLE_RATE, Waveform
from training.voice.job import NOTHING, Spoken
from training.voice.recordings import WINDOW, Flawed, LongRecording, loudness, measured_recording

SHORTEST, LONGEST = 1.0, 14.0  # seconds of a line that is used
CUT = (3.0, 12.0)  # of a line that is cut here
PAUSE = 0.18  # seconds of quiet at which a recording may be cut
MARGIN = 0.08  # of quiet kept at both ends
QUIET = 0.03  # of the loud windows' level
PACES = (3.0, 32.0)  # letters a second that a person can speak
LEAST_SECONDS = 30.0
LEAST_WORDS = 25  # different ones
MOST_TEXT = 1 << 20  # bytes of a transcript
SOUNDS = (".wav", ".flac", ".ogg", ".mp3", ".m4a", ".webm", ".mp4")
TIMES = (".srt", ".vtt")

Recognise = Callable[[Waveform], str]
Tables: TypeAlias = dict[Path, dict[str, str]]  # texts by the name of a recording, by folder


@dataclass(frozen=True, eq=False)
class Segment:
    source: str
    waveform: Waveform
    text: str
    doubtful: Message = NOTHING
    flaw: Message = NOTHING  # of its sound; learned from in spite of it where it is not doubtful

    @property
    def seconds(self) -> float:
        return len(self.waveform) / SAMPLE_RATE


def find_recordings(paths: Sequence[Path]) -> list[Path]:
    """The sound files among these files and in these folders."""
    found: list[Path] = []
    for path in paths:
        inner = sorted(path.iterdir()) if path.is_dir() else [path]
        found += [each for each in inner if each.suffix.lower() in SOUNDS]
    if not found:
        raise InvalidAudio("There is no recording among these. Name sound files, or their folder.")
    for name in (os.fsencode(path.name) for path in found):
        if (plain := name.decode(errors="replace")).encode() != name:  # no job could have it
            raise InvalidAudio("Rename {name}: its name is no UTF-8.", name=plain)
    return found


def segments_of(
    paths: Sequence[Path], recognise: Recognise | None = None, anyway: Collection[str] = ()
) -> Iterator[Segment]:
    """Every line of the recordings, with its words. A recording that nothing can be learned from is
    set aside with its reason; where all are, the first reason is raised. `anyway`: the names of
    those whose sound is no reason."""
    listed, files = _listed(paths), find_recordings(paths)
    faults: list[TimbreError] = []
    for path in files:
        fault: TimbreError | None
        try:
            found, fault = _lines_of(path, listed, recognise, path.name in anyway)
        except (InvalidAudio, InvalidText) as error:
            found = [Segment(path.name, np.zeros(0, np.float32), "", error.message)]
            fault = error
        faults += [fault] if fault else []
        if len(faults) == len(files):
            raise _none_of(faults)
        yield from found


def _lines_of(
    path: Path, listed: Tables, recognise: Recognise | None, anyway: bool
) -> tuple[list[Segment], Flawed | None]:
    """A recording's lines, and why all are left out, if they are: they can be taken later."""
    recording = measured_recording(path)
    fault = recording.fault
    try:
        lines = [judged(each) for each in _told(path, recording, listed, recognise)]
    except InvalidText:
        if fault and not anyway:
            raise fault from None
        raise
    if fault is None:
        return [_of_one(each, anyway) for each in lines], None
    return [_flawed(each, fault.message, anyway) for each in lines], None if anyway else fault


def _flawed(segment: Segment, flaw: Message, anyway: bool) -> Segment:
    why = segment.doubtful or (NOTHING if anyway else flaw)
    return replace(segment, doubtful=why, flaw=flaw)


def _none_of(faults: Sequence[TimbreError]) -> TimbreError:
    if len(faults) == 1:
        return faults[0]
    kind = Flawed if all(isinstance(each, Flawed) for each in faults) else InvalidAudio
    return kind(
        "None of these {count} recordings can be used. The first: {reason}",
        count=len(faults),
        reason=faults[0].message,
    )


def _told(
    path: Path, recording: LongRecording, listed: Tables, recognise: Recognise | None
) -> Iterator[Segment]:
    if times := _companion(path, TIMES):
        yield from _by_times(recording, times)
        return
    text = _in_table(path, listed) or _beside(path)
    if text and recording.seconds <= LONGEST + 1:
        wave = trimmed(recording.waveform)
        yield Segment(recording.name, wave, text)
    elif recognise is not None:
        for wave in cut(recording.waveform):
            yield Segment(recording.name, wave, recognise(wave))
    elif text:
        raise InvalidText(
            "{name} is too long for one text. Add subtitles ({srt}), cut it into sentences, or "
            "name a recogniser (--transcriber).",
            name=path.name,
            srt=f"{path.stem}.srt",
        )
    else:
        raise InvalidText(
            "What is said in {name} is not known. Put its words into {text}, add subtitles "
            "({srt}), or name a recogniser (--transcriber).",
            name=path.name,
            text=f"{path.stem}.txt",
            srt=f"{path.stem}.srt",
        )


def _by_times(recording: LongRecording, times: Path) -> Iterator[Segment]:
    import pysubs2

    try:
        cues = pysubs2.SSAFile.from_string(_text(times), format_=times.suffix[1:].lower())
    except Exception as error:  # of a stranger's file
        raise InvalidText("{name} holds no subtitles that can be read.", name=times.name) from error
    for cue in cues:
        start, stop = (round(at * SAMPLE_RATE / 1000) for at in (cue.start, cue.end))
        wave = trimmed(recording.waveform[max(0, start) : max(0, stop)])
        if len(wave) >= SHORTEST * SAMPLE_RATE:
            yield Segment(recording.name, wave, " ".join(cue.plaintext.split()))


def cut(wave: Waveform) -> Iterator[Waveform]:
    """Pieces of 3 to 12 s, cut in the middle of pauses; without one, at the quietest window."""
    loud = loudness(wave)
    low = loud < QUIET * float(np.quantile(loud, 0.95)) if len(loud) else np.zeros(0, bool)
    shortest, longest = (round(seconds * 100) for seconds in CUT)
    start = 0
    while len(loud) - start > longest:
        window = slice(start + shortest, start + longest)
        at = _pause(low[window])
        at = int(loud[window].argmin()) if at is None else at
        stop = start + shortest + at
        yield from _piece(wave, start, stop)
        start = stop
    yield from _piece(wave, start, len(loud))


def _pause(low: np.ndarray) -> int | None:
    """The middle of the last pause."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], low.astype(int), [0]))))
    runs = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= PAUSE * 100]
    return int(sum(runs[-1]) // 2) if runs else None


def _piece(wave: Waveform, start: int, stop: int) -> Iterator[Waveform]:
    piece = trimmed(wave[start * WINDOW : stop * WINDOW])
    if len(piece) >= SHORTEST * SAMPLE_RATE:
        yield piece


def trimmed(wave: Waveform) -> Waveform:
    """Without the quiet at both ends."""
    loud = loudness(wave)
    if not len(loud):
        return wave
    sounding = np.flatnonzero(loud > QUIET * float(np.quantile(loud, 0.95)))
    if not len(sounding):
        return wave[:0]
    margin = round(MARGIN * 100)
    first, last = max(0, sounding[0] - margin), sounding[-1] + 1 + margin
    return wave[first * WINDOW : last * WINDOW]


def judged(segment: Segment) -> Segment:
    """Set aside by its length and its words alone; the process that trains looks closer."""
    letters = sum(mark.isalnum() for mark in segment.text)
    pace = letters / max(segment.seconds, 0.1)
    wide = sum(ord(mark) > 0x2E80 for mark in segment.text)  # a syllable each, or more
    slow, fast = (limit / 3 if wide > letters / 2 else limit for limit in PACES)
    reason = NOTHING
    if not letters:
        reason = Message("no words")
    elif segment.seconds > LONGEST:
        reason = Message("{seconds:.0f} s are too long for one line", seconds=segment.seconds)
    elif segment.seconds < SHORTEST:
        reason = Message("too short")
    elif not slow <= pace <= fast:
        reason = Message(
            "{letters} letters in {seconds:.1f} s: are these its words?",
            letters=letters,
            seconds=segment.seconds,
        )
    return Segment(segment.source, segment.waveform, segment.text, reason)


def _of_one(segment: Segment, anyway: bool) -> Segment:
    """Set aside where a second person is heard in it. Others are found by the process that trains,
    which hears all lines."""
    if segment.doubtful or not has_others(segment.waveform):
        return segment
    return _flawed(segment, OTHERS, anyway)


def check_enough(segments: Sequence[Spoken]) -> None:
    """Raises InvalidSetting where too little is left to learn from."""
    used = [each for each in segments if not each.doubtful]
    seconds = sum(each.seconds for each in used)
    if seconds < LEAST_SECONDS:
        doubtful = [each.doubtful for each in segments if each.doubtful]
        raise InvalidSetting(
            "There are {seconds:.0f} s of speech with words; at least {least:.0f} are needed, and "
            "ten minutes are good. {doubtful} lines were set aside.{first}",
            seconds=seconds,
            least=LEAST_SECONDS,
            doubtful=len(doubtful),
            first=Message(" The first: {reason}", reason=doubtful[0]) if doubtful else "",
        )
    words = Counter(word for each in used for word in re.findall(r"\w+", each.text.casefold()))
    wide = sum(ord(mark) > 0x2E80 for each in used for mark in set(each.text))
    if len(words) < LEAST_WORDS and wide < LEAST_WORDS:
        raise InvalidSetting(
            "Only {count} different words are said. Read sentences with many different words.",
            count=len(words),
        )


def _beside(path: Path) -> str:
    text = _companion(path, (".txt",))
    return " ".join(_text(text).split()) if text else ""


def _companion(path: Path, endings: Sequence[str]) -> Path | None:
    """The file of the same name beside a recording; recorders write their endings large, too."""
    there = (path.with_suffix(each) for ending in endings for each in (ending, ending.upper()))
    return next(filter(Path.is_file, there), None)


def _listed(paths: Sequence[Path]) -> Tables:
    """The metadata.csv of each folder that has one: NAME|TEXT, a line each."""
    found: Tables = {}
    for path in paths:
        table = path / "metadata.csv"
        if path.is_dir() and table.is_file():
            rows = (line.split("|") for line in _text(table).splitlines())
            found[path] = {row[0].strip(): row[-1].strip() for row in rows if len(row) > 1}
    return found


def _in_table(path: Path, listed: Tables) -> str:
    """By the table of its own folder: others may have the same names. Without one by any."""
    listing = listed.get(path.parent)
    tables = listed.values() if listing is None else [listing]
    found = (table.get(path.stem) or table.get(path.name) for table in tables)
    return next(filter(None, found), "")


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()[: MOST_TEXT + 1]
    except OSError as error:
        raise InvalidText(
            "{name} cannot be read: {reason}.", name=path.name, reason=error.strerror
        ) from error
    if len(data) > MOST_TEXT:
        raise InvalidText("{name} is too long for a transcript.", name=path.name)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidText("{name} is no UTF-8 text.", name=path.name) from error
