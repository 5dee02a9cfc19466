"""Limits on untrusted JSON before validation, so that no body keeps the server busy.

The cost of a body is its number of values, not its bytes: 4 MiB of `1,` are two million values, and
possibly as many validation errors. Values are bounded by counting separators, which takes a
millisecond, then objects and lists by their length. Knows no schema.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import from_json
from starlette.types import Receive, Scope, Send

from studio.api.errors import ApiError

SEPARATORS: Final = 100_000  # a batch of 32 speaker embeddings of 2,048 numbers has 66,000
KEYS: Final = 64  # of one object
ITEMS: Final = 8192  # of one list: the longest speaker embedding
DEPTH: Final = 6

Body = TypeVar("Body", bound=BaseModel)


class BoundedJson(APIRoute):
    """A route whose JSON body is checked and parsed once; FastAPI reuses the result."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def bounded(request: Request) -> Response:
            if self.body_field:
                request._json = await read_json(request)
            return await handle(request)

        return bounded


class Direct(Generic[Body]):
    """What a route of BoundedJson does for an endpoint that needs no more than a body, without
    FastAPI's layers (docs/experiments/2026-11-29-what-a-request-costs.md)."""

    def __init__(self, model: type[Body], endpoint: Callable[[Body], Awaitable[Response]]) -> None:
        self._model, self._endpoint = model, endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        values = await read_json(Request(scope, receive, send))
        answer = await self._endpoint(self._model.model_validate(values, from_attributes=True))
        await answer(scope, receive, send)


async def read_json(request: Request) -> Any:
    """A request's JSON body within the limits. Raises ApiError."""
    _check_type(request)
    return parse(await _read(request))


def _check_type(request: Request) -> None:
    """Refuse other content types.

    Curl's default is a form, which would be misread; of what ends with +json FastAPI would parse
    any amount.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        problem = "Send JSON, with the header 'Content-Type: application/json'."
        raise ApiError(415, problem, "media_type")


async def _read(request: Request) -> bytes:
    """The body; one with too many values is refused before the rest of it arrives."""
    counted, body = 0, bytearray()
    async for piece in request.stream():
        counted = check_separators(piece, SEPARATORS, counted)
        body += piece
    request._body = bytes(body.removeprefix(BOM_UTF8))  # Windows begins files with it
    return request._body


def parse(body: bytes | str) -> Any:
    """Parse JSON within the limits. Raises ApiError."""
    check_separators(body, SEPARATORS)
    try:
        value = from_json(body, allow_inf_nan=True)
    except ValueError:
        raise ApiError(400, "The body is no JSON object.", "invalid_json") from None
    check_shape(value)
    return value


def check_separators(body: bytes | str, most: int, before: int = 0) -> int:
    """The values of a text and of what came before it. Raises ApiError if they are too many."""
    count = before + (body.count(b",") if isinstance(body, bytes) else body.count(","))
    if count > most:
        raise ApiError(413, f"The body has too many values: at most {most:,}.", "too_many_values")
    return count


def check_shape(value: Any) -> None:
    """Limit objects, lists and depth. Raises ApiError."""
    level = [value]
    for _ in range(DEPTH):
        for node in level:
            _check_length(node)
        level = [
            inner
            for node in level
            if isinstance(node, dict | list)
            for inner in (node.values() if isinstance(node, dict) else node)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ApiError(400, f"The body is nested deeper than {DEPTH} levels.", "too_deep")


def _check_length(node: Any) -> None:
    if isinstance(node, dict) and len(node) > KEYS:
        raise ApiError(
            400, f"An object has at most {KEYS} keys; one has {len(node)}.", "too_many_keys"
        )
    if isinstance(node, list) and len(node) > ITEMS:
        raise ApiError(
            400, f"A list has at most {ITEMS} items; one has {len(node)}.", "too_many_items"
        )
