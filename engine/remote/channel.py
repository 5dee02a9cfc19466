"""What two processes of this program say to each other, over a socket that only they have.

Posting never waits, so a finaliser and the thread of the steps may post; a thread of the channel
writes. Values are copied by pickling as they are posted. Both sides are this program, started by it
from the same files: nothing that came from outside is unpickled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from threading import Thread
from typing import Any

from engine.config import EngineSettings
from engine.errors import TimbreError
from engine.plan import Checkpoint
from engine.requests.sequence import Sequence, TextPiece
from engine.scheduler.admission import Admission
from engine.types import Chunk, End

# To the process of the engine.


@dataclass(frozen=True)
class Begin:
    """Start a request that was checked."""

    sequence: Sequence


@dataclass(frozen=True)
class AddText:
    id: int
    piece: TextPiece


@dataclass(frozen=True)
class Cancel:
    id: int


@dataclass(frozen=True)
class Lag:
    """A chunk reached its reader so long after it was made."""

    seconds: float


@dataclass(frozen=True)
class Call:
    """Call a method of the engine; a `Reply` with the same number follows."""

    number: int
    method: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Close:
    """The last message."""


# From it.


@dataclass(frozen=True)
class Ready:
    """The engine is loaded."""

    settings: EngineSettings
    checkpoints: Mapping[str, Checkpoint]


@dataclass(frozen=True)
class Failed:
    """The engine could not be opened."""

    error: TimbreError


@dataclass(frozen=True)
class Deliver:
    id: int
    item: Chunk | End
    at: float  # time.monotonic(), which is one clock for all processes


@dataclass(frozen=True)
class Reply:
    number: int
    value: Any
    error: TimbreError | None = None


@dataclass(frozen=True)
class Report:
    """Sent when it changes, and each second; all defaults while the engine loads.

    `requests`: position and estimate of each that is open; one that has a slot has no position.
    """

    alive: bool = True
    ended: bool = False
    admission: Admission = field(default_factory=Admission)
    requests: Mapping[int, tuple[int | None, float]] = field(default_factory=dict)


class Channel:
    """One end of the socket. Any thread posts, one thread receives."""

    def __init__(self, handle: int) -> None:
        self._connection = Connection(handle)
        self.gone = False  # the other side, as a message to it has shown
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._writer = Thread(target=self._write, name="timbre-channel", daemon=True)
        self._writer.start()

    def post(self, message: object) -> None:
        """Send it soon; dropped once the other side is gone."""
        self._outgoing.put(bytes(ForkingPickler.dumps(message)))

    def receive(self) -> Iterator[Any]:
        """Messages until the other side is gone."""
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                return
            yield message

    def close(self) -> None:
        """Called by the thread that receives. What was posted is written first."""
        self._outgoing.put(None)
        self._writer.join()
        self._connection.close()

    def _write(self) -> None:
        try:
            while message := self._outgoing.get():
                self._connection.send_bytes(message)
        except OSError:
            self.gone = True
