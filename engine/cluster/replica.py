"""The far side of a cluster: an engine of this process speaks for a `ClusterEngine` elsewhere.

Says how the two sides talk, as values that any transport may carry. Errors are values too: raised,
they would lose their type and message on the way. Knows no transport and no other replica.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from engine.errors import TimbreError
from engine.speech_engine import SpeechEngine
from engine.stream import SpeechStream
from engine.types import Chunk, Clone, End, SpeechRequest, Waveform

REPORT_SECONDS = 0.5  # between two reports of a request that waits


@dataclass(frozen=True)
class Taken:
    """A replica has taken the request; repeated while it waits for a slot."""

    replica: str
    position: int | None = None  # as SpeechStream.position
    estimate: float = 0.0


@dataclass(frozen=True)
class Refused:
    """A replica has not taken the request: it is full, is closing, or cannot speak it."""

    replica: str  # empty: the transport's own queue is full
    error: TimbreError


Part: TypeAlias = Taken | Refused | Chunk | End
Parts: TypeAlias = AsyncGenerator[Part, None]


class Replica:
    """Speaks the requests of others on an engine. Used from one event loop."""

    def __init__(self, name: str, engine: SpeechEngine) -> None:
        self.name, self.engine = name, engine
        self._open: dict[str, SpeechStream] = {}  # texts that are still being written

    async def speak(self, key: str, request: SpeechRequest) -> Parts:
        """Taken or Refused, then chunks and one end. Closing it early cancels the request.

        `key` is what `append` calls the request.
        """
        try:
            stream = self.engine.submit(request)
        except TimbreError as error:
            yield Refused(self.name, error)
            return
        if request.open_text:
            self._open[key] = stream
        try:
            async with stream:
                async for part in self._parts(stream):
                    yield part
        finally:
            self._open.pop(key, None)
        assert stream.end is not None  # it has been read to its end
        yield stream.end

    async def append(self, key: str, text: str | None) -> None:
        """Add to an open text; None closes it. Texts of other replicas' requests are ignored.

        What is wrong with a text, the sender has been told already.
        """
        stream = self._open.get(key)
        if stream is None:
            return
        if text is None:
            stream.close_text()
        else:
            with suppress(TimbreError):
                stream.append(text)

    def clone(self, audio: Waveform, transcript: str, model: str | None) -> Clone | TimbreError:
        try:
            return self.engine.clone(audio, transcript, model)
        except TimbreError as error:
            return error

    def load(self, model: str, wanted: bool) -> TimbreError | None:
        """Load or unload a model."""
        try:
            (self.engine.load if wanted else self.engine.unload)(model)
        except TimbreError as error:
            return error
        return None

    async def _parts(self, stream: SpeechStream) -> AsyncGenerator[Taken | Chunk, None]:
        yield self._taken(stream)
        chunk = asyncio.ensure_future(anext(stream, None))
        try:
            while not (await asyncio.wait({chunk}, timeout=REPORT_SECONDS))[0]:
                if stream.position is not None:
                    yield self._taken(stream)
            with suppress(Exception):  # it is the error of the end
                if first := await chunk:
                    yield first
                async for each in stream.joined(1):
                    yield each
        finally:
            chunk.cancel()

    def _taken(self, stream: SpeechStream) -> Taken:
        return Taken(self.name, stream.position, stream.estimate or 0.0)
