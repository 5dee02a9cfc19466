"""The far side of a cluster: an engine of this process speaks for a `RemoteEngine` elsewhere.

Knows no transport and no other replica.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any, TypeAlias

from engine.errors import TimbreError
from engine.remote.protocol import Part, Refused, Taken
from engine.requests.sequence import Sequence, TextPiece
from engine.speech_engine import SpeechEngine
from engine.stats import Stats
from engine.stream import SpeechStream
from engine.types import Chunk

REPORT_SECONDS = 0.5  # between two reports of a request that waits

Parts: TypeAlias = AsyncGenerator[Part | Refused, None]


class Replica:
    """Speaks the requests of others on an engine. Used from one event loop."""

    def __init__(self, name: str, engine: SpeechEngine) -> None:
        self.name, self.engine = name, engine
        self._open: dict[str, Sequence] = {}
        methods = (engine.clone, engine.load, engine.unload, self.look, self.append)
        self._methods: dict[str, Callable[..., Any]] = {each.__name__: each for each in methods}

    async def speak(self, key: str, sequence: Sequence) -> Parts:
        """Taken or Refused, then chunks and one end. Closing it early cancels the request.

        `key` is what `append` calls the request.
        """
        try:
            stream = self.engine.take(sequence)
        except TimbreError as error:
            yield Refused(error, self.name)
            return
        self._open[key] = sequence
        try:
            async with stream:
                async for part in self._parts(stream):
                    yield part
        finally:
            self._open.pop(key, None)
        assert stream.end is not None  # it has been read to its end
        yield stream.end

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method of the engine, from any thread; returns its result or its error."""
        try:
            return self._methods[method](*arguments)
        except TimbreError as error:
            return error

    def look(self) -> tuple[str, Stats]:
        return self.name, self.engine.stats()

    def append(self, key: str, piece: TextPiece) -> None:
        """Add to an open text. Pieces for other replicas' requests are ignored."""
        if sequence := self._open.get(key):
            self.engine.add_text(sequence, piece)

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
        return Taken(stream.position, stream.estimate or 0.0, self.name)
