"""What every request passes before any work is done: key, rate, size of the body.

Pure ASGI, so that nothing is done per chunk of an answer. Knows no routes and no speech.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from ipaddress import IPv6Address, ip_address

from limits import RateLimitItem, parse_many
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.api.errors import ApiError, too_many
from studio.settings import ApiSettings

IDENTITY = "timbre.identity"  # in the scope: who asks
SOCKET_KEY = "openai-insecure-api-key."  # a subprotocol: browsers set no headers on sockets
CLOCK_SLACK = 1.0  # seconds that a clock may be put right by


class Keys:
    """API keys, compared in constant time. Only their digests are kept."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [_digest(key) for key in keys]

    def check(self, key: str) -> str:
        """The name a valid key goes by in here; empty when no keys are set."""
        if not self._digests:
            return ""
        asked = _digest(key)
        matches = [hmac.compare_digest(asked, known) for known in self._digests]  # all of them
        if not any(matches):
            raise _no_key()
        return asked.hex()[:16]


class Rates:
    """How often one key and one address may ask."""

    def __init__(self, settings: ApiSettings) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._latest = 0.0
        self._rates = {"key": _items(settings.key_rate), "address": _items(settings.address_rate)}

    def take(self, identity: dict[str, str], cost: int = 1) -> None:
        """Count a request as `cost`, or refuse it and say when to come back."""
        self._heed_clock()
        due = [(item, kind, who) for kind, who in identity.items() for item in self._rates[kind]]
        for item, kind, who in due:
            if not self._limiter.test(item, kind, who, cost=cost):
                raise self._refusal(item, kind, who)
        for item, kind, who in due:
            self._limiter.hit(item, kind, who, cost=cost)

    def _heed_clock(self) -> None:
        """Count anew when the clock is set back: what was counted would lie in the future."""
        now = time.time()
        if now < self._latest - CLOCK_SLACK:
            self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._latest = now

    def _refusal(self, item: RateLimitItem, kind: str, who: str) -> ApiError:
        wait = self._limiter.get_window_stats(item, kind, who).reset_time - time.time()
        said = f"The limit is {item.amount} requests in {item.get_expiry()} s for one {kind}."
        return too_many(f"{said} Try again in {max(1, round(wait))} s.", "rate_limit", wait)


class AuthGate:
    """Middleware in front of the API's own paths."""

    def __init__(
        self, app: ASGIApp, settings: ApiSettings, rates: Rates, refused: Callable[[ApiError], None]
    ) -> None:
        self.app = app
        self._limit = settings.body_bytes
        self._keys = Keys(key.get_secret_value() for key in settings.keys)
        self._rates, self._refused = rates, refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._admit(scope)
        except ApiError as error:
            self._refused(error)
            await error.response()(scope, receive, send)
        else:
            await self.app(scope, self._measured(receive), send)

    def _admit(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        key = self._keys.check(_key_of(headers))
        scope[IDENTITY] = _identity(key, scope)
        if scope["path"] != "/metrics":
            self._rates.take(scope[IDENTITY])
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limit:
            raise ApiError(413, self._too_large, "too_large")

    @property
    def _too_large(self) -> str:
        return f"The body is too large: at most {self._limit / 2**20:g} MiB."

    def _measured(self, receive: Receive) -> Receive:
        """Count a body that did not tell its length."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise HTTPException(413, self._too_large)
            return message

        return counted


class ForPaths:
    """Sends some paths through `inner` and leaves the rest (the page) to `app`."""

    def __init__(self, app: ASGIApp, inner: ASGIApp, prefixes: tuple[str, ...]) -> None:
        self.app, self._inner, self._prefixes = app, inner, prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] != "lifespan" and scope["path"].startswith(self._prefixes)
        await (self._inner if ours else self.app)(scope, receive, send)


def offered_protocols(headers: Headers) -> list[str]:
    """The subprotocols that a socket's client offers."""
    return [each.strip() for each in headers.get("sec-websocket-protocol", "").split(",")]


def _key_of(headers: Headers) -> str:
    """The key as OpenAI's clients send it, as ElevenLabs' do, or as a browser's socket can."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return key.strip()
    for each in offered_protocols(headers):
        if each.startswith(SOCKET_KEY):
            return each.removeprefix(SOCKET_KEY)
    return headers.get("xi-api-key", "")


def _identity(key: str, scope: Scope) -> dict[str, str]:
    identity = {"address": _address((scope.get("client") or ("", 0))[0])}
    return {**identity, "key": key} if key else identity


def _address(host: str) -> str:
    """One household of IPv6 counts as one address."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and not address.ipv4_mapped:
        return address.exploded[:19]  # the first 64 bits
    return host


def _no_key() -> ApiError:
    return ApiError(
        401,
        "A valid API key is needed: send the header 'Authorization: Bearer YOUR_KEY'.",
        "invalid_api_key",
        headers={"WWW-Authenticate": "Bearer"},
    )


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def _items(rate: str) -> list[RateLimitItem]:
    return parse_many(rate) if rate else []
