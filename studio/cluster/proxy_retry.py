"""Asks again for unheard speech when its replica dies: a middleware of Serve's proxies.

A replica sends the status with the first audio, and names itself in it. Where none has answered,
the proxy gives up without a word, or with an error of its own; then the request is sent once more,
and Serve picks another replica. Who has heard a part gets no other: that one would speak with
another print of the voice. Knows ASGI alone.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REPLICA: Final = b"x-replica"  # the header in which a replica names itself
SPEECH: Final = "/v1/audio/speech"
TRIES: Final = 3
PAUSE: Final = 0.2  # seconds between them
LARGEST: Final = 1 << 20  # bytes of a request that are kept to be sent again
GONE: Final = 503  # what a proxy says where it finds no replica


def middlewares() -> list[Middleware]:
    """Serve calls it in each proxy."""
    return [Middleware(ProxyRetry)]


class ProxyRetry:
    """Repeats a request for speech. It keeps nothing, so that a second time does no harm."""

    def __init__(self, application: ASGIApp, pause: float = PAUSE) -> None:
        self._application, self._pause = application, pause

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(SPEECH):
            return await self._application(scope, receive, send)
        sent = Sent(receive)
        for left in reversed(range(TRIES)):
            answer = Answer(send, sent, last=not left)
            await self._application(dict(scope), sent.again(), answer)
            if answer.heard or not left or not sent.whole or sent.over:
                break
            await asyncio.sleep(self._pause)
        return None


class Sent:
    """What the client has sent, as often as it is asked for."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept: list[Message] = []
        self._size = 0
        self.over = False  # the client has gone

    @property
    def whole(self) -> bool:
        """Whether it can be sent again."""
        return self._size <= LARGEST

    def again(self) -> Receive:
        kept = iter(tuple(self._kept))

        async def receive() -> Message:
            for message in kept:
                return message
            message = await self._receive()
            if message["type"] == "http.request":
                self._size += len(message.get("body", b""))
                if self.whole:
                    self._kept.append(message)
            self.over |= message["type"] == "http.disconnect"
            return message

        return receive


class Answer:
    """Passes an answer on, but for the proxy's own errors while there are tries left."""

    def __init__(self, send: Send, sent: Sent, last: bool) -> None:
        self._send, self._sent, self._last = send, sent, last
        self.heard = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            gone = message["status"] == GONE and not _named(message)
            self.heard = self._last or not self._sent.whole or not gone
        if self.heard:
            await self._send(message)


def _named(message: Any) -> bool:
    return any(name.lower() == REPLICA for name, _ in message.get("headers", ()))
