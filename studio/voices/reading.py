"""Sentences that somebody reads on the page, kept until a training takes them. No torch, no pages.

They lie in the data folder, so neither a reload nor the end of the studio loses what was read.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import soundfile

from engine import InvalidAudio, write_atomic
from studio.voices.voice_training import FOLDER
from training.voice.recordings import write_wave
from training.voice.segments import segments_of

PLACE: Final = "reading"  # no training is called so


@dataclass(frozen=True)
class Reading:
    """A recording and its text each, under a name made of the text: read again, it is replaced."""

    data: Path

    @property
    def place(self) -> Path:
        return self.data / FOLDER / PLACE

    def take(self, recording: Path, text: str) -> None:
        """Keep a sentence. Raises InvalidAudio or InvalidText for what nothing is learned from."""
        with TemporaryDirectory() as beside:
            copy = Path(beside) / f"recording{recording.suffix}"
            shutil.copy(recording, copy)
            copy.with_suffix(".txt").write_text(text, "utf-8")
            (line,) = segments_of([copy])
        if line.doubtful:
            raise InvalidAudio("Read it once more: {reason}.", reason=line.doubtful)
        self.place.mkdir(parents=True, exist_ok=True)
        path = self.place / f"read-{hashlib.sha256(line.text.encode()).hexdigest()[:12]}.wav"
        write_atomic(path.with_suffix(".txt"), line.text.encode())
        write_wave(path, line.waveform)

    def files(self) -> list[Path]:
        """All recordings and texts, as a training is made of them."""
        return sorted(self.place.glob("read-*"))

    def texts(self) -> set[str]:
        """What was read."""
        sounds = self.place.glob("read-*.wav")
        return {path.with_suffix(".txt").read_text("utf-8") for path in sounds}

    def seconds(self) -> float:
        return sum(float(soundfile.info(path).duration) for path in self.place.glob("read-*.wav"))

    def clear(self) -> None:
        """Delete what was read."""
        shutil.rmtree(self.place, ignore_errors=True)
