"""Shared fixtures. `GOLDEN_DIR` names the folder of reference checkpoints and tensors."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.programs import CACHE

# Tiny networks: threads would only wait for each other. Set before any test imports torch.
for threads in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# Where a person's data would lie, and what first starts keep. Set before any test reads settings.
DATA = tempfile.mkdtemp(prefix="timbre-data-")
os.environ["XDG_DATA_HOME"], os.environ["TIMBRE_CACHE"] = DATA, str(CACHE)

# A busy machine may stand still in the middle of an example. Read before any test is.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

GOLDEN = Path(os.environ.get("GOLDEN_DIR", Path(__file__).parent / "golden"))


def golden_folders() -> list[Path]:
    """Every checkpoint of the golden folder, found by its golden.json."""
    return sorted(path.parent for path in GOLDEN.glob("*/golden.json"))


@pytest.fixture(scope="session")
def golden_dir() -> Path:
    return GOLDEN


@pytest.fixture(autouse=True)
def logged_in_full() -> Iterator[None]:
    """A server in this process limits repeated lines; other tests count theirs."""
    loggers = [logging.getLogger(name) for name in ("timbre", "uvicorn.error", "asyncio")]
    before = [list(logger.filters) for logger in loggers]
    yield
    for logger, filters in zip(loggers, before, strict=True):
        logger.filters[:] = filters


def pytest_sessionstart(session: pytest.Session) -> None:
    """Kernels are compiled once while pages are tested, not by every worker that needs them."""
    if getattr(session.config.option, "numprocesses", None):  # this process only hands tests out
        gc.enable()
        root, code = session.config.rootpath, ["-m", "tests.support.compile_kernels"]
        compiling = subprocess.Popen([sys.executable, *code], cwd=root, stderr=subprocess.DEVNULL)
        session.config.add_cleanup(compiling.wait)  # the last cleanup comes first
        session.config.add_cleanup(compiling.kill)


def pytest_unconfigure() -> None:
    shutil.rmtree(DATA, ignore_errors=True)


LONG = {"test_tools.py", "test_crowd.py", "test_wheel.py", "test_imports.py", "test_hf_space.py"}


def pytest_configure(config: pytest.Config) -> None:
    """Each worker begins to collect at another folder: what one of them has compiled is kept for
    the others, who would compile all of it at the same time. Until all is imported nothing is
    garbage, and each look for some takes up to 0.3 s."""
    gc.disable()
    if config.args == ["tests"] and (worker := getattr(config, "workerinput", None)):
        here = [path for path in Path(__file__).parent.glob("[!_]*") if path.name != "conftest.py"]
        begin = len(here) * int(worker["workerid"][2:]) // worker["workercount"]
        parts = sorted(map(str, here))
        config.args[:] = [*parts[begin:], *parts[:begin]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a browser first, and others as long: at the end a worker would idle."""
    slow = {item.path for item in items if "browser" in getattr(item, "fixturenames", ())}
    slow |= {item.path for item in items if item.path.name in LONG}
    items.sort(key=lambda item: (item.path not in slow, item.path))


def pytest_collection_finish() -> None:
    """What is imported by now stays, so no collection need look at it again."""
    gc.collect()
    gc.freeze()
    gc.enable()
