"""Synthetic speech on the training device: one long tape that grows as shards appear."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from training.data.speech_format import FRAME, IGNORED, PHONE_STEP, RATE, UNKNOWN


@dataclass(frozen=True)
class Segment:
    """An utterance on the tape."""

    start: int
    stop: int
    text: str
    speaker: int
    style: int


class SpeechPool:
    """Samples, phones and text places of all shards read so far, on the device. It is `full` once a
    shard did not fit. Speech is waited for until a time in seconds since 1970."""

    def __init__(
        self, folder: Path, hours: float, device: torch.device, until: float | None = None
    ) -> None:
        self.folder, self.device = folder, device
        self.room, self.full, self.until = hours, False, until
        samples = int(hours * 3600) * RATE // FRAME * FRAME
        self.samples = torch.zeros(samples, dtype=torch.int16, device=device)
        self.phones = torch.zeros(samples // PHONE_STEP, dtype=torch.uint8, device=device)
        self.places = torch.zeros(samples // PHONE_STEP, dtype=torch.int16, device=device)
        self.segments: list[Segment] = []
        self.filled = 0
        self._read: set[str] = set()

    @property
    def hours(self) -> float:
        return self.filled / RATE / 3600

    def refresh(self, at_most: int = 8) -> int:
        """Read new shards; how many were read."""
        new = sorted(
            path for path in self.folder.glob("[0-9]*.npz")
            if path.name.count(".") == 1 and path.name not in self._read
        )[:at_most]  # fmt: skip
        return sum(self._append(path) for path in new)

    def wait(self, hours: float, at_once: int = 8) -> None:
        """Read shards until there is so much speech, and at least some."""
        while self.lacks(hours):
            if not self.refresh(at_once):
                time.sleep(1)

    def lacks(self, hours: float) -> bool:
        """Whether there is less speech and room for more, or none at all."""
        if hours > self.room:
            raise SystemExit(f"--wait-hours {hours:g} is more than --hours {self.room:g} holds")
        lacking = not self.segments or (self.hours < hours and not self.full)
        if lacking and self.until and time.time() > self.until:
            raise SystemExit(f"{self.hours:.2f} of {hours:g} hours of speech came in time")
        return lacking

    def _append(self, path: Path) -> int:
        self._read.add(path.name)
        with np.load(path) as shard:
            data: dict[str, Any] = {name: shard[name] for name in shard.files}
        count = len(data["samples"])
        if self.filled + count > len(self.samples):
            self._leave_out(path)
            return 0
        at = slice(self.filled, self.filled + count)
        labels = slice(self.filled // PHONE_STEP, (self.filled + count) // PHONE_STEP)
        self.samples[at] = torch.from_numpy(data["samples"]).to(self.device)
        self.phones[labels] = torch.from_numpy(data["phones"]).to(self.device)
        self.places[labels] = torch.from_numpy(data["places"].astype(np.int16)).to(self.device)
        offsets = (data["offsets"] + self.filled).tolist()
        utterances = json.loads(str(data["meta"]))
        for start, stop, what in zip(offsets[:-1], offsets[1:], utterances, strict=True):
            self.segments.append(Segment(start, stop, what["text"], what["speaker"], what["style"]))
        self.filled += count
        return 1

    def _leave_out(self, path: Path) -> None:
        left_out = f"{path.name} does not fit into --hours {self.room:g}"
        if not self.filled:
            raise SystemExit(left_out)
        if not self.full:
            print(f"{left_out}: shards like it are left out", flush=True)
        self.full = True

    def crops(self, batch: int, frames: int) -> tuple[Tensor, Tensor]:
        """Random crops: waves [B, samples] and their phones [B, frames, 4]."""
        length, step = frames * FRAME, PHONE_STEP
        last = (self.filled - length) // step
        first = torch.randint(last, (batch, 1), device=self.device)
        wave = self.samples[first * step + torch.arange(length, device=self.device)]
        phones = self.phones[first + torch.arange(length // step, device=self.device)]
        return wave.float() / 32767, known_phones(phones).view(batch, frames, -1)

    def cut(self, starts: Tensor, length: int) -> Tensor:
        """Waves [B, length] from these starts."""
        rows = starts[:, None] + torch.arange(length, device=self.device)
        return self.samples[rows.clamp(0, len(self.samples) - 1)].float() / 32767


def known_phones(phones: Tensor) -> Tensor:
    """Phones of shards as losses know them: unknown ones are ignored."""
    return phones.long().masked_fill(phones == UNKNOWN, IGNORED)
