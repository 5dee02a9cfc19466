"""Every kind of engine on fake workers, opened alike: what the contract of an engine is held to."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, cast

from engine import EngineSettings, Preset, SpeechEngine, SpeechRequest
from engine.plan import Checkpoint, StepPlan
from engine.remote.process import EngineProcess, process_engine
from engine.remote.remote_engine import RemoteEngine
from engine.remote.replicas import ReplicaPool
from engine.remote.zerogpu import LentDevice
from engine.testing import Costs, FakeCheckpoint, FakeEngine
from tests.support.cluster.local_replicas import LocalReplicas

HELLO = SpeechRequest("Hello there, and good evening.", Preset("ryan"), seed=4)
LONG = replace(HELLO, max_frames=4000, ignore_end=True)  # 40 s with SLOW
SLOW = Costs(step=0.01)


@dataclass
class Opened:
    """An engine, and how what speaks in it dies."""

    engine: SpeechEngine
    die: Callable[[], object]
    dies_for_good: bool = False
    tries_again: bool = True  # requests that nobody has heard, when it has died
    open_text: bool = True


Open = Callable[..., Any]  # an Opened, as a context


@contextmanager
def in_process(costs: Costs | None = None, **settings: Any) -> Iterator[Opened]:
    with FakeEngine(settings=_settings(settings), costs=costs) as engine:

        def fault(plan: StepPlan) -> None:
            raise RuntimeError("illegal memory access")

        def die() -> None:
            engine.worker.reset = partial(fault, None)  # type: ignore[method-assign, arg-type]
            engine.worker.fault = fault

        yield Opened(engine, die, dies_for_good=True, tries_again=False)


@contextmanager
def own_process(costs: Costs | None = None, **settings: Any) -> Iterator[Opened]:
    with process_engine(partial(fake, costs, settings)) as engine:
        process = cast(EngineProcess, engine.transport)
        yield Opened(engine, process._process.kill)


@contextmanager
def zerogpu(costs: Costs | None = None, **settings: Any) -> Iterator[Opened]:
    """Run the lent calls in this process, one at a time, until the device is taken away."""
    taken: list[bool] = []
    device = Lock()

    def lend(task: Any, *, duration: Any = None) -> Any:
        def run(*values: Any) -> Any:
            with device:
                for part in task(*pickle.loads(pickle.dumps(values))):
                    if taken:
                        taken.clear()
                        return
                    yield part

        return run

    loaded = FakeCheckpoint()
    alone = EngineSettings(max_num_seqs=1)
    make = partial(FakeEngine, [loaded], alone, costs, start=False)
    names = {loaded.capabilities.name: loaded}
    with RemoteEngine(names, _settings(settings), LentDevice(make, lend)) as engine:
        yield Opened(engine, lambda: taken.append(True), tries_again=False, open_text=False)


@contextmanager
def cluster(costs: Costs | None = None, **settings: Any) -> Iterator[Opened]:
    """Two replicas; the one that was asked first dies, the other one serves on."""
    loaded, there = FakeCheckpoint(), _settings(settings)
    engines = {f"replica-{number}": FakeEngine(settings=there, costs=costs) for number in range(2)}
    replicas = LocalReplicas(engines)
    try:
        pool = ReplicaPool(replicas, there)
        with RemoteEngine({loaded.capabilities.name: loaded}, there, pool) as engine:
            yield Opened(engine, lambda: replicas.kill(replicas.asked[0]))
    finally:
        for each in engines.values():
            each.close()


KINDS: Mapping[str, Open] = {
    "in-process": in_process,
    **({} if sys.platform == "win32" else {"own-process": own_process}),
    "zerogpu": zerogpu,
    "cluster": cluster,
}


def fake(
    costs: Costs | None, settings: Mapping[str, Any], checkpoints: Mapping[str, Checkpoint]
) -> FakeEngine:
    """The engine of another process."""
    there = tuple(cast(FakeCheckpoint, each) for each in checkpoints.values())
    return FakeEngine(there or (FakeCheckpoint(),), _settings(settings), costs)


def _settings(changes: Mapping[str, Any]) -> EngineSettings:
    return EngineSettings(**{"max_num_seqs": 4, "max_wait": 1e6, **changes})
