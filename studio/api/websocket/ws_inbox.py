"""Messages of a WebSocket's client, and a limit on its silence, for every dialogue of this API."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import anyio
from starlette.websockets import WebSocket, WebSocketDisconnect

from studio.api.errors import ApiError
from studio.api.websocket.ws_sender import WsOutlet

IDLE: Final = 1001
MOMENT: Final = 0.5  # seconds in which what has come is read, at least


class WsInbox:
    """Messages one by one.

    `speaking`: whether complete text is spoken, or text of which nothing was heard yet (a slow
    machine holds its sound back), which is no silence of the client.
    """

    def __init__(
        self,
        socket: WebSocket,
        outlet: WsOutlet,
        idle_timeout: float,
        speaking: Callable[[], bool],
        refuse: Callable[[ApiError], Awaitable[None]],
    ) -> None:
        self._socket, self._outlet, self._idle_timeout = socket, outlet, idle_timeout
        self._speaking, self._refuse = speaking, refuse

    async def next(self) -> str | None:
        """The next message; None at the end."""
        while True:
            left = self._left()
            # A process that stood still looks late for what has come, but it looks.
            with anyio.move_on_after(max(left, MOMENT)):
                message = await self._socket.receive()
                self._outlet.active = time.monotonic()
                if message["type"] == "websocket.disconnect":
                    return None
                return message.get("text") or ""
            if left <= 0:
                await self._end_idle()
                return None

    async def _end_idle(self) -> None:
        await self._refuse(ApiError(408, "Nothing was sent for too long.", "idle_timeout"))
        await self._outlet.close(IDLE, "idle")

    def _left(self) -> float:
        """Seconds until the idle timeout.

        It does not run while it is the server's turn, nor while what was sent may still play.
        """
        if self._speaking():
            return self._idle_timeout
        heard = max(self._outlet.active, self._outlet.played)
        return heard + self._idle_timeout - time.monotonic()


async def run_together(*halves: Callable[[], Awaitable[None]]) -> None:
    """Run the halves of a dialogue until one of them ends."""

    async def run(half: Callable[[], Awaitable[None]], whole: anyio.CancelScope) -> None:
        with suppress(WebSocketDisconnect):
            await half()
        whole.cancel()

    async with anyio.create_task_group() as group:
        for half in halves:
            group.start_soon(run, half, group.cancel_scope)
