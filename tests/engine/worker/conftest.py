"""Workers shared by the tests of this folder: loaded once for each checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from engine.worker.worker import TorchWorker
from tests.conftest import golden_folders
from tests.engine.worker.driver import running

Workers = Callable[[Path], TorchWorker]


@pytest.fixture(scope="session")
def exact() -> Iterator[TorchWorker]:
    """All golden checkpoints in one worker, in float64: rounding never decides a draw there,
    so what is said to be equal must be equal."""
    with running(*golden_folders(), dtype=torch.float64) as worker:
        yield worker


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    """The worker of a golden folder; its users free their slots."""
    made: dict[Path, TorchWorker] = {}
    with ExitStack() as stack:

        def worker(folder: Path) -> TorchWorker:
            if folder not in made:
                made[folder] = stack.enter_context(running(folder))
            return made[folder]

        yield worker
