"""A rendering as one stream, for whatever plays the engine's own streams.

The stream passes over failed lines, unless all of them fail, and ends when the last line has
been heard. Cancelling it stops the rendering; what is done stays done.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np

from engine import CODEBOOKS, FRAME_SAMPLES, Chunk, End, Reason, RequestError
from studio.script.rendering import Rendering


class ScriptStream:
    """The script from line `start` on, as chunks and one end. One listener."""

    def __init__(self, rendering: Rendering, start: int | None = None, seed: int = 0) -> None:
        self._rendering = rendering
        self._start = start
        self._seed = seed
        self._stopped = False
        self.end: End | None = None

    @property
    def position(self) -> int | None:
        """Place in the engine's queue of the line that is heard next."""
        stream = self._rendering.heard_next
        return stream.position if stream else None

    @property
    def estimate(self) -> float | None:
        """Seconds until that line is served, while it waits."""
        stream = self._rendering.heard_next
        return stream.estimate if stream else None

    def cancel(self) -> None:
        self._stopped = True
        self._rendering.stop()

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        no_codes = np.zeros((0, CODEBOOKS), np.int64)
        index = samples = 0
        async for piece in self._rendering.play(self._start):
            if len(piece.pcm) and not self._stopped:
                yield Chunk(index, piece.pcm, no_codes)
                index, samples = index + 1, samples + len(piece.pcm)
        self.end = self._end(samples)

    def _end(self, samples: int) -> End:
        reason: Reason = "cancelled" if self._stopped else "finished"
        failure = self._rendering.first_error
        if not samples and failure and not self._stopped:
            return End("error", 0, self._seed, RequestError(failure))
        return End(reason, samples // FRAME_SAMPLES, self._seed)
