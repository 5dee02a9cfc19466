"""Replicas with a card's step times behind Ray Serve: what they hold, and what a chunk costs.

    python -m bench.stress.cluster_load --replicas 1 2 4 --streams 64 --seconds 20

Each replica is a torch-free twin whose steps take as long as on the card (`--step-ms`, and
`--row-us` more for each stream). Clients read PCM over HTTP through Serve's proxy, in processes of
their own. For each count: audio seconds made in a second, and the CPU time of proxies and replicas
a chunk. Where the host's cores are the limit, the table says so: "cores" near their number.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

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
from engine import ClusterEngine, Engine, Replicas, load_profile
from engine.testing import Costs, FakeCheckpoint, FakeEngine
from studio.cli.app_context import AppContext
from studio.cli.console import Console
from studio.settings import ROOT, StudioSettings

FRAME_BYTES = 3840
TEXT = "x" * 1_200  # 96 s of audio, about what a slot holds
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


async def read(client: httpx.AsyncClient, until: float, firsts: list[float]) -> int:
    """Bytes of one stream after another until then."""
    body = {"input": TEXT, "voice": "ryan", "response_format": "pcm", "stream": True}
    heard = 0
    while (start := time.perf_counter()) < until:
        first = True
        async with client.stream("POST", "/v1/audio/speech", json=body) as answer:
            if answer.status_code == 429:  # cores that are too slow for so many
                await asyncio.sleep(0.5)
                continue
            answer.raise_for_status()
            async for piece in answer.aiter_raw():
                if first:
                    firsts.append(time.perf_counter() - start)
                first, heard = False, heard + len(piece)
                if time.perf_counter() > until:
                    break
    return heard


async def listen(url: str, streams: int, seconds: float) -> tuple[int, list[float]]:
    firsts: list[float] = []
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=120) as client:
        until = time.perf_counter() + seconds
        heard = await asyncio.gather(*(read(client, until, firsts) for _ in range(streams)))
    return sum(heard), firsts


def listener(pipe: Connection, url: str, streams: int, seconds: float) -> None:
    pipe.send(asyncio.run(listen(url, streams, seconds)))


def measure(url: str, replicas: int, streams: int, seconds: float) -> str:
    before = _used()
    start = time.perf_counter()
    told = []
    for _ in range(replicas):
        mine, theirs = multiprocessing.get_context("spawn").Pipe(duplex=False)
        values = (theirs, url, streams, seconds)
        process = multiprocessing.get_context("spawn").Process(target=listener, args=values)
        process.start()
        theirs.close()  # so that a listener that fails is noticed
        told.append((mine, process))
    heard = [pipe.recv() for pipe, _ in told]
    for _, process in told:
        process.join()
    wall = time.perf_counter() - start
    after = _used()
    chunks = sum(each[0] for each in heard) / FRAME_BYTES / 12  # of 12 frames, as they become
    audio = sum(each[0] for each in heard) / FRAME_BYTES * 0.08
    first = [value for each in heard for value in each[1]]
    used = {kind: after[kind] - before[kind] for kind in KINDS}
    cost = "  ".join(
        f"{kind} {1e6 * used[kind] / chunks:6.0f} us" for kind in ("haproxy", "proxy", "replica")
    )
    return (
        f"{replicas} x {streams}: {audio / seconds:7.1f} audio s/s  first audio "
        f"{1000 * statistics.median(first):5.0f} ms  a chunk of 12 frames: {cost}  "
        f"cores of the cluster {sum(used.values()) / wall:.2f} of {os.cpu_count()}"
    )


def _used() -> dict[str, float]:
    return {kind: sum(map(cpu_seconds, processes(title))) for kind, title in KINDS.items()}


def prepare(haproxy: bool) -> None:
    """Set what Ray reads when it is imported and started."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT)}
    if haproxy:
        os.environ["RAY_SERVE_ENABLE_HA_PROXY"] = "1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--streams", type=int, default=64, help="of each replica")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--step-ms", type=float, default=5.0)
    parser.add_argument("--row-us", type=float, default=10.0)
    parser.add_argument("--haproxy", action="store_true")
    parser.add_argument("--port", type=int, default=7899)
    given = parser.parse_args()
    prepare(given.haproxy)
    from studio.cluster.deployments import Engines
    from studio.cluster.run import running

    costs = Costs(step=given.step_ms / 1000, row=given.row_us / 1e6)
    engines = Engines(partial(open_twin, costs), open_front)
    for count in given.replicas:
        with tempfile.TemporaryDirectory() as data:
            own = StudioSettings.model_validate({
                "data": Path(data), "port": given.port, "page": False,
                "engine": {"max_num_seqs": given.streams},
                "cluster": {"replicas": count, "gpus": 0, "cpus": 0.1, "haproxy": given.haproxy},
            })  # fmt: skip
            with running(AppContext(own, Console()), engines):
                url = f"http://127.0.0.1:{given.port}"
                time.sleep(3)
                print(measure(url, count, given.streams, given.seconds), flush=True)


if __name__ == "__main__":
    main()
