"""Connections that have not sent a whole request: how long they may take, how many there may be.

Uvicorn waits for ever for a head or a body, so a client that sends half requests takes up every
file handle of the process. Here a head has HEAD_SECONDS, a body may pause for BODY_SECONDS, and of
the connections that have no answer running only MOST stay: beyond, the address with the most of
them loses its oldest one, so newcomers come in while somebody holds a thousand. A connection that
ends before its client has read everything is cut off LAST_SECONDS later. Knows no routes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol
    from uvicorn.protocols.websockets.websockets_sansio_impl import (
        WebSocketsSansIOProtocol as SocketProtocol,
    )
else:
    Protocol, SocketProtocol = AutoHTTPProtocol, AutoWebSocketsProtocol

HEAD_SECONDS: Final = 20.0
BODY_SECONDS: Final = 30.0  # without a byte
LAST_SECONDS: Final = 30.0  # for a client to read what was left of an answer that ended early
MOST: Final = 512

Phase: TypeAlias = Literal["head", "body", "answer"]


def bounded_protocol() -> type[BoundedProtocol]:
    """The protocol of one server: its connections are counted together."""

    class Bounded(BoundedProtocol):
        unanswered = Unanswered()

    return Bounded


class Unanswered:
    """Connections without a running answer, the oldest first."""

    def __init__(self) -> None:
        self._since: dict[BoundedProtocol, str] = {}  # with their addresses
        self._counts: Counter[str] = Counter()

    def add(self, connection: BoundedProtocol, address: str) -> None:
        if connection in self._since:
            return
        self._since[connection] = address
        self._counts[address] += 1
        if len(self._since) > MOST:
            self._drop_one()

    def remove(self, connection: BoundedProtocol) -> None:
        address = self._since.pop(connection, None)
        if address is not None:
            self._counts[address] -= 1
            self._counts += Counter()  # forgets addresses without connections

    def _drop_one(self) -> None:
        """The oldest connection of the address that has the most."""
        ((address, _),) = self._counts.most_common(1)
        oldest = next(each for each, client in self._since.items() if client == address)
        self.remove(oldest)
        oldest.transport.abort()


class BoundedSocket(SocketProtocol):
    """Uvicorn's WebSocket, whose handle is given back although its client reads nothing."""

    async def run_asgi(self) -> None:
        try:
            await super().run_asgi()
        finally:
            self.loop.call_later(LAST_SECONDS, self.transport.abort)


class BoundedProtocol(Protocol):
    """Uvicorn's HTTP with a deadline for what the client has to send."""

    unanswered: ClassVar[Unanswered]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.app = self._cut(self.app)
        self._timer: asyncio.TimerHandle | None = None
        self._timed: Phase | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._heed("head")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.transport.is_closing() and self.transport.get_protocol() is self:
            self._heed(self._phase())

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            return
        self._unset()
        phase = self._phase()
        if phase == "head":  # until a byte comes, uvicorn's time for silent connections holds
            self.unanswered.add(self, self._address)
        else:
            self._heed(phase)

    def handle_websocket_upgrade(self, *arguments: Any) -> None:
        self._leave()
        super().handle_websocket_upgrade(*arguments)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        super().connection_lost(exc)

    def _cut(self, app: ASGIApp) -> ASGIApp:
        """Uvicorn closes a connection whose answer ended early, which waits for its reader."""

        async def cut(scope: Scope, receive: Receive, send: Send) -> None:
            cycle = self.cycle
            try:
                await app(scope, receive, send)
            finally:
                if not cycle.response_complete:
                    self.loop.call_later(LAST_SECONDS, self._give_back)

        return cut

    def _give_back(self) -> None:
        if self.transport.is_closing():
            self.transport.abort()

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _phase(self) -> Phase:
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return "head"
        return "body" if cycle.more_body else "answer"

    def _heed(self, phase: Phase) -> None:
        """Start the time of a phase. A head's goes on with each byte, a body's starts anew."""
        if phase == "answer":
            return self._leave()
        if phase == "body" or self._timed != phase:
            self._unset()
            patience = HEAD_SECONDS if phase == "head" else BODY_SECONDS
            self._timer = self.loop.call_later(patience, self._expire)
            self._timed = phase
        return self.unanswered.add(self, self._address)

    def _expire(self) -> None:
        if self.flow.read_paused:  # the server itself has paused reading
            self._timed = None
            return self._heed(self._phase())
        return self.transport.abort()

    def _leave(self) -> None:
        self._unset()
        self.unanswered.remove(self)

    def _unset(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timed = None
