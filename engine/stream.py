"""What `Engine.submit` returns: chunks as they are made, then exactly one end.

Iterate it, plainly or with `async for`; errors are raised after the last chunk. Leaving its
`with` block early, or dropping it unread, cancels the request. One listener a stream. Knows
nothing of slots, steps or the scheduler: the engine gives it a mailbox and a few calls.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from engine.errors import InvalidText
from engine.requests.output_queue import OutputQueue
from engine.types import Chunk, End, Pcm

# What all sound passes through on its way to a listener, chunk by chunk, in the listener's thread
# or, for `async for`, in one beside it.
Postprocess: TypeAlias = Callable[[Pcm], Pcm]


class Progress(Protocol):
    """What the engine knows about the request; read without a lock."""

    seed: int
    position: int | None
    estimate: float

    @property
    def text(self) -> Sized: ...


class TextEntry(Protocol):
    """The way of appended text into the engine."""

    def append(self, text: str) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Handles:
    """What a stream can ask of the engine."""

    cancel: Callable[[], None]
    text: TextEntry | None  # None: the text was whole from the start


class SpeechStream:
    """The listener's end of a request."""

    def __init__(
        self,
        mailbox: OutputQueue,
        progress: Progress,
        handles: Handles,
        finish: Postprocess | None = None,
    ) -> None:
        self._mailbox = mailbox
        self._finish = finish
        self._progress = progress
        self._handles = handles
        self._told = False  # the end's error has been raised
        self._abandoned = weakref.finalize(self, handles.cancel)
        self._abandoned.atexit = False

    # What is known about it.

    @property
    def seed(self) -> int:
        """The seed it is spoken with; a file that was made twice has its second."""
        return self.end.seed if self.end else self._progress.seed

    @property
    def position(self) -> int | None:
        """Requests ahead of it in the queue; None once it has its slot."""
        return None if self.end else self._progress.position

    @property
    def estimate(self) -> float | None:
        """Seconds until it is served, while it waits."""
        return None if self.position is None else self._progress.estimate

    @property
    def end(self) -> End | None:
        """How it ended; None while more may come."""
        return self._mailbox.end

    @property
    def text_tokens(self) -> int:
        """Ids of its text so far."""
        return len(self._progress.text)

    # What can be done with it.

    def cancel(self) -> None:
        """Stop it. Chunks that are here already can still be taken."""
        if not self.end:
            self._handles.cancel()

    def append(self, text: str) -> None:
        """Add to an open text. Raises InvalidText."""
        self._entry().append(text)

    def close_text(self) -> None:
        """The text is complete; what has been appended is spoken to its end."""
        self._entry().close()

    def collect(self) -> Pcm:
        """Wait for the whole of it."""
        parts = [chunk.pcm for chunk in self]
        return np.concatenate(parts) if parts else np.zeros(0, np.int16)

    # Taking chunks.

    def ready(self) -> Iterator[Chunk]:
        """Those that are here already."""
        while chunk := self._mailbox.take():
            yield self._finished(chunk)

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        while True:
            chunk = self._mailbox.take()
            if chunk:
                return self._finished(chunk)
            if self._over():
                raise StopIteration
            news = threading.Event()
            self._mailbox.listen(news.set)
            news.wait()

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self

    async def __anext__(self) -> Chunk:
        while True:
            chunk = self._mailbox.take()
            if chunk and self._finish:
                return await asyncio.to_thread(self._finished, chunk)
            if chunk:
                return chunk
            if self._over():
                raise StopAsyncIteration
            await self._news()

    def __enter__(self) -> SpeechStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    async def __aenter__(self) -> SpeechStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()

    def _finished(self, chunk: Chunk) -> Chunk:
        return replace(chunk, pcm=self._finish(chunk.pcm)) if self._finish else chunk

    def _over(self) -> bool:
        """Everything has been taken; the end's error is raised once."""
        end = self.end
        if end is None or self._mailbox.waiting:
            return False
        if end.error and not self._told:
            self._told = True
            raise end.error
        return True

    async def _news(self) -> None:
        loop = asyncio.get_running_loop()
        news = loop.create_future()

        def tell() -> None:
            if not news.done():
                news.set_result(None)

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody is waiting any more
                loop.call_soon_threadsafe(tell)

        self._mailbox.listen(wake)
        await news

    def _entry(self) -> TextEntry:
        if self._handles.text is None:
            raise InvalidText("This text is complete. Ask with open_text to add to it later.")
        return self._handles.text
