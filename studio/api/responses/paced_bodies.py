"""Middleware: answers go out as fast as their clients read them.

A server takes a body as it is, however much of it a client has yet to read, and keeps that in
memory for as long as the client stays. So a large one is sent in pieces, each when most of those
before it were read, and a client that reads nothing for too long is left.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

from starlette.types import ASGIApp, Message, Receive, Scope, Send

PIECE = 128 << 10  # bytes


class PacedBodies:
    """Leaving a client raises TimeoutError in what answers it."""

    def __init__(self, app: ASGIApp, stall_timeout: float) -> None:
        self._app, self._stall_timeout = app, stall_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        paced = _Paced(send, self._stall_timeout)
        try:
            await self._app(scope, receive, paced.send)
        except TimeoutError:
            if not paced.stalled:
                raise
        finally:
            paced.end()
        return None


class _Paced:
    """The pieces of one answer, and one timer for all of them: sends mostly wait for nobody."""

    def __init__(self, send: Send, patience: float) -> None:
        self._send, self._patience = send, patience
        self._loop = asyncio.get_running_loop()
        self._sending: asyncio.Task[object] | None = None
        self._since = 0.0  # when that task began its send
        self._timer = self._loop.call_later(patience, self._look)
        self.stalled = False  # the last send took too long

    async def send(self, message: Message) -> None:
        """Raises TimeoutError."""
        for piece in _pieces(message):
            self._since, self._sending = self._loop.time(), asyncio.current_task()
            self.stalled = False
            try:
                await self._send(piece)
            except asyncio.CancelledError:
                if not self.stalled or _is_cancelled_by_others(self._sending):
                    raise
                raise TimeoutError from None
            finally:
                self._sending = None

    def end(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        """Leave the client if a send has taken too long; look again when one can have."""
        now = self._loop.time()
        began = self._since if self._sending else now
        if self._sending and now >= began + self._patience:
            self.stalled, began = True, now
            self._sending.cancel()
        self._timer = self._loop.call_at(began + self._patience, self._look)


def _is_cancelled_by_others(task: asyncio.Task[object] | None) -> bool:
    """Whether somebody else has cancelled a task too; takes our own back."""
    return sys.version_info >= (3, 11) and task is not None and task.uncancel() > 0


def _pieces(message: Message) -> Iterator[Message]:
    """The same message, or several with parts of its body."""
    body = message.get("body", b"")
    last = max(0, len(body) - 1) // PIECE * PIECE  # where the last piece begins
    for start in range(0, last, PIECE):
        yield {**message, "body": body[start : start + PIECE], "more_body": True}
    yield {**message, "body": body[last:]} if last else message
