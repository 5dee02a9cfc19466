"""Opens the routes of studio/ui/gradio_compat/routes.py, bounds their bodies, and checks the login.

Where a login is required, it is checked before a body is read. Knows no tabs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.api.auth import locked_out
from studio.api.bodies.json_body import check_separators
from studio.api.errors import ApiError
from studio.api.rates import Rates, address_of
from studio.ui.gradio_compat.routes import EVENT_BYTES, EVENT_SEPARATORS, LOGIN, OPEN, Route


class PageRoutes:
    """Middleware in front of the page. `known` tells whether a request has logged in."""

    def __init__(
        self, app: ASGIApp, known: Callable[[Scope], bool], api: tuple[str, ...], rates: Rates
    ) -> None:
        self._app, self._known, self._api, self._rates = app, known, api, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        preflight = scope.get("method") == "OPTIONS"  # answered by CORS, without a body
        if scope["type"] == "lifespan" or preflight or scope["path"].startswith(self._api):
            return await self._app(scope, receive, send)
        try:
            route = self._admit(scope)
            if route.body and route.quota and not _length(scope):
                receive = self._counted(address_of(scope), receive)
            if route.body == EVENT_BYTES:
                receive = await _read_whole(receive, route.body)
        except ApiError as error:
            return await error.response(scope["path"])(scope, receive, send)
        except ClientDisconnect:
            return None
        if route.body and LOGIN.fullmatch(scope["path"]):
            send = self._judged(address_of(scope), send)
        with suppress(ClientDisconnect):  # raised where a body is read; nobody waits for an answer
            return await self._app(scope, _bounded(receive, route.body), send)
        return None

    def _admit(self, scope: Scope) -> Route:
        """The open route of a request. Raises ApiError."""
        method, path = scope.get("method", ""), scope["path"]
        route = next((each for each in OPEN if each.matches(method, path)), None)
        if route is None:
            raise ApiError(404, "There is no such page.", "not_found")
        if route.body and not LOGIN.fullmatch(path) and not self._known(scope):
            raise ApiError(401, "Log in on the page first.", "login_needed")
        if _length(scope) > route.body:
            raise _too_large(route.body)
        if route.body:
            self._take(address_of(scope), path, _length(scope) if route.quota else 0)
        return route

    def _take(self, address: str, path: str, length: int) -> None:
        """Count an event against what its address may do. Raises ApiError."""
        self._rates.take({"page": address})
        self._rates.take_bytes(address, length)

    def _counted(self, address: str, receive: Receive) -> Receive:
        """A body without a length; past the address's quota it ends as if it had left."""

        async def counted() -> Message:
            message = await receive()
            try:
                if body := message.get("body", b""):
                    self._rates.take_bytes(address, len(body))
            except ApiError:
                return {"type": "http.disconnect"}
            return message

        return counted

    def _judged(self, address: str, send: Send) -> Send:
        """A login's answers. Beyond some wrong passwords of its address it is the refusal, for all
        but a key that cannot be guessed; so the form is read before it is refused."""
        refusal: ApiError | None = None
        try:
            self._rates.check_guesses(address)
        except ApiError as error:
            refusal = error
        locked_out.set(refusal is not None)

        async def judged(message: Message) -> None:
            nonlocal refusal
            if message["type"] == "http.response.start" and message["status"] < 400:
                refusal = None
            elif message["type"] == "http.response.start" and not refusal:
                self._rates.count_guess(address)
            if refusal is None:
                await send(message)
            elif message["type"] == "http.response.start":
                raw = refusal.response()
                await send({**message, "status": raw.status_code, "headers": raw.raw_headers})
            else:
                body = refusal.response().body
                await send({"type": "http.response.body", "body": body, "more_body": False})

        return judged


def _length(scope: Scope) -> int:
    """The length that a request states for its body; 0 where it states none."""
    length = Headers(scope=scope).get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def _bounded(receive: Receive, limit: int) -> Receive:
    """The same messages; a body that grows past the limit ends as if the client had left."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        return message if seen <= limit else {"type": "http.disconnect"}

    return counted


async def _read_whole(receive: Receive, limit: int) -> Receive:
    """The body in one message, its size and separators counted.

    Raises ApiError, and ClientDisconnect where it ends early.
    """
    body, counted = bytearray(), 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        piece = message.get("body", b"")
        counted = check_separators(piece, EVENT_SEPARATORS, counted)
        body += piece
        if len(body) > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            break
    first: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False}

    async def replayed() -> Message:
        nonlocal first
        kept, first = first, None
        return kept or await receive()

    return replayed


def _too_large(limit: int) -> ApiError:
    return ApiError(413, f"The body is too large: at most {limit / 2**20:g} MiB.", "too_large")
