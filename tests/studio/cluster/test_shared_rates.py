"""Rates of a cluster: one count for all its processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from pydantic import SecretStr

from studio.api.errors import ApiError
from studio.api.rates import Rates
from studio.settings import ApiSettings

SETTINGS = ApiSettings(keys=(SecretStr("k"),), key_rate="5/minute", address_rate="8/minute")


@pytest.fixture
def pair(address: str) -> Iterator[tuple[Rates, Rates]]:
    """The rates as two processes have them."""
    from studio.cluster.shared_rates import SharedRates, forget

    yield SharedRates(SETTINGS), SharedRates(SETTINGS)
    forget(SETTINGS)


def admitted(rates: tuple[Rates, Rates], identity: dict[str, str], tries: int) -> int:
    """How many requests are admitted that reach one process and the other in turn."""
    count = 0
    for number in range(tries):
        with suppress(ApiError):
            rates[number % 2].take(identity)
            count += 1
    return count


def test_a_limit_holds_for_all_together(pair: tuple[Rates, Rates]) -> None:
    assert admitted(pair, {"key": "one", "address": "10.0.0.1"}, 12) == 5
    assert admitted(pair, {"key": "two", "address": "10.0.0.1"}, 12) == 3  # of the address's 8
    assert admitted(pair, {"key": "two", "address": "10.0.0.2"}, 12) == 2  # of the key's 5


def test_guesses_are_counted_for_all_together(pair: tuple[Rates, Rates]) -> None:
    for number in range(10):
        pair[number % 2].check_guesses("10.0.0.3")
        pair[number % 2].count_guess("10.0.0.3")
    for rates in pair:
        with pytest.raises(ApiError):
            rates.check_guesses("10.0.0.3")


def test_an_actor_that_does_not_answer_is_waited_for_once(
    pair: tuple[Rates, Rates], monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray
    from ray.exceptions import GetTimeoutError

    waits = list[float]()

    def get(answer: object, timeout: float) -> None:
        waits.append(timeout)
        raise GetTimeoutError

    monkeypatch.setattr(ray, "get", get)
    assert admitted((pair[0], pair[0]), {"key": "one", "address": "10.0.0.4"}, 20) == 5
    assert waits == [0.5]


def test_without_the_actor_each_counts_alone(pair: tuple[Rates, Rates]) -> None:
    import ray

    from studio.cluster.shared_rates import NAMESPACE, actor_name

    ray.kill(ray.get_actor(actor_name(SETTINGS), NAMESPACE))
    assert admitted(pair, {"key": "one", "address": "10.0.0.1"}, 20) == 10
