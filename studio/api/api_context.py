"""What the routes share: the engine, the voices, the limits and the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Annotated, TypeAlias

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from engine import Library, SpeechEngine, SpeechRequest
from studio.api.auth import IDENTITY, Rates
from studio.api.errors import ApiError
from studio.api.metrics import Metrics
from studio.api.schemas import SpeechOptions
from studio.api.voice_resolver import Voices
from studio.settings import ApiSettings


class Places:
    """How many may be in at a time; a `with` block is one of them."""

    def __init__(self, count: int) -> None:
        self._free = count

    def __enter__(self) -> None:
        if self._free < 1:
            said = "All sockets are in use. Try again soon."
            raise ApiError(503, said, "too_many_sockets", headers={"Retry-After": "5"})
        self._free -= 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._free += 1


@dataclass(frozen=True)
class ApiContext:
    engine: SpeechEngine
    library: Library
    settings: ApiSettings
    rates: Rates
    metrics: Metrics
    voices: Voices
    sockets: Places

    async def request(self, manner: SpeechOptions, text: str, live: bool = True) -> SpeechRequest:
        """The engine's request for a body. Raises RequestError or ApiError."""
        return SpeechRequest(
            text=text,
            voice=await self.voices.of(manner),
            language=manner.language,
            sampling=manner.sampling(),
            seed=manner.seed,
            max_frames=self._frames(manner.max_new_tokens),
            live=live,
            layout=manner.layout,
            ignore_end=manner.ignore_eos,
            model=self.voices.model(manner.model),
        )

    def _frames(self, most: int | None) -> int | None:
        """A bound above the engine's own is the engine's own."""
        return most and min(most, self.engine.settings.max_frames)

    def charge(self, connection: HTTPConnection, cost: int = 1) -> None:
        """Count work against the rates of the one who asked. Raises ApiError (429)."""
        if cost > 0:
            self.rates.take(connection.scope[IDENTITY], cost)


def build_context(engine: SpeechEngine, library: Library, settings: ApiSettings) -> ApiContext:
    voices = Voices(engine, library, settings)
    places = Places(settings.sockets)
    return ApiContext(engine, library, settings, Rates(settings), Metrics(engine), voices, places)


def context_of(connection: HTTPConnection) -> ApiContext:
    """The wire of a request or a socket."""
    wire: ApiContext = connection.app.state.wire
    return wire


# What FastAPI calls for a route is async: for a plain function it would change threads each time.


async def _wire(connection: HTTPConnection) -> ApiContext:
    return context_of(connection)


Shared: TypeAlias = Annotated[ApiContext, Depends(_wire)]


async def json_only(request: Request) -> None:
    """Curl's default content type is a form; say so instead of misreading it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        said = "Send JSON, with the header 'Content-Type: application/json'."
        raise ApiError(415, said, "media_type")
