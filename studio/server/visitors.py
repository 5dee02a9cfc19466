"""Identifies visitors of a public server: each has their own voices and a share of the engine.

A visitor is identified by the API key, else by a cookie, else by Gradio's session. Folders are
named by a digest of that; no personal data is stored. Where the operator has set no keys, a key is
a visitor's own choice, and one that others would choose too (`none`, `sk-1234`) identifies nobody.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from weakref import WeakSet

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as AsgiMessage

from engine import Message, SpeechStream, TooMany
from studio.api.application import GUARDED
from studio.api.auth import key_of
from studio.api.page_request import page_address, page_request
from studio.api.rates import address_of
from studio.retention import guests_folder

COOKIE: Final = "timbre-visitor"
SCOPE: Final = "timbre.visitor"
YEAR: Final = 365 * 24 * 3600
PATIENCE: Final = 3.0  # seconds after which a visitor with too many requests may retry
SECRET: Final = 20, 10  # characters of a key that nobody else chooses, and different ones
_MARK: Final = re.compile(r"[A-Za-z0-9_-]+")  # as `token_urlsafe` writes them
NOBODY: Final = ("", "address ")
FORGET: Final = (
    1_000  # visitors that are remembered; beyond, those without running requests are dropped
)

OF_ONE_ADDRESS: Final = 4  # shares that the visitors of one address have together

_asking: ContextVar[str] = ContextVar("asking", default="")  # the mark of the current API request
_address: ContextVar[str] = ContextVar("address", default="")  # and where it is


@dataclass(frozen=True)
class Visitor:
    mark: str  # a secret that identifies the visitor
    brought: bool  # the request had it; else it is new and sent with the response


class Visitors:
    """Middleware: identifies the visitor of every request, and gives new browsers a cookie."""

    def __init__(self, app: ASGIApp, embedded: bool = False, keyed: bool = False) -> None:
        """`keyed`: the operator has set keys, and no others are let in."""
        self._app, self._embedded, self._keyed = app, embedded, keyed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        visitor = scope[SCOPE] = _visitor(Headers(scope=scope), self._keyed)
        if not visitor.brought and scope["type"] == "http":
            send = _giving(_cookie(visitor.mark, scope, self._embedded), send)
        if not scope["path"].startswith(GUARDED):
            return await self._app(scope, receive, send)
        tokens = _asking.set(visitor.mark), _address.set(address_of(scope))
        try:
            return await self._app(scope, receive, send)
        finally:
            _asking.reset(tokens[0])
            _address.reset(tokens[1])


def visitor() -> str:
    """A safe file name for the current visitor; empty outside of a request."""
    mark = _on_the_page() or _asking.get()
    return sha256(mark.encode("utf-8", "surrogatepass")).hexdigest()[:32] if mark else ""


def shelf(data: Path) -> Callable[[], Path]:
    """A function that returns the current visitor's folder of voices."""
    root = guests_folder(data)

    def place() -> Path:
        who = visitor()
        return root / "visitors" / who if who else root / "voices"

    return place


class _Place:
    """Taken while a request is checked, before it has a stream."""

    end = None


class Share:
    """How many requests one visitor may have in the engine at a time; an admission hook.

    A client without a cookie is a new visitor with each request, so addresses are bounded too.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._streams: dict[str, WeakSet[SpeechStream | _Place]] = {}

    def __call__(self) -> Callable[[SpeechStream | None], object]:
        """Raises TooMany."""
        bounds = {
            visitor(): self._most,
            f"address {page_address() or _address.get()}": OF_ONE_ADDRESS * self._most,
        }
        with self._lock:
            self._forget()
            counted = [self._streams.setdefault(who, WeakSet()) for who in bounds]
            for streams, (who, most) in zip(counted, bounds.items(), strict=True):
                if who not in NOBODY and _open(streams) >= most:
                    message = Message(
                        "Only {most} of your requests can be here at a time. Let one finish.",
                        most=most,
                    )
                    raise TooMany(message, PATIENCE)
            place = _Place()
            for streams in counted:
                streams.add(place)

        def decided(stream: SpeechStream | None) -> None:
            with self._lock:
                for streams in counted:
                    streams.discard(place)
                    if stream is not None:
                        streams.add(stream)

        return decided

    def _forget(self) -> None:
        if len(self._streams) > FORGET:
            self._streams = {who: each for who, each in self._streams.items() if _open(each)}


def _open(streams: WeakSet[SpeechStream | _Place]) -> int:
    return sum(stream.end is None for stream in streams)


def _on_the_page() -> str:
    """The mark of the visitor whose Gradio event runs; without a cookie, of the session."""
    request = page_request()
    if request is None:
        return ""
    known = request.request.scope.get(SCOPE) if request.request else None
    if isinstance(known, Visitor) and known.brought:
        return known.mark
    return request.session_hash or (known.mark if isinstance(known, Visitor) else "")


def _visitor(headers: Headers, keyed: bool) -> Visitor:
    key = key_of(headers)
    if key and (keyed or (len(key) >= SECRET[0] and len(set(key)) >= SECRET[1])):
        return Visitor(f"key {key}", brought=True)
    # As browsers read them: another program's cookie beside ours may have any form.
    found = cookie_parser("; ".join(headers.getlist("cookie"))).get(COOKIE, "")
    mark = found if _MARK.fullmatch(found) else ""
    return Visitor(mark or secrets.token_urlsafe(24), brought=bool(mark))


def _cookie(mark: str, scope: Scope, embedded: bool) -> str:
    """The cookie; in a frame of another site, as on a Space, it must be Secure and Partitioned."""
    forwarded = Headers(scope=scope).get("x-forwarded-proto", scope.get("scheme", "http"))
    secure = "; Secure" if forwarded == "https" else ""
    site = "None; Partitioned" if embedded and secure else "Lax"
    return f"{COOKIE}={mark}; Path=/; Max-Age={YEAR}; HttpOnly{secure}; SameSite={site}"


def _giving(cookie: str, send: Send) -> Send:
    async def giving(message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).append("set-cookie", cookie)
        await send(message)

    return giving
