"""A socket that two processes of this program have, and the calls that they make over it.

Posting never waits, so a finaliser and the thread of the steps may post; a thread of the channel
writes. Values are copied by pickling as they are posted. Both sides are this program, started by it
from the same files: nothing that came from outside is unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from threading import Thread
from typing import Any, Concatenate, ParamSpec

P = ParamSpec("P")


class Channel:
    """One end of the socket. Any thread posts, one thread receives."""

    def __init__(self, handle: int) -> None:
        self._connection = Connection(handle)
        self.gone = False  # the other side, as a call to it has shown
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._writer = Thread(target=self._write, name="timbre-channel", daemon=True)
        self._writer.start()

    def post(
        self, method: Callable[Concatenate[Any, P], None], *values: P.args, **named: P.kwargs
    ) -> None:
        """Call a method over there soon; dropped once the other side is gone."""
        self._outgoing.put(bytes(ForkingPickler.dumps((method.__name__, values, named))))

    def receive(self, target: object) -> Iterator[None]:
        """Make the other side's calls, one at each step, until it is gone."""
        while True:
            try:
                method, values, named = self._connection.recv()
            except (EOFError, OSError):
                return
            getattr(target, method)(*values, **named)
            yield

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
