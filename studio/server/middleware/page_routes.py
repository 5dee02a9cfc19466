"""Which of Gradio's routes are open, how large their bodies may be, and who may send one.

Gradio serves more than this page uses: recordings converted by ffmpeg, code written by a model, a
proxy, a dashboard. What is not listed here does not exist. Where a login is asked for, it is
checked before a body is read. A test holds the list against the routes of the Gradio that is
installed. Knows no tabs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.api.auth import locked_out
from studio.api.bodies.json_body import check_separators
from studio.api.errors import ApiError
from studio.api.rates import Rates, address_of
from studio.imports.project_uploads import MOST_FILE

UPLOAD_BYTES: Final = 101 << 20  # a file of the largest size and its form
EVENT_BYTES: Final = 8 << 20  # the values of a tab: the longest script is 2,000,000 characters
EVENT_SEPARATORS: Final = 200_000
NOTE_BYTES: Final = 16 << 10


@dataclass(frozen=True)
class Route:
    """`path` is a pattern of the whole path; `body` the most bytes that may be sent to it.

    `quota`: they count for what an address may send in an hour, as Gradio keeps files that long.
    """

    methods: tuple[str, ...]
    path: str
    body: int = 0
    quota: bool = True

    def matches(self, method: str, path: str) -> bool:
        return method in self.methods and re.fullmatch(self.path, path) is not None


READ: Final = ("GET", "HEAD")
OPEN: Final = (
    Route(READ, r"/|/config/?|/theme\.css|/favicon\.ico|/robots\.txt|/manifest\.json"),
    Route(READ, r"/(static|assets|svelte)/.*|/pwa_icon(/.*)?"),
    Route(READ, r"/gradio_api/(info|user|login_check|token|app_id|openapi\.json)/?"),
    Route(READ, r"/gradio_api/(startup-events|theme\.css|queue/data|queue/status)"),
    Route(READ, r"/gradio_api/(upload_progress|heartbeat/[^/]+)"),
    Route(READ, r"/gradio_api/file[=/].+"),
    Route(READ, r"/gradio_api/call/(v2/)?[^/]+/[^/]+"),
    Route(("POST",), r"/gradio_api/(queue/join|component_server/?)", EVENT_BYTES),
    Route(("POST",), r"/gradio_api/(api|run|call|call/v2)/[^/]+/?", EVENT_BYTES),
    Route(("POST",), r"/gradio_api/(cancel|reset/?)", NOTE_BYTES),
    Route(("POST",), r"/gradio_api/upload", UPLOAD_BYTES),
    Route(("POST",), r"/login/?", NOTE_BYTES),
    Route(READ, r"/logout"),
    Route(READ, r"/timbre/.+"),  # live audio and downloads, beside the page
    # Few lie there, for minutes: a second try of a large one must not lock its sender out.
    Route(("POST",), r"/timbre/projects", MOST_FILE, quota=False),
)
LOGIN: Final = re.compile(r"/login/?")


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
            return await error.response()(scope, receive, send)
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
    """What a request says of its body; 0 where it says nothing."""
    told = Headers(scope=scope).get("content-length", "0")
    return int(told) if told.isdecimal() else 0


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
        told, first = first, None
        return told or await receive()

    return replayed


def _too_large(limit: int) -> ApiError:
    return ApiError(413, f"The body is too large: at most {limit / 2**20:g} MiB.", "too_large")
