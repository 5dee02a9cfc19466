"""/metrics of a cluster: the sums, and each replica beside them."""

from __future__ import annotations

from dataclasses import replace

from engine.testing import FakeEngine
from studio.api.metrics import Metrics


def lines(metrics: Metrics) -> set[str]:
    return set(metrics.text().decode().splitlines())


def test_each_replica_has_its_own_numbers() -> None:
    with FakeEngine() as engine:
        own = replace(engine.stats(), running=2, lowest_lead=1.5)
        replicas = {"one": own, "two": replace(own, running=3, audio_seconds=8.0)}
        engine.stats = lambda: replace(own, running=5, replicas=replicas)
        told = lines(Metrics(engine))
    assert "timbre_running 5.0" in told
    assert 'timbre_replica_running{replica="one"} 2.0' in told
    assert 'timbre_replica_running{replica="two"} 3.0' in told
    assert 'timbre_replica_lead_seconds{replica="one"} 1.5' in told
    assert 'timbre_replica_audio_seconds_total{replica="two"} 8.0' in told


def test_one_engine_has_no_replicas() -> None:
    with FakeEngine() as engine:
        assert not [line for line in lines(Metrics(engine)) if "replica" in line]
