"""A socket that two processes of this program have, and the calls that they make over it.

Posting never waits, so a finaliser and the thread of the steps may post. Who posts also writes, as
much as the socket takes at once: a hop to another thread takes longer than that. What it does not
take is written by a thread of the channel. Values are copied by pickling as they are posted. Both
sides are this program, started by it from the same files: nothing that came from outside is
unpickled.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedIOBase, BufferedReader
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from struct import Struct
from threading import Lock, Thread
from typing import Any, Concatenate, ParamSpec

P = ParamSpec("P")

LENGTH = Struct("!Q")  # before each message
READ_AT_ONCE = 1 << 16  # bytes


class Channel:
    """One end of the socket. Any thread posts, one thread receives."""

    def __init__(self, handle: int) -> None:
        self._socket = socket.socket(fileno=handle)
        self.gone = False  # the other side, as a call to it has shown
        self._outgoing: deque[memoryview] = deque()  # of the first one, what was not written yet
        self._writing = Lock()
        self._full = False  # the socket: the thread goes on with what waits
        self._wake: SimpleQueue[bool] = SimpleQueue()  # the thread; True: for the last time
        self._writer = Thread(target=self._write, name="timbre-channel", daemon=True)
        self._writer.start()

    def post(
        self, method: Callable[Concatenate[Any, P], None], *values: P.args, **named: P.kwargs
    ) -> None:
        """Call a method over there soon; dropped once the other side is gone."""
        if self.gone:
            return
        message = ForkingPickler.dumps((method.__name__, values, named))
        self._outgoing.append(memoryview(b"".join((LENGTH.pack(len(message)), message))))
        if not self._full:
            self._flush()

    def receive(self, target: object) -> Iterator[None]:
        """Make the other side's calls, one at each step, until it is gone."""
        with BufferedReader(self._socket.makefile("rb", 0), READ_AT_ONCE) as reader:
            while message := _next_message(reader):
                method, values, named = ForkingPickler.loads(message)
                getattr(target, method)(*values, **named)
                yield

    def close(self) -> None:
        """Called by the thread that receives. What was posted is written first."""
        self._wake.put(True)
        self._writer.join()
        self.gone = True
        with self._writing:  # who writes: the handle's number may be another file's next
            self._socket.close()

    def _flush(self, wait: bool = False) -> None:
        """Write what waits. Another thread that does so takes along what came since: only with
        `wait` is that waited for."""
        while self._outgoing and self._writing.acquire(wait):
            try:
                while self._outgoing:
                    if not self._send_first():
                        self._full = True
                        self._wake.put(False)
                        return
            except OSError:
                self.gone = True
                self._outgoing.clear()
                with suppress(OSError):  # whatever it was, the other side shall not wait for more
                    self._socket.shutdown(socket.SHUT_WR)
            finally:
                self._writing.release()

    def _send_first(self) -> bool:
        """Write of the first message what the socket takes; whether that is all of it."""
        message = self._outgoing[0]
        try:
            sent = self._socket.send(message, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        if sent < len(message):
            self._outgoing[0] = message[sent:]
            return False
        self._outgoing.popleft()
        return True

    def _write(self) -> None:
        """The life of the thread: wait until the socket takes more."""
        room = select.poll()
        room.register(self._socket, select.POLLOUT)
        last = False
        while self._full or not last:
            last = self._wake.get() or last
            if self._full:
                room.poll()
            self._full = False  # before what waits is looked at: later posts are not left to it
            self._flush(wait=True)


def _next_message(reader: BufferedIOBase) -> bytes | None:
    """None: the other side is gone."""
    try:
        head = reader.read(LENGTH.size)
        if len(head) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack(head)
        message: bytes = reader.read(length)
    except OSError:
        return None
    return message if len(message) == length else None
