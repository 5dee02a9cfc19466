"""A live take: the audio of one stream so far, for any number of readers.

Readers read by sample position, so all of them, early or late, get the same audio. This module
knows no Gradio, no HTTP and no encoding besides PCM16.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from engine import SAMPLE_RATE, Chunk, End, Message, Pcm, TimbreError, speaking_seconds

HEARTBEAT = 0.4  # seconds between checks of a waiting reader
LEAD_MARGIN = 1.1  # speech may be slower than is usual
PIECE = 2 * SAMPLE_RATE  # samples per piece, at most
UNEXPECTED = Message("Something went wrong while speaking. Try again.")

log = logging.getLogger(__name__)


class Part(NamedTuple):
    """Speaker and text from a sample of a take on."""

    start: int
    voice: str
    text: str


class About(NamedTuple):
    """What a player shows of a take. `parts`: those begun so far, where voice and text change."""

    voice: str
    text: str
    parts: Callable[[], Sequence[Part]] = tuple


UNNAMED = About("", "")


class Stream(Protocol):
    """The part of the engine's stream that is used here."""

    @property
    def end(self) -> End | None: ...

    @property
    def position(self) -> int | None:
        """Position in the queue; None once it runs."""

    @property
    def estimate(self) -> float | None:
        """Estimated wait in seconds."""

    def __aiter__(self) -> AsyncIterator[Chunk]: ...

    def cancel(self) -> None: ...


class LiveTake:
    """The audio of one stream so far."""

    def __init__(
        self,
        stream: Stream,
        about: About = UNNAMED,
        machine_speed: float | None = None,
        early: bool = False,
    ) -> None:
        """`early`: each piece is played when it comes, also on a slow machine."""
        self.id = secrets.token_urlsafe(12)
        self.about = about
        self.readers = 0  # on the raw route
        self.read_from = 0  # where the latest reader is
        self.read_last: float | None = None  # when a reader last had it; None: never
        self.failure = ""
        self.left = False  # stopped by its listener, not by a lost connection
        self.opened = time.perf_counter()
        self.first: float | None = None  # when the first chunk came
        self.latest = self.opened
        self._first_samples = 0
        self._stream = stream
        self._early = early
        self._machine_speed = machine_speed  # expected, before there is a `speed`
        self._pcm = bytearray()
        self._changed = asyncio.Event()
        self._collector = asyncio.create_task(self._collect())

    @property
    def made(self) -> int:
        """Samples."""
        return len(self._pcm) // 2

    @property
    def ended(self) -> bool:
        return self._collector.done()

    @property
    def end(self) -> End | None:
        return self._stream.end

    @property
    def state(self) -> str:
        return "ended" if self.ended else "speaking" if self.made else "waiting"

    @property
    def position(self) -> int | None:
        return None if self.made else self._stream.position

    @property
    def estimate(self) -> float | None:
        return None if self.made else self._stream.estimate

    @property
    def speed(self) -> float | None:
        """Audio seconds per second, from the first chunk on."""
        if self.first is None or self.latest - self.first < 0.05:
            return None
        return (self.made - self._first_samples) / SAMPLE_RATE / (self.latest - self.first)

    @property
    def wanted_lead(self) -> float:
        """Seconds of audio that a player should hold before it starts: on a machine slower than
        real time so many that the rest comes before it is due, at all others none."""
        speed = self.speed if self.made > PIECE else self._machine_speed
        if self._early or speed is None or speed >= 1 or self.ended:
            return 0.0
        rest = max(0.0, speaking_seconds(self.about.text) - self.made / SAMPLE_RATE)
        return LEAD_MARGIN * rest * (1 / speed - 1)

    def slice(self, start: int, count: int = PIECE) -> bytes:
        return bytes(self._pcm[2 * start : 2 * (start + count)])

    def pcm(self) -> Pcm:
        return np.frombuffer(bytes(self._pcm), np.int16)

    async def change(self, timeout: float) -> None:
        """Wait for a chunk, the end, or a change of raw readers."""
        waiter = self._changed
        try:
            await asyncio.wait_for(waiter.wait(), timeout)
        except (TimeoutError, asyncio.TimeoutError):  # two classes before Python 3.11
            return

    async def read(self, start: int) -> AsyncGenerator[bytes, None]:
        """The audio from a sample on, as it is generated."""
        self.readers += 1
        self.read_from = start
        self._wake()
        try:
            while not (self.ended and start >= self.made):
                piece = self.slice(start)
                if piece:
                    yield piece
                    start += len(piece) // 2
                    self.read_from = start
                else:
                    await self.change(HEARTBEAT)
        finally:
            self.readers -= 1
            self.read_last = time.perf_counter()
            self._wake()

    @property
    def unheard(self) -> float:
        """Seconds since the last reader left; 0 while there is one."""
        since = self.opened if self.read_last is None else self.read_last
        return 0.0 if self.readers else time.perf_counter() - since

    async def over(self) -> None:
        """Wait for the end."""
        await asyncio.wait([self._collector])

    def cancel(self) -> None:
        if not self.ended:
            self._stream.cancel()

    async def _collect(self) -> None:
        try:
            async for chunk in self._stream:
                self._add(chunk)
        except TimbreError as error:
            self.failure = error.message
        except Exception:
            log.exception("a stream broke off")
            self.failure = UNEXPECTED
        finally:
            asyncio.get_running_loop().call_soon(self._wake)  # once `ended` holds

    def _add(self, chunk: Chunk) -> None:
        self.latest = time.perf_counter()
        self._pcm += chunk.pcm.astype("<i2", copy=False).tobytes()
        if self.first is None:
            self.first, self._first_samples = self.latest, len(chunk.pcm)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
