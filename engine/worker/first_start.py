"""A first start on a CPU in a process of its own: what it keeps, a start after it only maps.

Kernels are compiled under Python's lock, so a thread would hold up the speech that the plain form
makes meanwhile. The process goes on when the one that began it ends: a short command leaves a quick
start to the next. Knows no slots of others.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from engine.atomic import exclusive

KINDNESS = 10  # of its priority
NAME, MAX_POSITIONS = "first", 512  # of its model and slots, which nobody hears


def main(arguments: str) -> None:
    """Load a model as a worker does, once at a time on this machine, and end."""
    folder, weights, cache, proof = json.loads(arguments)
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(KINDNESS)
    Path(cache).mkdir(mode=0o700, parents=True, exist_ok=True)  # whose lock is taken
    with exclusive(Path(cache)):
        if not Path(proof).exists():  # many commands may have begun one each
            _load(Path(folder), weights, Path(cache))


def _load(folder: Path, weights: str, cache: Path) -> None:
    # imported by the one whose turn it is
    from engine.checkpoints.checkpoint import LocalCheckpoint
    from engine.worker.core_shares import ROWS
    from engine.worker.worker import TorchWorker
    from engine.worker.worker_settings import WorkerSettings

    checkpoint = LocalCheckpoint(folder, MAX_POSITIONS, NAME, reads_text=False)
    settings = WorkerSettings(ROWS, MAX_POSITIONS, "cpu", weights=weights, cache=cache, fast=True)
    worker = TorchWorker({NAME: checkpoint}, settings)
    try:
        worker.load(NAME)
    finally:
        worker.close()
