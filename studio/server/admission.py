"""Checks before a request reaches the engine: shares of visitors, rates of the page.

Requests of the API are counted on arrival (studio/api/auth.py); speech that an event of the page
requests is counted here, so that no event is a way around the rate of an address. Knows no routes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine import AdmissionHook, Message, SpeechStream, TooMany
from studio.api.errors import ApiError
from studio.api.page_request import page_address
from studio.api.rates import Rates
from studio.server.visitors import Share
from studio.settings import StudioSettings


def admission(settings: StudioSettings, rates: Rates) -> AdmissionHook:
    """An engine's admission hook."""
    hooks: list[AdmissionHook] = [PageRate(rates)]
    return all_of([*hooks, Share(settings.guest_requests)] if settings.guests else hooks)


class PageRate:
    """Speech that events of the page ask for, counted for their address."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates

    def __call__(self) -> Callable[[SpeechStream | None], object]:
        """Raises TooMany."""
        if address := page_address():
            try:
                self._rates.take({"address": address})
            except ApiError as error:
                wait = error.retry_after or 1
                message = Message(
                    "Too many requests came from your address. Try again in {seconds} s.",
                    seconds=wait,
                )
                raise TooMany(message, wait) from error
        return lambda stream: None


def all_of(hooks: Sequence[AdmissionHook]) -> AdmissionHook:
    """A hook that calls all hooks."""

    def ask() -> Callable[[SpeechStream | None], object]:
        admitted = [hook() for hook in hooks]
        return lambda stream: [tell(stream) for tell in admitted]

    return ask
