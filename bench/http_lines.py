"""A minimal HTTP/1.1 client: h11 over asyncio streams, with the body's pieces as they arrive.

A client library would add its own milliseconds to the server's. Connections are kept alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import h11

PIECE = 1 << 16
JSON = "application/json"


class Refused(Exception):
    """A response that is not 200. `body`: the beginning of what it says."""

    def __init__(self, message: str, body: bytes = b"") -> None:
        super().__init__(message)
        self.body = body


class Line:
    """One connection, used for one request after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT)

    async def ask(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> AsyncGenerator[bytes, None]:
        """The pieces of the response's body as they arrive."""
        length = {"Content-Length": str(len(body))}
        request = h11.Request(method=method, target=target, headers=[*(headers | length).items()])
        sent = [self._http.send(event) for event in (request, h11.Data(body), h11.EndOfMessage())]
        self._writer.write(b"".join(part or b"" for part in sent))
        status = 0
        while not isinstance(event := await self._next(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data) and status != 200:
                raise Refused(f"{status} {bytes(event.data)[:200]!r}", bytes(event.data))
            elif isinstance(event, h11.Data):
                yield bytes(event.data)
        if status != 200:
            raise Refused(str(status))

    @property
    def ended(self) -> bool:
        """Whether the server has closed it."""
        return self._reader.at_eof()

    def renew(self) -> bool:
        """Prepare for another request; whether that is possible."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            return True
        return False

    def close(self) -> None:
        self._writer.close()

    async def _next(self) -> Any:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(PIECE))
        except h11.RemoteProtocolError as error:
            raise Refused(f"the server closed the connection early: {error}") from error
        if isinstance(event, h11.ConnectionClosed):
            raise Refused("the server closed the connection")
        return event


@dataclass
class Server:
    """A server's address, and idle connections to it."""

    url: str
    key: str = ""
    _idle: list[Line] = field(default_factory=list)

    async def ask(
        self, method: str, path: str, body: bytes = b"", kind: str = JSON
    ) -> AsyncGenerator[bytes, None]:
        """The pieces of a response's body. Raises Refused."""
        line = self._waiting() or await self._connect()
        try:
            asking = line.ask(method, path, self._headers(kind), body)
            async with contextlib.aclosing(asking) as answer:
                async for piece in answer:
                    yield piece
        finally:
            if line.renew():
                self._idle.append(line)
            else:
                line.close()

    async def whole(self, method: str, path: str, body: bytes = b"", kind: str = JSON) -> bytes:
        return b"".join([piece async for piece in self.ask(method, path, body, kind)])

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _waiting(self) -> Line | None:
        """An idle connection that the server has not closed."""
        while self._idle:
            line = self._idle.pop()
            if not line.ended:
                return line
            line.close()
        return None

    async def _connect(self) -> Line:
        at = urlsplit(self.url)
        secure = ssl.create_default_context() if at.scheme == "https" else None
        port = at.port or (443 if secure else 80)
        return Line(*await asyncio.open_connection(at.hostname, port, ssl=secure))

    def _headers(self, kind: str) -> dict[str, str]:
        headers = {"Host": urlsplit(self.url).netloc, "Content-Type": kind}
        return headers | ({"Authorization": f"Bearer {self.key}"} if self.key else {})


def form(fields: dict[str, str], file: bytes) -> tuple[bytes, str]:
    """A multipart body with one file called `audio`, and its content type."""
    mark = "timbre-bench-5e1b7c"
    parts = [
        f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = f'--{mark}\r\nContent-Disposition: form-data; name="audio"; filename="hum.wav"\r\n'
    parts += [head.encode(), b"Content-Type: audio/wav\r\n\r\n", file]
    return b"".join(
        [*parts, f"\r\n--{mark}--\r\n".encode()]
    ), f"multipart/form-data; boundary={mark}"
