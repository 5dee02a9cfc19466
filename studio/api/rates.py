"""How often a key or an address may send requests or guess a key, and how much it may upload.

Counts are kept in memory: a new process begins at zero. Knows no routes.
"""

from __future__ import annotations

import sys
import time
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute, parse_many
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter
from starlette.types import Scope

from studio.api.errors import ApiError, too_many
from studio.settings import ApiSettings

CLOCK_SLACK = 1.0  # seconds that a clock may be put right by
GUESSES: Final = RateLimitItemPerMinute(10)  # wrong keys and passwords of one address
LONGEST_ADDRESS: Final = 64  # characters; one of IPv6 has 45, and the name of its network card
KIB: Final = 1024  # what is sent to the page is counted in


class Rates:
    """How often a key or an address may send requests."""

    def __init__(self, settings: ApiSettings) -> None:
        self._rates = {
            "key": _items(settings.key_rate),
            "address": _items(settings.address_rate),
            "page": _items(settings.page_rate),
        }
        self._sent = RateLimitItemPerHour(max(1, settings.page_bytes // KIB))
        self._latest = 0.0
        self._restart()

    def _restart(self) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._quota = FixedWindowRateLimiter(MemoryStorage())

    def take(self, identity: dict[str, str], cost: int = 1) -> None:
        """Count a request as `cost`, or refuse it and say when to come back."""
        self._heed_clock()
        due = [(item, kind, who) for kind, who in identity.items() for item in self._rates[kind]]
        for item, kind, who in due:
            if not self._limiter.test(item, kind, who, cost=cost):
                raise self._refusal(item, kind, who)
        for item, kind, who in due:
            self._limiter.hit(item, kind, who, cost=cost)

    def most(self, identity: dict[str, str]) -> int:
        """Requests that can be counted at once at all."""
        every = (item.amount for kind in identity for item in self._rates[kind])
        return min(every, default=sys.maxsize)

    def left(self, identity: dict[str, str]) -> tuple[int, int, float] | None:
        """Requests that may be sent in a window, those that are left, and seconds until there is
        one more; of the limit with the least left. None without limits."""
        found = []
        for kind, who in identity.items():
            for item in self._rates[kind]:
                stats = self._limiter.get_window_stats(item, kind, who)
                found.append((item.amount, stats.remaining, stats.reset_time - time.time()))
        return min(found, key=lambda limit: limit[1], default=None)

    def take_bytes(self, address: str, count: int) -> None:
        """Count what an address sends to the page; files are kept for an hour. Raises ApiError."""
        self._heed_clock()
        if not self._quota.hit(self._sent, "sent", address, cost=-(-count // KIB)):
            wait = self._quota.get_window_stats(self._sent, "sent", address).reset_time
            most = f"{self._sent.amount / KIB:g} MiB"
            message = (
                f"More than {most} were sent from this address within an hour. Try again later."
            )
            raise too_many(message, "quota", wait - time.time())

    def check_guesses(self, address: str) -> None:
        """Refuse an address that has guessed too often. Raises ApiError."""
        self._heed_clock()
        if not self._limiter.test(GUESSES, "guess", address):
            wait = self._limiter.get_window_stats(GUESSES, "guess", address).reset_time
            message = (
                "Too many wrong keys or passwords came from this address. Try again in a minute."
            )
            raise too_many(message, "too_many_guesses", wait - time.time())

    def count_guess(self, address: str) -> None:
        self._limiter.hit(GUESSES, "guess", address)

    def _heed_clock(self) -> None:
        """Count anew when the clock is set back: what was counted would lie in the future."""
        now = time.time()
        if now < self._latest - CLOCK_SLACK:
            self._restart()
        self._latest = now

    def _refusal(self, item: RateLimitItem, kind: str, who: str) -> ApiError:
        wait = self._limiter.get_window_stats(item, kind, who).reset_time - time.time()
        whose = "address" if kind == "page" else kind
        message = f"The limit is {item.amount} requests in {item.get_expiry()} s for one {whose}."
        return too_many(f"{message} Try again in {max(1, round(wait))} s.", "rate_limit", wait)


def address_of(scope: Scope) -> str:
    """The address that a request comes from; one household of IPv6 counts as one address."""
    return household((scope.get("client") or ("", 0))[0])


def household(host: str) -> str:
    """Long ones are cut: where all proxies are believed, strangers write them."""
    return _household(host[:LONGEST_ADDRESS])


@lru_cache(1024)
def _household(host: str) -> str:
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and not address.ipv4_mapped:
        return address.packed[:8].hex(":", 2)  # `exploded` fails where a network card is named
    return host


def _items(rate: str) -> list[RateLimitItem]:
    return parse_many(rate) if rate else []
