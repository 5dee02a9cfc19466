"""Limits on untrusted JSON before validation, so that no body keeps the server busy.

The cost of a body is its number of values, not its bytes: 4 MiB of `1,` are two million values, and
possibly as many validation errors. Values are bounded by counting separators, which takes a
millisecond, then objects and lists by their length. Knows no schema.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Coroutine
from inspect import signature
from typing import Any, Final

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import from_json

from studio.api.errors import ApiError

SEPARATORS: Final = 100_000  # a batch of 32 speaker embeddings of 2,048 numbers has 66,000
KEYS: Final = 64  # of one object
ITEMS: Final = 8192  # of one list: the longest speaker embedding
DEPTH: Final = 6


class BoundedJson(APIRoute):
    """A route whose JSON body is checked and parsed once; FastAPI reuses the result.

    An endpoint that makes its own answer out of a body and the context is called without:
    nothing is left for FastAPI to solve.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle, plain = super().get_route_handler(), self._is_plain()

        async def bounded(request: Request) -> Response:
            if self.body_field:
                request._json = await read_json(request)
                if plain and request._json is not None:
                    return await self._answer(request)
            return await handle(request)

        return bounded

    def _is_plain(self) -> bool:
        takes = list(signature(self.endpoint).parameters)
        return takes == ["body", "context"] and self.response_class is Response

    async def _answer(self, request: Request) -> Response:
        (field,), (context,) = self.dependant.body_params, self.dependant.dependencies
        body, errors = field.validate(request._json, {}, loc=("body",))
        if errors:
            raise RequestValidationError(errors, body=request._json)
        assert context.call
        answer: Response = await self.endpoint(body, await context.call(request))
        return answer


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
