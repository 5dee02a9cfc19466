"""HEAD, OPTIONS and 405 for every path of the API.

HEAD is answered as GET without its body. A path that has no such method says which it has.
Pure ASGI. Knows no route by name.
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.api.errors import ApiError

UNKNOWN = "unknown"  # the name of the route for all other paths
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class Head:
    """Middleware: HEAD as GET; of the answer only the head is sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            return await self._app(scope, receive, send)

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        return await self._app({**scope, "method": "GET"}, receive, without_body)


def allowed_methods(api: FastAPI, scope: Scope) -> list[str]:
    """The methods that a path has; none for an unknown path."""
    found = {
        method
        for method in METHODS
        for route in api.router.routes
        if getattr(route, "name", "") != UNKNOWN
        and not isinstance(route, Mount)  # the page
        and route.matches({**scope, "method": method})[0] is Match.FULL
    }
    also = ["HEAD"] if "GET" in found else []
    return sorted([*found, *also, "OPTIONS"]) if found else []


def refuse_method(method: str, path: str, allowed: list[str]) -> ApiError:
    """405, or 404 where the path has no method at all."""
    if not allowed:
        problem = f"There is no {method} {path[:200]}. docs/api.md lists what there is."
        return ApiError(404, problem, "not_found")
    listed = ", ".join(allowed)
    problem = f"{path[:200]} has no {method}; it has {listed}."
    return ApiError(405, problem, "method_not_allowed", headers={"Allow": listed})
