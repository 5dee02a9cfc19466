"""Serve's autoscaling of a cluster: replicas over time, under load and after it.

    python -m bench.stress.cluster_scaling --most 4

One twin of two slots behind Ray Serve, which may start others; eight listeners of the API come, and
go when all replicas run. Then the replicas stop by themselves, ten minutes later. How each stream
ended is counted: none may be broken off.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from functools import partial
from pathlib import Path

from bench.stress.cluster_faults import Load
from bench.stress.cluster_load import open_front, open_twin
from bench.stress.cluster_processes import SPEECH, processes
from engine.testing import Costs
from studio.cli.app_context import AppContext
from studio.cli.console import Console
from studio.cluster.ray_environment import ray_environment
from studio.settings import ClusterSettings, StudioSettings

LONGEST = 1_000.0  # seconds until the number of replicas must be reached


def wait_replicas(wanted: int, start: float) -> None:
    """Tell each change of their number until it is as wanted. Raises TimeoutError."""
    before, count = time.monotonic(), -1
    while count != wanted:
        if time.monotonic() - before > LONGEST:
            raise TimeoutError(f"no {wanted} replicas within {LONGEST:.0f} s")
        now = len(processes(SPEECH))
        if now != count:
            print(f"{time.monotonic() - start:7.1f} s: {now} replicas", flush=True)
        count = now
        time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--most", type=int, default=4)
    parser.add_argument("--port", type=int, default=7895)
    given = parser.parse_args()
    os.environ.update(ray_environment(ClusterSettings(), os.environ))
    from studio.cluster.deployments import Engines
    from studio.cluster.run import running

    engines = Engines(partial(open_twin, Costs(step=0.005), 1.0), open_front)
    with tempfile.TemporaryDirectory() as data:
        settings = StudioSettings.model_validate({
            "data": Path(data), "port": given.port, "page": False,
            "engine": {"max_num_seqs": 2}, "api": {"saved_voices": 100_000},
            "cluster": {"replicas": 1, "max_replicas": given.most, "gpus": 0, "cpus": 0.1},
        })  # fmt: skip
        with running(AppContext(settings, Console()), engines):
            start, load = time.monotonic(), Load(f"http://127.0.0.1:{given.port}")
            wait_replicas(given.most, start)
            time.sleep(20)
            load.stop()
            ends = ", ".join(f"{count} {end}" for end, count in sorted(load.ends.items()))
            print(f"{time.monotonic() - start:7.1f} s: the load ends; {ends}", flush=True)
            wait_replicas(1, start)


if __name__ == "__main__":
    main()
