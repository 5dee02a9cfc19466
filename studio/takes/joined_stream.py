"""Several requests as one stream, in order, with silences, faster or slower.

A few requests are submitted ahead, so that the engine batches them; the first is live. Knows no
components; the live player plays it like any stream of the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from engine import (
    CODEBOOKS,
    FRAME_SAMPLES,
    SAMPLE_RATE,
    Chunk,
    End,
    InvalidSetting,
    Pcm,
    SpeechEngine,
    SpeechRequest,
    SpeechStream,
)
from studio.takes.live_take import Stream
from studio.time_stretch import Stretch

PAUSE: Final = 0.32  # seconds between requests without a pause
AHEAD: Final = 3  # requests that are with the engine at a time

Part: TypeAlias = tuple[SpeechRequest | None, float]  # None: nothing said; seconds of silence after


class JoinedStream:
    """Raises what the engine raises for the first requests, after cancelling all of them."""

    def __init__(self, engine: SpeechEngine, parts: Sequence[Part], ahead: int = AHEAD) -> None:
        if not any(request for request, _ in parts):
            raise InvalidSetting("There is nothing to speak yet. Write or paste a text first.")
        self._engine = engine
        self._parts = list(parts)
        self._requests = [request for request, _ in parts if request]
        self._ahead = ahead
        self._streams: list[SpeechStream] = []
        self._heard = 0  # the stream that is heard now
        self._stopped = False
        self.end: End | None = None
        self._ask()

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
        async with aclosing(self._sound()) as sound:
            async for pcm in sound:
                yield _chunk(index, pcm)
                index, samples = index + 1, samples + len(pcm)
        last = self._streams[self._heard].end
        reason = "cancelled" if self._stopped or last is None else last.reason
        self.end = End(reason, samples // FRAME_SAMPLES, self._streams[0].seed)

    def _ask(self) -> None:
        """Submit requests up to the bound."""
        try:
            while len(self._streams) < min(len(self._requests), self._heard + self._ahead):
                request = replace(self._requests[len(self._streams)], live=not self._streams)
                self._streams.append(self._engine.submit(request))
            if self._stopped:  # meanwhile, by another thread
                self.cancel()
        except Exception:
            self.cancel()
            raise

    async def _sound(self) -> AsyncGenerator[Pcm, None]:
        heard = 0
        try:
            for place, (request, pause) in enumerate(self._parts):
                if self._stopped:
                    return
                if request:
                    self._heard = heard
                    await asyncio.to_thread(self._ask)  # a long text takes a while
                    async for chunk in self._streams[heard]:
                        yield chunk.pcm
                    heard += 1
                if pause and (place + 1 < len(self._parts) or not request):
                    yield np.zeros(round(pause * SAMPLE_RATE), np.int16)
        except Exception:
            self.cancel()
            raise


class PacedStream:
    """A stream that is faster or slower, at the same pitch."""

    def __init__(self, stream: Stream, speed: float) -> None:
        self._stream = stream
        self._speed = speed

    @property
    def end(self) -> End | None:
        return self._stream.end

    @property
    def position(self) -> int | None:
        return self._stream.position

    @property
    def estimate(self) -> float | None:
        return self._stream.estimate

    def cancel(self) -> None:
        self._stream.cancel()

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        stretch, index = Stretch(self._speed), 0
        async for chunk in self._stream:
            if len(pcm := stretch.feed(chunk.pcm)):
                yield _chunk(index, pcm)
                index += 1
        if len(rest := stretch.finish()):
            yield _chunk(index, rest)


def _chunk(index: int, pcm: Pcm) -> Chunk:
    return Chunk(index, pcm, np.zeros((0, CODEBOOKS), np.int64))
