"""Login to the page: if API keys are set, a key is the password.

Gradio shows the login and keeps the sessions; the studio's own routes ask Gradio.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fastapi import HTTPException, Request
from pydantic import SecretStr
from starlette.requests import HTTPConnection
from starlette.types import Scope

from studio.api.auth import Keys, locked_out
from studio.api.errors import ApiError
from studio.ui.gradio_compat.pages import is_logged_in

WELCOME: Final = "Any name, and one of this server's keys as the password."


class Login:
    """Without keys no login is required."""

    def __init__(self, keys: Iterable[SecretStr]) -> None:
        held = [key.get_secret_value() for key in keys]
        self._needed = bool(held)
        self._keys = Keys(held)
        self._page: Any = None  # Gradio's application, once it is mounted

    def guard(self, page: Any) -> None:
        """Set Gradio's application, which has the sessions."""
        self._page = page

    @property
    def asking(self) -> dict[str, Any]:
        """Gradio's arguments for the login."""
        return {"auth": self._allows, "auth_message": WELCOME} if self._needed else {}

    async def check(self, request: Request) -> None:
        """A dependency of the studio's own routes. Raises HTTPException."""
        if not self.knows(request.scope):
            raise HTTPException(401, "Log in on the page first.")

    def _allows(self, name: str, password: str) -> bool:
        if locked_out.get() and not self._keys.is_strong(password):
            return False
        try:
            self._keys.check(password)
        except ApiError:
            return False
        return True

    def knows(self, scope: Scope) -> bool:
        """Whether a request comes from a logged-in browser, or no login is required."""
        if not self._needed:
            return True
        if self._page is None:
            return False
        return is_logged_in(self._page, HTTPConnection(scope))
