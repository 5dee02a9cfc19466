"""The stream that `Engine.submit` returns: chunks as they are generated, then exactly one end.

Iterate it with `for` or `async for`; errors are raised after the last chunk. Leaving its `with`
block early, or dropping it unread, cancels the request. One reader per stream. The engine gives it
an output queue and a few callbacks.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from engine.errors import InvalidText
from engine.messages import Message
from engine.requests.output_queue import OutputQueue
from engine.types import Chunk, End, Pcm

# Applied to every chunk, in the reader's thread, or for `async for` in a worker thread.
Postprocess: TypeAlias = Callable[[Pcm], Pcm]

# Of `SpeechStream.joined`.
IN_HAND = 2.0  # seconds of audio that a listener has before chunks are collected for it
RESTED = 0.125  # share of what is above that for which they are
LONGEST_REST = 0.5
MOST_JOINED = 4.0  # seconds of audio


class Progress(Protocol):
    """The request's state in the engine; read without a lock."""

    id: int
    seed: int
    position: int | None
    estimate: float

    token_count: int
    notices: tuple[Message, ...]

    @property
    def reference_frames(self) -> int: ...


class TextEntry(Protocol):
    """Takes text that is appended to an open request."""

    def append(self, text: str) -> None: ...
    def close(self) -> None: ...


LAG = 0.05  # seconds for which an event loop may be busy before the engine is notified


@dataclass(frozen=True)
class Handles:
    """Callbacks into the engine."""

    cancel: Callable[[], None]
    text: TextEntry | None  # None: the text was complete at submission
    lagged: Callable[[float], object] = lambda seconds: None  # a chunk waited for its event loop


class SpeechStream:
    """The reader's end of a request."""

    def __init__(
        self,
        output: OutputQueue,
        progress: Progress,
        handles: Handles,
        postprocess: Postprocess | None = None,
    ) -> None:
        self._output = output
        self._postprocess = postprocess
        self._progress = progress
        self._handles = handles
        self._raised = False  # the end's error was raised
        self._abandoned = weakref.finalize(self, handles.cancel)
        self._abandoned.atexit = False

    # State.

    @property
    def id(self) -> int:
        """The request's number in its engine."""
        return self._progress.id

    @property
    def seed(self) -> int:
        """The seed that was used; a file that was generated twice has its second seed."""
        return self.end.seed if self.end else self._progress.seed

    @property
    def position(self) -> int | None:
        """Requests ahead of it in the queue; None once it has a slot."""
        return None if self.end else self._progress.position

    @property
    def estimate(self) -> float | None:
        """Seconds until it gets a slot, while it waits."""
        return None if self.position is None else self._progress.estimate

    @property
    def end(self) -> End | None:
        """How it ended; None while more may come."""
        return self._output.end

    @property
    def text_tokens(self) -> int:
        """Ids of its text so far."""
        return self._progress.token_count

    @property
    def reference_frames(self) -> int:
        """Frames of a recording that its prompt continues."""
        return self._progress.reference_frames

    @property
    def notices(self) -> tuple[Message, ...]:
        """What its listener should know, like text that the model cannot read."""
        return self._progress.notices

    # Control.

    def cancel(self) -> None:
        """Cancel the request. Chunks that were delivered can still be read."""
        if not self.end:
            self._handles.cancel()

    def append(self, text: str) -> None:
        """Add to an open text. Raises InvalidText."""
        self._entry().append(text)

    def close_text(self) -> None:
        """Mark the text as complete; it is spoken to its end."""
        self._entry().close()

    def collect(self) -> Pcm:
        """Wait for all audio and return it."""
        parts = [chunk.pcm for chunk in self]
        return np.concatenate(parts) if parts else np.zeros(0, np.int16)

    # Chunks.

    def ready(self) -> Iterator[Chunk]:
        """Chunks that can be read without waiting."""
        while chunk := self._output.take():
            yield self._processed(chunk)

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        while True:
            chunk = self._output.take()
            if chunk:
                return self._processed(chunk)
            if self._over():
                raise StopIteration
            changed = threading.Event()
            self._output.notify(changed.set)
            changed.wait()

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self

    async def __anext__(self) -> Chunk:
        while True:
            chunk = self._output.take()
            if chunk and self._postprocess:
                return await asyncio.to_thread(self._processed, chunk)
            if chunk:
                return chunk
            if self._over():
                raise StopAsyncIteration
            await self._changed()

    async def joined(self, index: int = 0) -> AsyncIterator[Chunk]:
        """Iterate in fewer and longer chunks once the listener has seconds in hand.

        A chunk then waits a fraction of these seconds for the next ones. Each piece costs the same
        on its way through event loops, proxies and sockets, however long it is. `index`: of the
        first piece.
        """
        played = 0.0  # when the audio so far has been played
        async for chunk in self:
            parts, seconds = [chunk], chunk.seconds
            while len(self._output) and seconds < MOST_JOINED:
                parts.append(await anext(self))
                seconds += parts[-1].seconds
            piece = _join(parts, index)
            yield piece
            now, index = time.monotonic(), index + 1
            played = max(played, now) + seconds
            rest = min(LONGEST_REST, (played - now - IN_HAND) * RESTED)
            if rest > 0 and not (self.end or len(self._output)):
                await self._changed(rest)

    def __enter__(self) -> SpeechStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    async def __aenter__(self) -> SpeechStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()

    def _processed(self, chunk: Chunk) -> Chunk:
        return replace(chunk, pcm=self._postprocess(chunk.pcm)) if self._postprocess else chunk

    def _over(self) -> bool:
        """Whether everything was read; raises the end's error once."""
        end = self.end
        if end is None or len(self._output):
            return False
        self._abandoned.detach()  # there is nothing left to cancel
        if end.error and not self._raised:
            self._raised = True
            # A copy: what is raised holds this stream by its traceback, and must not be held by it.
            raise copy(end.error) from end.error.__cause__
        return True

    async def _changed(self, rest: float | None = None) -> None:
        """Wait for a chunk or the end; with `rest`, for the end, at most so many seconds."""
        loop = asyncio.get_running_loop()
        changed = loop.create_future()

        def resolve(woken: float) -> None:
            if not changed.done():
                changed.set_result(None)
                lag = time.monotonic() - woken
                if lag > LAG:
                    self._handles.lagged(lag)

        def wake() -> None:
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(resolve, time.monotonic())

        due = time.monotonic() + (rest or 0.0)
        timer = None if rest is None else loop.call_later(rest, resolve, due)
        self._output.notify(wake, at_end=timer is not None)
        try:
            await changed
        finally:
            if timer:
                timer.cancel()

    def _entry(self) -> TextEntry:
        if self._handles.text is None:
            raise InvalidText("This text is complete. Set open_text to add text later.")
        return self._handles.text


def _join(chunks: list[Chunk], index: int) -> Chunk:
    if len(chunks) == 1:
        return chunks[0] if chunks[0].index == index else replace(chunks[0], index=index)
    pcm = np.concatenate([chunk.pcm for chunk in chunks])
    return Chunk(index, pcm, np.concatenate([chunk.codes for chunk in chunks]))
