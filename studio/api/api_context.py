"""The state that all routes share: engine, voices, limits and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Final, TypeAlias, TypeVar

import anyio.to_thread
from fastapi import Depends
from starlette.requests import HTTPConnection

from engine import Library, SpeechEngine, SpeechRequest, SpeechStream, Stats
from studio.api.auth import IDENTITY
from studio.api.bodies.schemas import SpeechOptions
from studio.api.client_secrets import ClientSecrets
from studio.api.errors import ApiError, too_many
from studio.api.metrics import Metrics
from studio.api.rates import Rates
from studio.api.request_labels import report_warning
from studio.api.single_flight import SingleFlight
from studio.api.voice_makers import VoiceMakers
from studio.api.voice_resolver import VoiceResolver
from studio.ranged_response import RecentSounds
from studio.settings import ApiSettings

PREVIEWS: Final = 16 << 20  # bytes of those that were heard last
LONG_TEXT: Final = 1_000  # characters, which are spelt out and turned into ids in 6 to 25 ms

Result = TypeVar("Result")


class Places:
    """How many sockets may be open, in all and of one address."""

    def __init__(self, count: int, of_one: int) -> None:
        self._count, self._of_one = count, of_one
        self._taken: Counter[str] = Counter()

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Raises ApiError."""
        if self._taken.total() >= self._count:
            problem = "All sockets are in use. Try again soon."
            raise ApiError(503, problem, "too_many_sockets", headers={"Retry-After": "5"})
        if self._taken[address] >= self._of_one:
            problem = f"Only {self._of_one} sockets of one address can be open. Close one."
            raise too_many(problem, "too_many_sockets", 5)
        self._taken[address] += 1
        try:
            yield
        finally:
            self._taken[address] -= 1
            self._taken += Counter()  # forgets addresses without sockets


@dataclass(frozen=True)
class ApiContext:
    engine: SpeechEngine
    library: Library
    settings: ApiSettings
    rates: Rates
    metrics: Metrics
    voices: VoiceResolver
    sockets: Places
    makers: VoiceMakers
    stats: SingleFlight[Stats] = field(default_factory=SingleFlight)
    previews: RecentSounds = field(default_factory=lambda: RecentSounds(PREVIEWS))
    secrets: ClientSecrets = field(default_factory=ClientSecrets)
    exposition: SingleFlight[bytes] = field(default_factory=SingleFlight)  # of the metrics

    async def request(self, options: SpeechOptions, text: str, live: bool = True) -> SpeechRequest:
        """Build the engine's request from a body. Raises RequestError or ApiError."""
        options = await self.voices.with_voice(options)
        return SpeechRequest(
            text=text,
            voice=await self.voices.resolve(options),
            language=options.language,
            sampling=options.sampling(),
            seed=options.seed,
            max_frames=self._frames(options.max_new_tokens),
            live=live,
            layout=options.layout,
            ignore_end=options.ignore_eos,
            early_start=options.early_start,
            spell_out=options.spell_out,
            model=self.voices.model(options.model),
            moods=await self.voices.moods_in(text),
        )

    async def submit(self, request: SpeechRequest) -> SpeechStream:
        """Start a request. Raises as the engine does."""
        stream: SpeechStream = await by_length(request.text, self.engine.submit, request)
        for notice in stream.notices:
            report_warning(notice)
        return stream

    def _frames(self, most: int | None) -> int | None:
        """A frame limit, at most the engine's."""
        return most and min(most, self.engine.settings.max_frames)

    def charge(self, connection: HTTPConnection, cost: int = 1) -> None:
        """Count work against the client's rates. Raises ApiError (429)."""
        if cost > 0:
            self.rates.take(connection.scope[IDENTITY], cost)


async def by_length(text: str, work: Callable[..., Result], *values: object) -> Result:
    """Do what takes longer with a longer text: in a thread if it is long."""
    if len(text) <= LONG_TEXT:
        return work(*values)
    return await anyio.to_thread.run_sync(partial(work, *values))


def build_context(
    engine: SpeechEngine, library: Library, settings: ApiSettings, rates: Rates | None = None
) -> ApiContext:
    voices = VoiceResolver(engine, library, settings)
    places = Places(settings.sockets, settings.address_sockets)
    rates = rates or Rates(settings)
    makers = VoiceMakers(engine, library, voices)
    return ApiContext(engine, library, settings, rates, Metrics(engine), voices, places, makers)


def context_of(connection: HTTPConnection) -> ApiContext:
    """The context of a request or a WebSocket."""
    context: ApiContext = connection.app.state.context
    return context


# Dependencies are async: FastAPI runs plain functions in another thread.


async def _context(connection: HTTPConnection) -> ApiContext:
    return context_of(connection)


Shared: TypeAlias = Annotated[ApiContext, Depends(_context)]
