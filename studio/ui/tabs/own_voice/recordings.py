"""What the recordings are like, file by file, before a training begins: HTML, no components."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

from engine import TimbreError
from studio.ui.i18n import both
from studio.ui.recordings.checks import LEVELS
from training.voice.recordings import LongRecording, read_recording
from training.voice.segments import SOUNDS

TOO_QUIET: Final = -40.0  # dB of full scale, of what is audible
NOISY: Final = 26.0  # dB between speech and its pauses
CLIPPED: Final = 0.001  # share of the samples
OPEN: Final = 12  # files whose table is shown at once
HEADS: Final = ("Recording", "Seconds", "Level", "Noise below the speech", "Clipped", "")
SUM: Final = "{count} recordings, {minutes:.1f} minutes; {bad} cannot be used."
LOUD: Final = "Clipped: lower the input level, or go a little away from the microphone."
SOME_NOISE: Final = "Some noise: a quieter room is better."


def told(files: Sequence[str] | None) -> str:
    """A table of these files; those that cannot be used come first, with the reason."""
    names = [Path(file) for file in files or ()]
    sounds = [name for name in names if name.suffix.lower() in SOUNDS]
    good, bad, seconds, refused = "", "", 0.0, 0
    for path in sounds:
        try:
            recording = read_recording(path)
        except TimbreError as error:
            why = f"⚠️ {both(error.message)}"
            bad += f"<tr><td>{escape(path.name)}</td><td colspan=5>{why}</td></tr>"
            refused += 1
            continue
        seconds += recording.seconds
        good += _row(recording)
    if not sounds:
        return ""
    head = "".join(f"<th>{both(each) if each else ''}</th>" for each in HEADS)
    summary = both(SUM, count=len(sounds), minutes=seconds / 60, bad=refused)
    shown = " open" if len(sounds) <= OPEN or refused else ""
    table = f"<table><tr>{head}</tr>{bad}{good}</table>"
    return f"<details{shown}><summary>{summary}</summary>{table}</details>"


def _row(recording: LongRecording) -> str:
    cells = (
        escape(recording.name),
        f"{recording.seconds:.1f}",
        f"{recording.level:.0f} dB",
        f"{recording.contrast:.0f} dB",
        f"{recording.clipped:.1%}",
        both(_advice(recording)),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _advice(recording: LongRecording) -> str:
    if recording.clipped > CLIPPED:
        return LOUD
    if recording.level < TOO_QUIET:
        return LEVELS["quiet"]
    return SOME_NOISE if recording.contrast < NOISY else ""
