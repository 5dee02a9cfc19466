"""Converts the engine's PCM to the bytes of a response: speed, then format."""

from __future__ import annotations

import numpy as np

from engine import Pcm
from studio.api.responses.encoding import UNCOMPRESSED, Format, encode, open_encoder
from studio.time_stretch import Stretch, stretch


class Render:
    """The audio of a streamed response."""

    def __init__(self, format: Format, speed: float) -> None:
        self._encoder = open_encoder(format)
        self._stretch = None if speed == 1 else Stretch(speed)
        self.only_copies = speed == 1 and format in UNCOMPRESSED  # takes next to no time
        self.samples = 0  # of output so far

    def feed(self, pcm: Pcm) -> bytes:
        heard = self._stretch.feed(pcm) if self._stretch else pcm
        self.samples += len(heard)
        return self._encoder.feed(heard) if len(heard) else b""

    def finish(self) -> bytes:
        rest = self._stretch.finish() if self._stretch else np.zeros(0, np.int16)
        self.samples += len(rest)
        tail = self._encoder.feed(rest) if len(rest) else b""
        return tail + self._encoder.finish()


def render(pcm: Pcm, format: Format, speed: float) -> bytes:
    """The audio of a complete response."""
    return encode(format, stretch(pcm, speed))
