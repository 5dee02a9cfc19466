"""Replicas with a card's step times behind Ray Serve: what they hold, and what a chunk costs.

    python -m bench.stress.cluster_load --replicas 0 1 2 4 --streams 64 --seconds 20
    python -m bench.stress.cluster_load --replicas 0 1 --streams 1 --frames 40  # first audio
    python -m bench.stress.cluster_load --replicas 1 2 4 8 --slower 48 --before 1 --seconds 3

Each replica is a torch-free twin whose steps take as long as on the card (`--step-ms`, and
`--row-us` more for each stream). With `--slower 32` all of them, their admission and the listeners
live by a clock that is so much slower (bench/stress/slow_clock.py); seconds, rates and cores are
then those of that clock, CPU time is as it was. 0 replicas: one process without Ray. Listeners read
PCM over HTTP from processes of their own, as fast as it comes. Where the host's cores are the
limit, the table says so: "busy" near their number.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import httpx

from bench.stress.cluster_processes import (
    CONTROLLER,
    FRONT,
    HAPROXY,
    PROXY,
    SPEECH,
    cpu_seconds,
    processes,
)
from bench.stress.light_listener import Heard, Load, listener
from bench.stress.slow_clock import SlowClock, slow_streams
from engine import Engine, RemoteEngine, Replicas, load_profile
from engine.remote.replicas import ReplicaPool
from engine.testing import Costs, FakeCheckpoint, FakeEngine
from studio.cli.app_context import AppContext
from studio.cli.console import Console
from studio.cli.serve import build_application
from studio.cluster.ray_environment import ray_environment
from studio.server import serving
from studio.settings import ClusterSettings, StudioSettings

OpenTwin: TypeAlias = Callable[[AppContext], Engine]

CHUNK_SECONDS = 0.96  # 12 frames
KINDS = {
    "haproxy": HAPROXY,
    "proxy": PROXY,
    "replica": SPEECH,
    "front": FRONT,
    "controller": CONTROLLER,
}


def open_twin(costs: Costs, slower: float, context: AppContext) -> Engine:
    """In a process of its own."""
    clock = SlowClock(slower)
    slow_streams(clock)
    settings = load_profile(None, **context.settings.engine_changes())
    return FakeEngine(settings=settings, costs=costs, clock=clock)


def open_front(context: AppContext, replicas: Replicas, device: str) -> RemoteEngine:
    checkpoint = FakeCheckpoint()
    settings = load_profile(None, **context.settings.engine_changes())
    pool = ReplicaPool(replicas, settings)
    return RemoteEngine({checkpoint.capabilities.name: checkpoint}, settings, pool)


def measure(load: Load, listeners: int) -> str:
    """Measure with `listeners` processes."""
    clock = load.clock
    before, start, lines = _used(), clock.now(), []
    spawn = multiprocessing.get_context("spawn")
    for _ in range(listeners):
        mine, theirs = spawn.Pipe(duplex=False)
        process = spawn.Process(target=listener, args=(theirs, load))
        process.start()
        theirs.close()  # so that a listener that fails is noticed
        lines.append((mine, process))
    heard = Heard()
    for pipe, process in lines:
        heard.add(pipe.recv())
        process.join()
    passed, after = clock.now() - start, _used()
    used = {kind: after[kind] - before[kind] for kind in KINDS}
    chunks = max(1.0, heard.seconds / load.seconds * passed / CHUNK_SECONDS)
    cost = "  ".join(f"{kind} {1e6 * used[kind] / chunks:.0f}" for kind in KINDS if used[kind])
    cores = "  ".join(f"{kind} {used[kind] / passed:.2f}" for kind in KINDS if used[kind])
    busy = (sum(used.values()) + heard.used) / passed / clock.factor
    return (
        f"{heard.seconds / load.seconds:7.1f} audio s/s  {heard.streams} streams, "
        f"{heard.gaps} gaps, {heard.refused} refused, {heard.broken} broken; first audio "
        f"{1000 * statistics.median(heard.firsts or [0]):.1f} ms (worst "
        f"{1000 * max(heard.firsts or [0]):.0f})  {heard.seconds / max(1, heard.pieces):.2f} s a "
        f"piece  us a chunk of 12 frames: {cost}, listeners {1e6 * heard.used / chunks:.0f}  "
        f"cores: {cores}, listeners {heard.used / passed:.2f}  "
        f"busy {busy:.2f} of {os.cpu_count()}, load {os.getloadavg()[0]:.0f}"
    )


def _used() -> dict[str, float]:
    return {kind: sum(map(cpu_seconds, processes(title))) for kind, title in KINDS.items()}


@contextmanager
def serving_replicas(studio_settings: StudioSettings, open_engine: OpenTwin) -> Iterator[None]:
    from studio.cluster.deployments import Engines
    from studio.cluster.run import running

    with running(AppContext(studio_settings, Console()), Engines(open_engine, open_front)):
        yield


@contextmanager
def serving_alone(studio_settings: StudioSettings, open_engine: OpenTwin) -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(
        target=_alone, args=(studio_settings, open_engine)
    )
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _alone(studio_settings: StudioSettings, open_engine: OpenTwin) -> None:
    context = AppContext(studio_settings, Console())
    with open_engine(context) as engine:
        application = build_application(context, engine)
        serving.serve(application, serving.listen(studio_settings.host, studio_settings.port))


def wait_ready(port: int) -> None:
    for _ in range(200):
        try:
            if httpx.get(f"http://127.0.0.1:{port}/ready", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise SystemExit("the cluster is not ready")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--replicas", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--streams", type=int, default=64, help="of each replica")
    parser.add_argument("--frames", type=int, default=1_200, help="of a text: 96 s")
    parser.add_argument("--before", type=float, default=3, help="seconds before audio counts")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--step-ms", type=float, default=5.0)
    parser.add_argument("--row-us", type=float, default=10.0)
    parser.add_argument("--slower", type=float, default=1.0, help="than the wall's clock")
    parser.add_argument("--haproxy", action="store_true")
    parser.add_argument("--port", type=int, default=7899)
    given = parser.parse_args()
    os.environ.update(ray_environment(ClusterSettings(haproxy=given.haproxy), os.environ))
    costs = Costs(given.step_ms / 1000, given.row_us / 1e6)
    open_engine = partial(open_twin, costs, given.slower)
    for count in given.replicas:
        with tempfile.TemporaryDirectory() as data:
            cluster: dict[str, Any] = {"replicas": count, "gpus": 0, "cpus": 0.1}
            settings = StudioSettings.model_validate({
                "data": Path(data), "port": given.port, "page": False,
                "engine": {"max_num_seqs": given.streams},
                "cluster": {**cluster, "haproxy": given.haproxy},
            })  # fmt: skip
            with (serving_replicas if count else serving_alone)(settings, open_engine):
                wait_ready(given.port)
                clock, text = SlowClock(given.slower), "x" * given.frames
                load = Load(given.port, text, given.streams, clock, given.before, given.seconds)
                figures = measure(load, max(1, count))
                print(f"{count} x {given.streams}: {figures}", flush=True)


if __name__ == "__main__":
    main()
