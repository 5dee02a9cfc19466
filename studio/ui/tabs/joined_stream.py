"""Several requests heard one after the other as one stream, a short pause between them.

All are asked for at once, so the engine makes them together; the first is heard live. Knows no
components; the live player plays it like any stream of the engine's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import numpy as np

from engine import (
    CODEBOOKS,
    FRAME_SAMPLES,
    Chunk,
    End,
    InvalidSetting,
    Pcm,
    SpeechEngine,
    SpeechRequest,
    SpeechStream,
)

PAUSE_FRAMES = 4


class Passage:
    """Raises what the engine raises for any of the requests; then none of them is left behind."""

    def __init__(self, engine: SpeechEngine, requests: Sequence[SpeechRequest]) -> None:
        if not requests:
            raise InvalidSetting("Pick two voices first.")
        self._streams: list[SpeechStream] = []
        self._heard = 0  # the stream that is heard now
        self._stopped = False
        self.end: End | None = None
        try:
            for index, request in enumerate(requests):
                self._streams.append(engine.submit(replace(request, live=index == 0)))
        except Exception:
            self.cancel()
            raise

    @property
    def position(self) -> int | None:
        return self._streams[self._heard].position

    @property
    def estimate(self) -> float | None:
        return self._streams[self._heard].estimate

    def cancel(self) -> None:
        self._stopped = True
        for stream in self._streams:
            stream.cancel()

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        index = samples = 0
        async for pcm in self._sound():
            yield Chunk(index, pcm, np.zeros((0, CODEBOOKS), np.int64))
            index, samples = index + 1, samples + len(pcm)
        last = self._streams[self._heard].end
        reason = "cancelled" if self._stopped or last is None else last.reason
        self.end = End(reason, samples // FRAME_SAMPLES, self._streams[0].seed)

    async def _sound(self) -> AsyncIterator[Pcm]:
        try:
            for index, stream in enumerate(self._streams):
                self._heard = index
                if self._stopped:
                    return
                if index:
                    yield np.zeros(PAUSE_FRAMES * FRAME_SAMPLES, np.int16)
                async for chunk in stream:
                    yield chunk.pcm
        except Exception:
            self.cancel()
            raise
