"""`.ci/run` runs what failed once more, alone, and forgives nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKEFILE = f"""
test:
	@$(INSTALL)
	{sys.executable} -m pytest -p xdist -q -n $(WORKERS) $(ARGS)
"""
FINE = "def test_fine(): pass\n"
# Passes from the second time on.
FLAKY = """
from pathlib import Path

def test_now_and_then():
    before = Path("before")
    assert before.exists() or before.touch()
"""

# A process that ends here, once: what comes after it might have been wrong as well.
EXIT = """
def exit_at_once():
    Path("before").touch()
    __import__("os")._exit(3)
"""


def run(folder: Path, install: str = "true", **tests: str) -> subprocess.CompletedProcess[str]:
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    apt = folder / "bin" / "apt-get"
    apt.parent.mkdir()
    apt.write_text("#!/bin/sh\n")
    apt.chmod(0o755)
    (folder / "Makefile").write_text(MAKEFILE)
    for name, text in tests.items():
        (folder / f"test_{name}.py").write_text(text)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    path = os.pathsep.join((str(apt.parent), os.environ["PATH"]))
    command = ["bash", str(folder / ".ci" / "run")]
    # One worker, which takes a second, for what ends a worker.
    workers = "1" if "crash" in tests else "0"
    quick = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "WORKERS": workers}
    environment = {**kept, **quick, "PATH": path, "INSTALL": install}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_what_passes_alone_is_flaky(tmp_path: Path):
    done = run(tmp_path, fine=FINE, flaky=FLAKY)
    assert done.returncode == 0, done.stdout
    assert "flaky: test_flaky.py::test_now_and_then\n" in done.stdout
    assert "1 passed" in done.stdout.split("Once more, alone:")[1]


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        ({"flaky": FLAKY, "wrong": "def test_wrong(): assert 0\n"}, "Once more"),
        ({"flaky": FLAKY, "unread": "import no_such_module\n"}, "ERROR collecting"),
        ({"crash": FLAKY.replace("before.touch()", "exit_at_once()") + EXIT}, "crashed"),
        ({}, "no tests ran"),
    ],
    ids=["fails again", "collection", "crash once", "no tests"],
)
def test_everything_else_fails(tmp_path: Path, tests: dict[str, str], words: str):
    done = run(tmp_path, **tests)
    assert done.returncode != 0, done.stdout
    assert words in done.stdout
    assert "flaky:" not in done.stdout


def test_an_installation_that_fails_is_no_flaky_test(tmp_path: Path):
    """Also where the cache of an earlier run names a test."""
    cache = tmp_path / ".pytest_cache" / "v" / "cache"
    cache.mkdir(parents=True)
    (cache / "lastfailed").write_text('{\n  "test_fine.py::test_fine": true\n}')
    done = run(tmp_path, install="false", fine=FINE)
    assert done.returncode != 0
    assert "passed" not in done.stdout


def test_many_failures_are_no_accident(tmp_path: Path):
    many = "".join(f"def test_{number}(): assert 0\n" for number in range(11))
    done = run(tmp_path, many=many)
    assert done.returncode != 0
    assert "11 tests are named as failed: not run once more." in done.stdout
