"""Replicas with a card's step times behind Ray Serve: what they hold, and what a chunk costs.

    python -m bench.stress.cluster_load --replicas 0 1 2 4 --streams 64 --seconds 20
    python -m bench.stress.cluster_load --replicas 0 1 --streams 1 --frames 40  # first audio

Each replica is a torch-free twin whose steps take as long as on the card (`--step-ms`, and
`--row-us` more for each stream); `--slower 4` is a card of a quarter of the speed, so that more of
them fit in the same cores. 0 replicas: one process without Ray. Listeners read PCM over HTTP from
processes of their own, as fast as it comes. Where the host's cores are the limit, the table says
so: "cores" near their number.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

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
from bench.stress.light_listener import Heard, listener
from engine import ClusterEngine, Engine, Replicas, load_profile
from engine.testing import Costs, FakeCheckpoint, FakeEngine
from studio.cli.app_context import AppContext
from studio.cli.console import Console
from studio.cli.serve import build_application
from studio.cluster.ray_environment import ray_environment
from studio.server import serving
from studio.settings import ClusterSettings, StudioSettings

CHUNK_SECONDS = 0.96  # 12 frames
KINDS = {
    "haproxy": HAPROXY,
    "proxy": PROXY,
    "replica": SPEECH,
    "front": FRONT,
    "controller": CONTROLLER,
}


def open_twin(costs: Costs, place: AppContext) -> Engine:
    return FakeEngine(settings=load_profile("balanced", **place.own.engine_changes()), costs=costs)


def open_front(place: AppContext, replicas: Replicas, device: str) -> ClusterEngine:
    checkpoint = FakeCheckpoint()
    settings = load_profile("balanced", **place.own.engine_changes())
    return ClusterEngine({checkpoint.capabilities.name: checkpoint}, settings, replicas)


def measure(port: int, listeners: int, streams: int, text: str, seconds: float) -> str:
    """`listeners` processes of `streams` each."""
    before, start, told = _used(), time.perf_counter(), []
    spawn = multiprocessing.get_context("spawn")
    for _ in range(listeners):
        mine, theirs = spawn.Pipe(duplex=False)
        process = spawn.Process(target=listener, args=(theirs, port, text, streams, seconds))
        process.start()
        theirs.close()  # so that a listener that fails is noticed
        told.append((mine, process))
    heard = Heard()
    for pipe, process in told:
        heard.add(pipe.recv())
        process.join()
    wall, after = time.perf_counter() - start, _used()
    used = {kind: after[kind] - before[kind] for kind in KINDS}
    chunks = max(1.0, heard.seconds / CHUNK_SECONDS)
    cost = "  ".join(f"{kind} {1e6 * used[kind] / chunks:.0f}" for kind in KINDS if used[kind])
    return (
        f"{heard.seconds / seconds:7.1f} audio s/s  {heard.streams} streams, {heard.gaps} gaps, "
        f"{heard.refused} refused, {heard.broken} broken; first audio "
        f"{1000 * statistics.median(heard.firsts or [0]):.1f} ms (worst "
        f"{1000 * max(heard.firsts or [0]):.0f})  {heard.seconds / max(1, heard.pieces):.2f} s a "
        f"piece  us a chunk of 12 frames: {cost}, listeners {1e6 * heard.used / chunks:.0f}  "
        f"cores: cluster {sum(used.values()) / wall:.2f}, listeners {heard.used / wall:.2f} "
        f"of {os.cpu_count()}"
    )


def _used() -> dict[str, float]:
    return {kind: sum(map(cpu_seconds, processes(title))) for kind, title in KINDS.items()}


@contextmanager
def serving_replicas(own: StudioSettings, costs: Costs) -> Iterator[None]:
    from studio.cluster.deployments import Engines
    from studio.cluster.run import running

    with running(AppContext(own, Console()), Engines(partial(open_twin, costs), open_front)):
        yield


@contextmanager
def serving_alone(own: StudioSettings, costs: Costs) -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(target=_alone, args=(own, costs))
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _alone(own: StudioSettings, costs: Costs) -> None:
    place = AppContext(own, Console())
    with open_twin(costs, place) as engine:
        application = build_application(place, engine, False)
        serving.serve(application, serving.listen(own.host, own.port))


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
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--step-ms", type=float, default=5.0)
    parser.add_argument("--row-us", type=float, default=10.0)
    parser.add_argument("--slower", type=float, default=1.0, help="than the card")
    parser.add_argument("--haproxy", action="store_true")
    parser.add_argument("--port", type=int, default=7899)
    given = parser.parse_args()
    os.environ.update(ray_environment(ClusterSettings(haproxy=given.haproxy), os.environ))
    costs = Costs(given.slower * given.step_ms / 1000, given.slower * given.row_us / 1e6)
    for count in given.replicas:
        with tempfile.TemporaryDirectory() as data:
            cluster: dict[str, Any] = {"replicas": count, "gpus": 0, "cpus": 0.1}
            own = StudioSettings.model_validate({
                "data": Path(data), "port": given.port, "page": False,
                "engine": {"max_num_seqs": given.streams},
                "cluster": {**cluster, "haproxy": given.haproxy},
            })  # fmt: skip
            with (serving_replicas if count else serving_alone)(own, costs):
                wait_ready(given.port)
                text, many = "x" * given.frames, max(1, count)
                measure(given.port, many, given.streams, text, 3)  # the first requests are slower
                told = measure(given.port, many, given.streams, text, given.seconds)
                print(f"{count} x {given.streams}: {told}", flush=True)


if __name__ == "__main__":
    main()
