"""Headers on every response of the API: a request id, fields that were ignored, and warnings
(those of a WebSocket are kept until its session tells them).

Pure ASGI. The schemas report fields while the body is parsed, in the same context.
"""

from __future__ import annotations

import re
import uuid
from contextvars import ContextVar

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LIMITS = "timbre.limits"  # in the scope: headers that say how often the client may ask
_SAFE = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_MOST = 20  # names in one header
_LONGEST = 300  # characters of a warning
_UNPRINTED = re.compile(r"[^ -~]")
_ignored: ContextVar[list[str] | None] = ContextVar("ignored", default=None)


_warnings: ContextVar[list[str] | None] = ContextVar("warnings", default=None)


def report_warning(text: str) -> None:
    """Report what the response is not, though it was asked for."""
    texts = _warnings.get()
    plain = _UNPRINTED.sub("?", text)[:_LONGEST]
    if texts is not None and len(texts) < _MOST and plain not in texts:
        texts.append(plain)


def take_warnings() -> list[str]:
    """The warnings since the last call; a WebSocket sends them in a message."""
    texts = _warnings.get()
    taken = list(texts or ())
    if texts:
        texts.clear()
    return taken


def report_ignored(name: str) -> None:
    """Report a field or value that is ignored."""
    names = _ignored.get()
    if names is not None and len(names) < _MOST and name not in names:
        names.append(name)


class RequestLabels:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            warned = _warnings.set([])
            try:
                await self.app(scope, receive, send)
            finally:
                _warnings.reset(warned)
            return
        names: list[str] = []
        warnings: list[str] = []
        given = Headers(scope=scope).get("x-request-id", "")
        identity = given if _SAFE.fullmatch(given) else f"req_{uuid.uuid4().hex}"

        async def labelled(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = identity
                headers.update(scope.get(LIMITS, {}))
                if names:
                    headers["x-ignored-fields"] = ", ".join(filter(_SAFE.fullmatch, names))
                if warnings:
                    headers["x-warnings"] = " ".join(warnings)
            await send(message)

        token, warned = _ignored.set(names), _warnings.set(warnings)
        try:
            await self.app(scope, receive, labelled)
        finally:
            _ignored.reset(token)
            _warnings.reset(warned)
