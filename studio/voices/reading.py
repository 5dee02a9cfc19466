"""Sentences that somebody reads on the page, kept until a training takes them. No torch, no pages.

They lie in the data folder, so neither a reload nor the end of the studio loses what was read; each
browser's apart, so that two people who read at once make no voice of both.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import soundfile

from engine import InvalidAudio, explain_write_errors, write_atomic
from studio.voices.kept_models import FOLDER
from training.voice.prepare import check_consent, written_out
from training.voice.recordings import Flawed, write_wave
from training.voice.segments import segments_of

PLACE: Final = "reading"  # no training is called so
CONSENT: Final = "consent.txt"
ANYWAY: Final = ".anyway"  # an empty file beside a recording that is taken in spite of its sound


@dataclass(frozen=True)
class Reading:
    """A recording and its text each, under a name made of the text: read again, it is replaced."""

    data: Path
    owner: str  # the browser

    @property
    def place(self) -> Path:
        return self.data / FOLDER / PLACE / _digest(self.owner)

    def take(self, recording: Path, text: str, agreed: str, anyway: bool = False) -> None:
        """Keep a sentence, and whose voice it is. Raises RequestError without consent, InvalidAudio
        or InvalidText for what nothing is learned from; Flawed for a sound that can be taken
        `anyway`."""
        check_consent(agreed)
        text, agreed = map(written_out, (text, agreed))
        with TemporaryDirectory() as beside:
            copy = Path(beside) / f"recording{recording.suffix}"
            with explain_write_errors(copy):
                shutil.copy(recording, copy)
                copy.with_suffix(".txt").write_text(text, "utf-8")
            (line,) = segments_of([copy], anyway=[copy.name] if anyway else ())
        if line.doubtful:
            kind = Flawed if line.doubtful == line.flaw else InvalidAudio
            raise kind("Read it once more: {reason}.", reason=line.doubtful)
        with explain_write_errors(self.place / CONSENT):
            self.place.mkdir(parents=True, exist_ok=True)
        write_atomic(self.place / CONSENT, agreed.encode())
        path = self.place / f"read-{_digest(line.text)}.wav"
        write_atomic(path.with_suffix(".txt"), line.text.encode())
        write_wave(path, line.waveform)
        marker = path.with_suffix(ANYWAY)
        marker.touch() if anyway else marker.unlink(missing_ok=True)

    @property
    def agreed(self) -> str:
        """Whose voice was read last, and that they agree."""
        try:
            return (self.place / CONSENT).read_text("utf-8")
        except OSError:
            return ""

    def files(self) -> list[Path]:
        """All recordings and texts, as a training is made of them."""
        sounds = self.place.glob("read-*.wav")
        pairs = [(path, path.with_suffix(".txt")) for path in sounds]
        return sorted(path for pair in pairs if pair[1].exists() for path in pair)

    def anyway(self) -> list[str]:
        """The names of recordings that are taken in spite of their sound."""
        return [path.with_suffix(".wav").name for path in self.place.glob(f"read-*{ANYWAY}")]

    def texts(self) -> set[str]:
        """What was read."""
        return {read[0] for read in self._read()}

    def seconds(self) -> float:
        return sum(read[1] for read in self._read())

    def _read(self) -> Iterator[tuple[str, float]]:
        """Each sentence, and its seconds; none that a training takes meanwhile."""
        for path in self.place.glob("read-*.wav"):
            with suppress(OSError, soundfile.LibsndfileError):
                text = path.with_suffix(".txt").read_text("utf-8")
                yield text, float(soundfile.info(path).duration)

    def taken(self, files: Sequence[Path]) -> None:
        """Delete what a training has taken; what was read meanwhile stays."""
        for path in files:
            path.unlink(missing_ok=True)
            path.with_suffix(ANYWAY).unlink(missing_ok=True)
        if not self.files():
            self.clear()

    def clear(self) -> None:
        """Delete what was read."""
        shutil.rmtree(self.place, ignore_errors=True)


def remove_abandoned(data: Path, seconds: float) -> None:
    """Delete what was read and not gone on with for so many seconds."""
    for place in (data / FOLDER / PLACE).glob("*"):
        if _changed(place) >= time.time() - seconds:
            continue
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
        else:  # until 2026-11-29 all readers had one folder
            place.unlink(missing_ok=True)


def _changed(place: Path) -> float:
    """When a sentence was read last; now, if it is gone meanwhile."""
    try:
        return max(path.lstat().st_mtime for path in (place, *place.glob("*")))
    except FileNotFoundError:
        return time.time()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
