"""A rendering as one stream with the interface of the engine's streams.

The stream skips failed lines, unless all of them fail, and ends after the last line, or once its
music has faded out. It stays only a little ahead of the listener, however fast lines are generated,
so that browsers do not buffer an hour of audio. Finished lines are kept when it stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

import numpy as np

from engine import CODEBOOKS, FRAME_SAMPLES, SAMPLE_RATE, Chunk, End, Pcm, Reason, RequestError
from studio.scripts.export.limiter import Limiter
from studio.scripts.export.loudness import as_pcm
from studio.scripts.music.bed import Bed
from studio.scripts.rendering.batch_synthesis import BatchSynthesis, Piece

LEAD = 30.0  # seconds of audio sent ahead of time
BEAT = 0.2  # seconds between checks whether to continue


class Mix:
    """Speech with its music, as an export of it as spoken has it: what comes out is a few
    milliseconds behind what goes in, until the end."""

    def __init__(self, bed: Bed) -> None:
        self._bed, self._limiter = bed, Limiter()

    def feed(self, piece: Piece) -> Pcm:
        music = self._bed.under(piece.line, piece.pcm, piece.spoken)
        return as_pcm(self._limiter.feed(piece.pcm / 32768.0 + music))

    async def finish(self) -> AsyncIterator[Pcm]:
        """The music that fades out, mixed off the event loop."""
        tail = self._bed.tail()
        while (rest := await asyncio.to_thread(next, tail, None)) is not None:
            yield as_pcm(await asyncio.to_thread(self._limiter.feed, rest))
        yield as_pcm(self._limiter.finish())


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
        music: Bed | None = None,
    ) -> None:
        """`owner`: cancelling also stops the rendering. `skip`: samples of the first line. `music`:
        from the beginning of that line on."""
        self._batch = batch
        self._start = start
        self._seed = seed
        self._owner = owner
        self._lead, self._skip = lead, skip
        self._mix = Mix(music) if music else None
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
        begun = -skip  # of the next piece, in what is heard
        async for piece in self._batch.play(self._start):
            first = first or monotonic()
            while not self._stopped and samples / SAMPLE_RATE - (monotonic() - first) > self._lead:
                await asyncio.sleep(BEAT)
            if self._stopped:
                return
            if not len(piece.pcm):
                continue
            if piece.line != self._start and skip:
                begun, skip = begun + skip, 0
            self._mark(begun, piece.line)
            begun += len(piece.pcm)
            whole = await asyncio.to_thread(self._mix.feed, piece) if self._mix else piece.pcm
            pcm, skip = whole[skip:], max(0, skip - len(whole))
            if len(pcm):
                yield pcm
                samples += len(pcm)
        if self._mix and samples:
            async for pcm in self._mix.finish():
                if self._stopped:
                    return
                if len(pcm):
                    yield pcm

    def _mark(self, begun: int, line: int) -> None:
        if not self.marks or self.marks[-1][1] != line:
            self.marks.append((begun, line))

    def _end(self, samples: int) -> End:
        reason: Reason = "cancelled" if self._stopped else "finished"
        failure = self._batch.first_error
        if not samples and failure and not self._stopped:
            return End("error", 0, self._seed, RequestError(failure))
        return End(reason, samples // FRAME_SAMPLES, self._seed)
