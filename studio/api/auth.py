"""Checks every request before any work: API key, rate, size of the body.

Pure ASGI, so that there is no cost per chunk of a response. Knows no routes.
"""

from __future__ import annotations

import hmac
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from hashlib import sha256

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.api.client_secrets import ClientSecrets
from studio.api.errors import ApiError
from studio.api.rates import Rates, address_of
from studio.api.request_labels import LIMITS
from studio.settings import ApiSettings

IDENTITY = "timbre.identity"  # the client's identity in the scope
CLIENT_SECRET = "timbre.client_secret"  # in the scope, if it was let in by one
# A subprotocol, since browsers cannot set headers on WebSockets.
SOCKET_KEY = "openai-insecure-api-key."
REMEMBERED = 1000  # addresses that have sent a valid key
# A key of so many characters, so many of them different, cannot be found by trying. It is let in
# whatever others of its address try; a shorter one waits with them, else they could try on.
UNGUESSABLE = 20
DIFFERENT = 8

# Whether the address of the login that runs has tried too many wrong passwords.
locked_out: ContextVar[bool] = ContextVar("locked_out", default=False)


class Keys:
    """API keys, compared in constant time. Only digests are stored."""

    def __init__(self, keys: Iterable[str]) -> None:
        held = list(keys)
        self._digests = [_digest(key) for key in held]
        self._strong = {_digest(key) for key in held if is_unguessable(key)}

    def check(self, key: str) -> str:
        """The internal name of a valid key; empty if no keys are set."""
        if not self._digests:
            return ""
        digest = _digest(key)
        # with every key, so that the time tells nothing
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        if not any(matches):
            raise _no_key()
        return digest.hex()[:16]

    def is_strong(self, key: str) -> bool:
        """Whether it is one of the keys, and one that nobody can find by trying."""
        return _digest(key) in self._strong


def is_unguessable(key: str) -> bool:
    return len(key) >= UNGUESSABLE and len(set(key)) >= DIFFERENT


class AuthGate:
    """Middleware for the API's paths."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ApiSettings,
        rates: Rates,
        secrets: ClientSecrets,
        refused: Callable[[ApiError], None],
    ) -> None:
        self.app, self._secrets = app, secrets
        self._limit = settings.body_bytes
        self._keys = Keys(key.get_secret_value() for key in settings.keys)
        self._rates, self._refused = rates, refused
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()  # addresses and keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._admit(scope)
        except ApiError as error:
            self._refused(error)
            await error.response(scope["path"])(scope, receive, send)
        else:
            await self.app(scope, self._measured(receive), send)

    def _admit(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        sent, address = _as_written(key_of(headers)), address_of(scope)
        if secret := self._secrets.find(scope["path"], sent):
            scope[CLIENT_SECRET] = secret
            scope[IDENTITY] = _named(address, secret.key)
        else:
            scope[IDENTITY] = self._identity(sent, address)
        if scope["path"] != "/metrics":
            try:
                self._rates.take(scope[IDENTITY])
            finally:
                scope[LIMITS] = _limits(self._rates.left(scope[IDENTITY]))
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limit:
            raise ApiError(413, self._too_large, "too_large")
        coding = headers.get("content-encoding", "").strip().lower()
        if coding not in ("", "identity"):  # a small body may become any size
            problem = f"Send the body as it is: Content-Encoding '{coding[:40]}' is not decoded."
            raise ApiError(415, problem, "encoding", headers={"accept-encoding": "identity"})

    def _identity(self, sent: str, address: str) -> dict[str, str]:
        """Names of the sender. An address with too many wrong keys is refused, right or wrong, but
        for keys that came in before or cannot be guessed."""
        sender = address, _digest(sent).hex()
        if sent and sender not in self._known and not self._keys.is_strong(sent):
            self._rates.check_guesses(address)
        try:
            key = self._keys.check(sent)
        except ApiError:
            if sent:
                self._rates.count_guess(address)
            raise
        if key:
            self._known[sender] = None
            self._known.move_to_end(sender)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return _named(address, key)

    @property
    def _too_large(self) -> str:
        return f"The body is too large: at most {self._limit / 2**20:g} MiB."

    def _measured(self, receive: Receive) -> Receive:
        """Limit a body without a Content-Length while it is received."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise HTTPException(413, self._too_large)
            return message

        return counted


def _named(address: str, key: str) -> dict[str, str]:
    return {"address": address, "key": key} if key else {"address": address}


def _limits(left: tuple[int, int, float] | None) -> dict[str, str]:
    """Headers that state the limits, named as OpenAI names them; none without limits."""
    if left is None:
        return {}
    amount, remaining, seconds = left
    reset = f"{max(0, math.ceil(seconds))}s" if remaining < amount else "0s"
    return {
        "x-ratelimit-limit-requests": str(amount),
        "x-ratelimit-remaining-requests": str(max(0, remaining)),
        "x-ratelimit-reset-requests": reset,
    }


class ForPaths:
    """Routes some paths through `inner`, and the rest (the page) to `app`."""

    def __init__(self, app: ASGIApp, inner: ASGIApp, prefixes: tuple[str, ...]) -> None:
        self.app, self._inner, self._prefixes = app, inner, prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] != "lifespan" and scope["path"].startswith(self._prefixes)
        await (self._inner if ours else self.app)(scope, receive, send)


def offered_protocols(headers: Headers) -> list[str]:
    """The subprotocols that a WebSocket client offers."""
    return [each.strip() for each in headers.get("sec-websocket-protocol", "").split(",")]


def key_of(headers: Headers) -> str:
    """The key as sent by OpenAI's, ElevenLabs' and Azure's clients, or a browser's WebSocket."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return key.strip()
    for each in offered_protocols(headers):
        if each.startswith(SOCKET_KEY):
            return each.removeprefix(SOCKET_KEY)
    return headers.get("xi-api-key", "") or headers.get("api-key", "")


def _as_written(key: str) -> str:
    """A key of other letters than ASCII, which programs send in UTF-8, or in Latin 1 as it is."""
    try:
        return key.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return key


def _no_key() -> ApiError:
    return ApiError(
        401,
        "A valid API key is needed: send the header 'Authorization: Bearer YOUR_KEY'.",
        "invalid_api_key",
        headers={"WWW-Authenticate": "Bearer"},
    )


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
