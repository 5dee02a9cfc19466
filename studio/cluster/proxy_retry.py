"""Asks again for unheard speech when its replica dies: a middleware of Serve's proxies.

A replica sends the status with the first audio. Where it dies before, the proxy gives up without a
word; where none is there, or the one that is cannot speak, the answer is 503. Then the request is
sent once more, and Serve picks another replica. A client that has heard a part is not served by
another replica, which would speak with another print of the voice. Knows ASGI alone.
"""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REPLICA: Final = b"x-replica"  # the header in which a replica names itself
SPEECH: Final = ("/v1/audio/speech", "/v1/text-to-speech/")
TRIES: Final = 3
PAUSE: Final = 0.2  # seconds between them
LARGEST: Final = 1 << 20  # bytes of a request that are kept to be sent again
UNAVAILABLE: Final = 503  # of a proxy that finds no replica, or of an engine that has ended


# In the API's form (studio/api/errors.py), which proxies do not load.
LOST: Final = JSONResponse(
    {
        "error": {
            "message": "The server that spoke this has ended. Try again.",
            "type": "server_error",
            "param": None,
            "code": "replica_lost",
            "retry_after": 5,
        }
    },
    UNAVAILABLE,
    {"Retry-After": "5"},
)


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
            if answer.started or not left or not sent.whole or sent.over:
                break
            await asyncio.sleep(self._pause)
        if not (answer.started or sent.over):
            await LOST(scope, receive, send)
        return None


class Sent:
    """The client's messages, which can be read again."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept: list[Message] = []
        self._size = 0
        self.whole = True  # it can be sent again
        self.over = False  # the client has gone

    def forget(self) -> None:
        self._kept, self.whole = [], False

    def again(self) -> Receive:
        kept = iter(tuple(self._kept))

        async def receive() -> Message:
            for message in kept:
                return message
            message = await self._receive()
            if message["type"] == "http.request" and self.whole:
                self._kept.append(message)
                self._size += len(message.get("body", b""))
                if self._size > LARGEST:
                    self.forget()
            self.over |= message["type"] == "http.disconnect"
            return message

        return receive


class Answer:
    """Passes an answer on, but for 503 while there are tries left."""

    def __init__(self, send: Send, sent: Sent, last: bool) -> None:
        self._send, self._sent, self._last = send, sent, last
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            again = message["status"] == UNAVAILABLE and self._sent.whole and not self._last
            self.started = not again
        if self.started:
            self._sent.forget()
            await self._send(message)
