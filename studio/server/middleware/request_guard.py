"""Which names this server answers to, and which sites' pages may send it requests.

A page of another site can make its visitor's browser send forms, open sockets and, with a DNS name
that it rebinds to this machine, read answers. Three rules stop that: the Host header must be one
of ours, Origin must be Host on everything that changes state and on every socket, and cookies stay
with our own pages unless the operator has the page embedded. Programs send no Origin and are not
concerned. Knows no users, and of routes only the one that changes something for a GET.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.api.errors import ApiError

SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
CHANGING: Final = ("/logout",)  # although it is a GET: Gradio's
OWN_PAGES: Final = ("same-origin", "none", "")  # of Sec-Fetch-Site: ours, typed, no browser
PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
SAME_SITE: Final = re.compile(r"(?i);\s*samesite=none")


class RequestGuard:
    """Middleware around everything.

    `hosts`: names besides addresses, localhost and this machine's own; `*` is any.
    `origins`: other sites whose pages may send requests; `*` is any.
    `embedded`: pages of other sites may show ours in a frame, so its cookies must go along.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Iterable[str] = (),
        origins: Sequence[str] = (),
        embedded: bool = False,
    ) -> None:
        self._app, self._origins, self._embedded = app, origins, embedded
        names = {"localhost", socket.gethostname(), f"{socket.gethostname()}.local"}
        self._hosts = {name.casefold() for name in (*hosts, *names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        try:
            self._check(scope)
        except ApiError as error:
            return await error.response()(scope, receive, send)
        if not self._embedded and scope["type"] == "http":
            send = _keeping_cookies(send)
        return await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        """Raises ApiError."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host"), headers.get("origin")
        # Programs that speak HTTP/1.0 name none. Browsers always do, and only they can be misled.
        if host is not None and not self._is_ours(host):
            raise ApiError(
                421,
                f"This server does not answer to the name '{host[:200]}'. "
                "Its operator can add the name to TIMBRE_HOSTS.",
                "unknown_host",
            )
        leaves = scope["path"].rstrip("/") in CHANGING
        if origin is None:  # a link or an image sends none
            if leaves and headers.get("sec-fetch-site", "") not in OWN_PAGES:
                raise _foreign("another site")
            return
        if not {"*", origin}.isdisjoint(self._origins):
            return
        changes = leaves or scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
        if changes and not same_origin(origin, host or ""):
            raise _foreign(origin[:200])

    def _is_ours(self, host: str) -> bool:
        name = _split(host)[0]
        return "*" in self._hosts or name in self._hosts or _is_address(name)


def _foreign(site: str) -> ApiError:
    return ApiError(
        403,
        f"Pages of {site} may not send requests to this server. "
        "Its operator can add the site to TIMBRE_API_ORIGINS.",
        "origin_refused",
    )


def same_origin(origin: str, host: str) -> bool:
    """Whether a page of `origin` came from the server that was asked as `host`.

    The scheme may differ, since a proxy may end TLS; the loopback's names are one.
    """
    scheme = origin.partition("://")[0]
    ours, theirs = _split(host), _split(origin.partition("://")[2])
    default = PORTS.get(scheme, 0)
    if (ours[1] or default) != (theirs[1] or default):
        return False
    return bool(ours[0]) and (
        ours[0] == theirs[0] or (_is_loopback(ours[0]) and _is_loopback(theirs[0]))
    )


@lru_cache(64)
def _split(host: str) -> tuple[str, int | None]:
    """The name and the port of a Host header."""
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "").casefold(), parts.port
    except ValueError:
        return "", None


@lru_cache(64)
def _is_address(name: str) -> bool:
    """An address cannot be rebound to another machine, as a name can."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    return name == "localhost" or (_is_address(name) and ip_address(name).is_loopback)


def _keeping_cookies(send: Send) -> Send:
    """Cookies that Gradio offers to every site stay with ours."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            cookies = headers.getlist("set-cookie")
            if any(SAME_SITE.search(cookie) for cookie in cookies):
                del headers["set-cookie"]
                for cookie in cookies:
                    headers.append("set-cookie", SAME_SITE.sub("; SameSite=Lax", cookie))
        await send(message)

    return sending
