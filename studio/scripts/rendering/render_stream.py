"""A rendering as one stream with the interface of the engine's streams.

The stream skips failed lines, unless all of them fail, and ends after the last line. It stays only
a little ahead of the listener, however fast lines are generated, so that browsers do not buffer an
hour of audio. Finished lines are kept when it stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

import numpy as np

from engine import CODEBOOKS, FRAME_SAMPLES, SAMPLE_RATE, Chunk, End, Pcm, Reason, RequestError
from studio.scripts.rendering.batch_synthesis import BatchSynthesis

LEAD = 30.0  # seconds of audio sent ahead of time
BEAT = 0.2  # seconds between checks whether to continue


class ScriptStream:
    """The script from line `start` on as chunks and one end. One listener."""

    def __init__(
        self,
        batch: BatchSynthesis,
        start: int | None = None,
        seed: int = 0,
        *,
        owner: bool = True,
        lead: float = LEAD,
        skip: int = 0,
    ) -> None:
        """`owner`: cancelling also stops the rendering. `skip`: samples of the first line."""
        self._batch = batch
        self._start = start
        self._seed = seed
        self._owner = owner
        self._lead, self._skip = lead, skip
        # (sample where its sound begins, line); below 0 where that was skipped
        self.marks: list[tuple[int, int]] = []
        self._stopped = False
        self.end: End | None = None

    @property
    def position(self) -> int | None:
        """Position in the engine's queue of the line that is played next."""
        stream = self._batch.heard_next
        return stream.position if stream else None

    @property
    def estimate(self) -> float | None:
        """Estimated wait of that line in seconds."""
        stream = self._batch.heard_next
        return stream.estimate if stream else None

    def cancel(self) -> None:
        self._stopped = True
        if self._owner:
            self._batch.stop()

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        no_codes = np.zeros((0, CODEBOOKS), np.int64)
        index = samples = 0
        async for pcm in self._sound():
            yield Chunk(index, pcm, no_codes)
            index, samples = index + 1, samples + len(pcm)
        self.end = self._end(samples)

    async def _sound(self) -> AsyncIterator[Pcm]:
        """Non-empty pieces, none much earlier than needed."""
        first, samples, skip = 0.0, 0, self._skip
        async for piece in self._batch.play(self._start):
            first = first or monotonic()
            while not self._stopped and samples / SAMPLE_RATE - (monotonic() - first) > self._lead:
                await asyncio.sleep(BEAT)
            if self._stopped:
                return
            if piece.line != self._start:
                skip = 0
            pcm, skip = piece.pcm[skip:], max(0, skip - len(piece.pcm))
            if len(pcm):
                self._mark(samples, piece.line)
                yield pcm
                samples += len(pcm)

    def _mark(self, samples: int, line: int) -> None:
        if not self.marks or self.marks[-1][1] != line:
            self.marks.append((samples if self.marks else samples - self._skip, line))

    def _end(self, samples: int) -> End:
        reason: Reason = "cancelled" if self._stopped else "finished"
        failure = self._batch.first_error
        if not samples and failure and not self._stopped:
            return End("error", 0, self._seed, RequestError(failure))
        return End(reason, samples // FRAME_SAMPLES, self._seed)
