"""Security headers: a Content-Security-Policy and others.

Gradio's page needs inline scripts and eval, so these are allowed; everything from other sites is
blocked: scripts, styles, fonts and requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SPACES: Final = ("https://huggingface.co", "https://*.huggingface.co", "https://*.hf.space")
OWN: Final = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval'",  # as Gradio needs; ours are files
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "media-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' data: blob:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
PLAIN: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(self)",
}


class SafeHeaders:
    """Middleware. `frame_ancestors`: sites that may show the page in a frame."""

    def __init__(self, app: ASGIApp, frame_ancestors: Sequence[str] = ()) -> None:
        self._app = app
        self._headers = {**PLAIN, "Content-Security-Policy": policy(frame_ancestors)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def saying(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, saying if scope["type"] == "http" else send)


def policy(frame_ancestors: Sequence[str] = ()) -> str:
    """A Content-Security-Policy."""
    every = {**OWN, "frame-ancestors": " ".join(["'self'", *frame_ancestors])}
    return "; ".join(f"{name} {allowed}" for name, allowed in every.items())
