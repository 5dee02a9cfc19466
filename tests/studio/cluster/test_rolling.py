"""Replicas are exchanged and scaled under load: every stream is whole."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bench.stress.cluster_faults import speak
from bench.stress.cluster_processes import SPEECH, processes
from studio.cli.app_context import AppContext
from studio.settings import StudioSettings
from tests.support.serving import wait_until

PATIENCE = 60.0  # seconds on a busy machine


@contextmanager
def listeners(url: str, count: int = 4) -> Iterator[Counter[str]]:
    """Speak texts one after another, and count how they end."""
    ends: Counter[str] = Counter()
    over = threading.Event()

    def listen() -> None:
        while not over.is_set():
            ends[speak(url)] += 1

    threads = [threading.Thread(target=listen) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield ends
    finally:
        over.set()
        for thread in threads:
            thread.join(60)


def changed(settings: StudioSettings, **changes: Any) -> StudioSettings:
    return StudioSettings.model_validate({**settings.model_dump(exclude_unset=True), **changes})


def deploy(settings: StudioSettings) -> None:
    """As `serve deploy` does, with other settings."""
    from ray import serve

    from studio.cluster.deployments import PREFIXES, SPEECH, build
    from tests.support.cluster.twins import TWINS

    serve.run(build(settings, TWINS)[SPEECH], name=SPEECH, route_prefix=PREFIXES[SPEECH])


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": {"max_num_seqs": 8, "max_waiting": 64}},  # every replica is another one
        {"cluster": {"replicas": 4, "gpus": 0, "cpus": 0.1}},
        {"cluster": {"replicas": 1, "gpus": 0, "cpus": 0.1}},
    ],
    ids=["exchange", "up", "down"],
)
def test_nobody_is_cut_off(url: str, context: AppContext, changes: dict[str, Any]) -> None:
    before = set(processes(SPEECH))
    settings = changed(context.settings, **changes)
    with listeners(url) as ends:
        wait_until(lambda: ends["whole"] >= 4, PATIENCE)
        deploy(settings)
        wait_until(lambda: len(processes(SPEECH)) == settings.cluster.replicas, PATIENCE)
        spoken = ends["whole"]
        wait_until(lambda: ends["whole"] >= spoken + 4, PATIENCE)
    assert set(ends) == {"whole"}
    if "engine" in changes:
        assert not before & set(processes(SPEECH))
    deploy(context.settings)
    wait_until(lambda: len(processes(SPEECH)) == 2, PATIENCE)


def test_load_starts_more_replicas(url: str, context: AppContext) -> None:
    scaled = {"replicas": 1, "max_replicas": 3, "gpus": 0, "cpus": 0.1}
    deploy(changed(context.settings, cluster=scaled))
    wait_until(lambda: len(processes(SPEECH)) == 1, PATIENCE)
    with listeners(url, 14) as ends:  # of 8 slots
        wait_until(lambda: len(processes(SPEECH)) >= 2, PATIENCE)
        spoken = ends["whole"]
        wait_until(lambda: ends["whole"] >= spoken + 14, PATIENCE)
    # One replica may be full; nobody is cut off.
    assert all(end == "whole" or end.startswith("refused 429") for end in ends), ends
    deploy(context.settings)
    wait_until(lambda: len(processes(SPEECH)) == 2, PATIENCE)
