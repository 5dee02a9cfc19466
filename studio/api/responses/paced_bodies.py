"""Middleware: answers go out as fast as their clients read them.

A server takes a body as it is, however much of it a client has yet to read, and keeps that in
memory for as long as the client stays. So a large one is sent in pieces, each when most of those
before it were read, and a client that reads nothing for too long is left.
"""

from __future__ import annotations

from collections.abc import Iterator

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PIECE = 128 << 10  # bytes


class PacedBodies:
    """Leaving a client raises TimeoutError in what answers it."""

    def __init__(self, app: ASGIApp, stall_timeout: float) -> None:
        self._app, self._stall_timeout = app, stall_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        stalled = False

        async def paced(message: Message) -> None:
            nonlocal stalled
            for piece in _pieces(message):
                stalled = True
                with anyio.fail_after(self._stall_timeout):
                    await send(piece)
                stalled = False

        try:
            await self._app(scope, receive, paced)
        except TimeoutError:
            if not stalled:
                raise
        return None


def _pieces(message: Message) -> Iterator[Message]:
    """The same message, or several with parts of its body."""
    body = message.get("body", b"")
    last = max(0, len(body) - 1) // PIECE * PIECE  # where the last piece begins
    for start in range(0, last, PIECE):
        yield {**message, "body": body[start : start + PIECE], "more_body": True}
    yield {**message, "body": body[last:]} if last else message
