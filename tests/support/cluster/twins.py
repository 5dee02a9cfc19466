"""Engines of a cluster for tests: torch-free twins, opened inside Ray's processes."""

from __future__ import annotations

from engine import CheckpointError, Engine, RemoteEngine, Replicas, load_profile
from engine.remote.replicas import ReplicaPool
from engine.testing import Costs, FakeCheckpoint, FakeEngine
from studio.cli.app_context import AppContext
from studio.cluster.deployments import Engines

SLOTS = 8
SLOW = Costs(step=0.005)  # a frame in 5 ms, so that a stream can be cut


def open_twin(context: AppContext) -> Engine:
    return FakeEngine(settings=load_profile("cpu", **context.settings.engine_changes()), costs=SLOW)


def open_twin_front(context: AppContext, replicas: Replicas, device: str) -> RemoteEngine:
    checkpoint = FakeCheckpoint()
    settings = load_profile("cpu", **context.settings.engine_changes())
    pool = ReplicaPool(replicas, settings)
    return RemoteEngine({checkpoint.capabilities.name: checkpoint}, settings, pool)


def open_nothing(context: AppContext) -> Engine:
    raise CheckpointError("This model's file is cut short. Download it again.")


TWINS = Engines(open_twin, open_twin_front)
