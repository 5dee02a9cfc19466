"""Compresses the page's HTML and style, and responses of events outside the queue.

Audio and event streams pass as they are. The page is the same for everybody, so its compressed
form is kept: compressing it again would hold up all streams. Gradio compresses its own scripts.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.accepted_coding import takes_gzip

PATHS: Final = ("/", "/config", "/theme.css", "/gradio_api/info")
RUN: Final = "/gradio_api/run/"
LEAST: Final = 1024  # bytes that are worth it
MOST: Final = 4 << 20
FAST: Final = 1  # a level of gzip
LARGE: Final = 64 << 10  # bytes; from here on the result is kept
KEPT: Final = 8  # compressed bodies


class Compression:
    """Middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._kept: dict[bytes, bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = scope["type"] == "http" and scope["method"] != "HEAD"
        if not wanted or not _is_compressed(scope["path"]) or not takes_gzip(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _Answer(send, self._compressed).send)

    def _compressed(self, body: bytes) -> bytes:
        if len(body) < LARGE:
            return gzip.compress(body, FAST, mtime=0)
        key = hashlib.blake2b(body, digest_size=16).digest()
        if key not in self._kept:
            while len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = gzip.compress(body, mtime=0)
        return self._kept[key]


def _is_compressed(path: str) -> bool:
    return path in PATHS or path.startswith(RUN)


class _Answer:
    """Holds a response of known length back until it is complete; others pass unchanged."""

    def __init__(self, send: Send, compress: Callable[[bytes], bytes]) -> None:
        self._send, self._compress = send, compress
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _fits(Headers(raw=message["headers"])):
            self._start = message
            return None
        if self._start is None or message["type"] != "http.response.body":
            return await self._send(message)
        self._body += message.get("body", b"")
        if not message.get("more_body"):
            await self._finish(self._start)
        return None

    async def _finish(self, start: Message) -> None:
        body = self._compress(self._body)
        headers = MutableHeaders(scope=start)
        headers["content-encoding"] = "gzip"
        headers["content-length"] = str(len(body))
        headers.add_vary_header("Accept-Encoding")
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def _fits(headers: Headers) -> bool:
    length = headers.get("content-length", "")
    plain = "content-encoding" not in headers
    return plain and length.isdecimal() and LEAST <= int(length) <= MOST
