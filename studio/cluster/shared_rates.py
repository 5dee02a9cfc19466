"""The rates of keys and addresses, counted once for all processes of a cluster.

One actor counts. It holds nothing that is kept: when it is started anew, it counts anew, and while
it is away each process counts alone. The page is one process and counts its own events.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Final

import ray
from ray.exceptions import RayError

from studio.api.errors import ApiError
from studio.api.rates import Rates
from studio.settings import ApiSettings

NAMESPACE: Final = "timbre"
PATIENCE: Final = 0.5  # seconds for the actor's answer, for which this process does nothing else
START_SECONDS: Final = 20.0  # that it may take to start
AWAY: Final = 5.0  # seconds for which an actor that did not answer is not asked again


class Counter:
    """The actor."""

    def __init__(self, settings: ApiSettings) -> None:
        self._rates = Rates(settings)

    def ask(self, method: str, *values: Any) -> ApiError | None:
        """Errors are values: raised, they would be Ray's."""
        try:
            getattr(self._rates, method)(*values)
        except ApiError as error:
            return error
        return None


class SharedRates(Rates):
    """Calls the actor for what is counted for all processes."""

    def __init__(self, settings: ApiSettings) -> None:
        super().__init__(settings)
        self._shared = [kind for kind in ("key", "address") if self._rates[kind]]
        self._guarded = bool(settings.keys)
        self._away_until = 0.0
        options: dict[str, Any] = {
            "name": actor_name(settings),
            "namespace": NAMESPACE,
            "get_if_exists": True,
            "lifetime": "detached",
            "max_restarts": -1,
            "num_cpus": 0,
        }
        self._actor = (
            ray.remote(Counter).options(**options).remote(settings.model_copy(update={"keys": ()}))
        )
        with suppress(RayError):  # then it is queried later
            ray.get(self._actor.__ray_ready__.remote(), timeout=START_SECONDS)

    def take(self, identity: dict[str, str], cost: int = 1) -> None:
        every = {kind: who for kind, who in identity.items() if kind in self._shared}
        if every:
            self._ask("take", every, cost)
        rest = {kind: who for kind, who in identity.items() if kind not in self._shared}
        super().take(rest, cost)

    def check_guesses(self, address: str) -> None:
        if self._guarded:
            self._ask("check_guesses", address)

    def count_guess(self, address: str) -> None:
        self._ask("count_guess", address)

    def _ask(self, method: str, *values: Any) -> None:
        """Raises ApiError."""
        if time.monotonic() < self._away_until:
            getattr(Rates, method)(self, *values)
            return
        try:
            error = ray.get(self._actor.ask.remote(method, *values), timeout=PATIENCE)
        except RayError:
            self._away_until = time.monotonic() + AWAY
            getattr(Rates, method)(self, *values)
            return
        if error is not None:
            raise error


def actor_name(settings: ApiSettings) -> str:
    """Other rates are counted by another actor, while replicas are exchanged by both."""
    return f"timbre-rates {settings.key_rate} {settings.address_rate}"


def forget(settings: ApiSettings) -> None:
    """End the actor, when a cluster is stopped."""
    with suppress(ValueError):  # there is none
        ray.kill(ray.get_actor(actor_name(settings), NAMESPACE))
