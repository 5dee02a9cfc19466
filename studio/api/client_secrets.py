"""Short-lived keys for OpenAI's Realtime, which a server gives to a page in place of its own key.

Each opens `/v1/realtime` alone, counts as the key that asked for it, and brings a session. They are
kept in memory: another process, or this one after a restart, knows none of them.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import Field

from studio.api.bodies.realtime_events import Session
from studio.api.bodies.schemas import Body

PATH: Final = "/v1/realtime"
PREFIX: Final = "ek_"
MOST: Final = 256  # the oldest go first
DEFAULT_SECONDS: Final = 600


class ExpiresAfter(Body):
    anchor: Literal["created_at"] = "created_at"
    seconds: Annotated[int, Field(ge=10, le=7200)] = DEFAULT_SECONDS


class NewSecret(Body):
    """POST /v1/realtime/client_secrets."""

    expires_after: ExpiresAfter = ExpiresAfter()
    session: Session = Session()


@dataclass(frozen=True)
class ClientSecret:
    """`key`: the name of the key that asked for it; empty if none is needed here."""

    session: Session
    key: str
    expires_at: float
    value: str = field(default_factory=lambda: PREFIX + secrets.token_urlsafe(24), repr=False)


class ClientSecrets:
    def __init__(self) -> None:
        self._held: OrderedDict[str, ClientSecret] = OrderedDict()

    def add(self, new: NewSecret, key: str) -> ClientSecret:
        secret = ClientSecret(new.session, key, time.time() + new.expires_after.seconds)
        self._held[secret.value] = secret
        while len(self._held) > MOST:
            self._held.popitem(last=False)
        return secret

    def find(self, path: str, value: str) -> ClientSecret | None:
        """The secret that opens this path, until it expires."""
        if path != PATH or not value.startswith(PREFIX):
            return None
        secret = self._held.get(value)
        if secret and secret.expires_at <= time.time():
            del self._held[value]
            return None
        return secret
