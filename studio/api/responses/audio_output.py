"""Converts the engine's PCM to the bytes of a response: speed, sample rate, then format."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import soxr

from engine import SAMPLE_RATE, Pcm
from studio.api.responses.encoding import UNCOMPRESSED, Coding, Format, encode, open_encoder
from studio.time_stretch import Stretch, stretch


@dataclass(frozen=True)
class Output:
    """The format, speed and rates of a response's audio."""

    format: Format
    speed: float = 1.0
    sample_rate: int = SAMPLE_RATE
    bit_rate: int | None = None  # kbit/s; None: as the format has it by default

    @property
    def coding(self) -> Coding:
        return Coding(self.format, self.sample_rate, self.bit_rate)


class Render:
    """The audio of a streamed response."""

    def __init__(self, output: Output) -> None:
        self._encoder = open_encoder(output.coding)
        self._stretch = None if output.speed == 1 else Stretch(output.speed)
        self._resample = _resampler(output.sample_rate)
        # takes next to no time
        self.only_copies = (
            output.speed == 1 and not self._resample and output.format in UNCOMPRESSED
        )
        self.samples = 0  # of speech so far, at the engine's rate

    def feed(self, pcm: Pcm) -> bytes:
        heard = self._stretch.feed(pcm) if self._stretch else pcm
        self.samples += len(heard)
        return self._encoded(heard, last=False)

    def finish(self) -> bytes:
        rest = self._stretch.finish() if self._stretch else np.zeros(0, np.int16)
        self.samples += len(rest)
        return self._encoded(rest, last=True) + self._encoder.finish()

    def _encoded(self, pcm: Pcm, last: bool) -> bytes:
        if self._resample:
            pcm = self._resample.feed(pcm, last)
        return self._encoder.feed(pcm) if len(pcm) else b""


class KeptRender(Render):
    """Keeps the speech as well, whose times are told at its end."""

    def __init__(self, output: Output) -> None:
        super().__init__(output)
        self._parts: list[Pcm] = []

    def feed(self, pcm: Pcm) -> bytes:
        self._parts.append(pcm)
        return super().feed(pcm)

    def heard(self) -> Pcm:
        return np.concatenate(self._parts) if self._parts else np.zeros(0, np.int16)


def render(pcm: Pcm, output: Output) -> bytes:
    """The audio of a complete response."""
    heard, resample = stretch(pcm, output.speed), _resampler(output.sample_rate)
    if resample:
        heard = resample.feed(heard, last=True)
    return encode(output.coding, heard)


class Resampler:
    """Converts the engine's sample rate to another.

    It keeps its state from piece to piece, so nothing is heard where they meet. It works in
    float32, because soxr adds noise to integers, which differs by how they are cut.
    """

    def __init__(self, sample_rate: int) -> None:
        self._stream = soxr.ResampleStream(SAMPLE_RATE, sample_rate, 1, dtype="float32")

    def feed(self, pcm: Pcm, last: bool) -> Pcm:
        sound = self._stream.resample_chunk(pcm.astype(np.float32), last=last)
        resampled: Pcm = np.rint(sound).clip(-32768, 32767).astype(np.int16)
        return resampled


def _resampler(sample_rate: int) -> Resampler | None:
    return None if sample_rate == SAMPLE_RATE else Resampler(sample_rate)
