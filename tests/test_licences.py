"""All dependencies have permissive licences, and docs/licences.md lists them correctly."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent

# Free for any use beside Apache-2.0; those of the last line ask to share changes to themselves.
FREE = {
    *("0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0"),
    *(
        "CNRI-Python",
        "ISC",
        "LLVM-exception",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "PSF-2.0",
        "Unlicense",
        "Zlib",
    ),
    *("LGPL", "LGPL-2.1-or-later", "LGPL-3.0-or-later", "MPL-2.0"),
}


@pytest.fixture(scope="module")
def licences() -> Any:
    spec = importlib.util.spec_from_file_location("licences", ROOT / ".ci" / "licences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page() -> dict[str, str]:
    text = (ROOT / "docs" / "licences.md").read_text("utf-8")
    return dict(re.findall(r"^\| ([a-z0-9-]+) \| (.+) \|$", text, re.M))


def parts(licence: str) -> set[str]:
    """`A AND (B OR C)` is three licences."""
    return set(re.split(r" AND | OR | WITH |[()]", licence)) - {""}


def test_every_licence_goes_with_ours(licences: Any) -> None:
    found = licences.packages(ROOT / "requirements.txt")
    assert len(found) > 50
    strange = {name: licences.licence(each) for name, each in found.items()}
    assert {name: each for name, each in strange.items() if not parts(each) <= FREE} == {}


def test_the_page_names_what_is_asked_for(licences: Any, page: dict[str, str]) -> None:
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    requested = {
        re.split("[>=<]", line)[0].replace("_", "-") for line in lines if line[:1].isalpha()
    }
    again = "run python .ci/licences.py > docs/licences.md"
    assert requested - {"package"} <= set(page), again
    assert all(parts(each) <= FREE for name, each in page.items() if name != "package"), again


def test_the_page_says_what_the_packages_say(licences: Any, page: dict[str, str]) -> None:
    """Other versions may bring other packages; those that are on the page must be right."""
    for name, each in licences.packages(ROOT / "requirements.txt").items():
        if name in page:
            assert parts(page[name]) & parts(licences.licence(each)), name


@pytest.mark.parametrize(
    "licence", ["not stated", "GPL-3.0-only", "MIT AND GPL-2.0", "Proprietary"]
)
def test_what_does_not_go_with_ours_is_seen(licence: str) -> None:
    assert not parts(licence) <= FREE


# Runs a program as if some modules were not installed.
WITHOUT = """
import runpy, sys
from importlib.machinery import PathFinder
class Wall(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        gone = name.partition(".")[0] in missing
        return None if gone else super().find_spec(name, path, target)
missing = set(sys.argv[1].split(","))
sys.meta_path = [Wall if each is PathFinder else each for each in sys.meta_path]
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

# What a server imports, then a command: both in one process, which has to import torch but once.
PROGRAM = """
import runpy, sys
import studio.ui.page, studio.api, studio.scripts, studio.server.zerogpu
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_program_needs_nothing_else(licences: Any, tmp_path: Path) -> None:
    """What is here for tests, types and training alone is not missed."""
    known = licences.packages(ROOT / "requirements.txt")
    owners = packages_distributions().items()
    missing = [
        one for one, of in owners if not any(canonicalize_name(each) in known for each in of)
    ]
    assert {"pytest", "mypy"} <= set(missing)
    golden = Path(os.environ.get("GOLDEN_DIR", ROOT / "tests" / "golden"))
    spoken = ["app.py", "say", "Hello.", "--model", str(golden / "custom_voice-1b7")]
    spoken += ["--voice", "ryan", "--max-frames", "5", "--out", str(tmp_path / "hello.mp3")]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, ",".join(missing), str(program), *spoken],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "hello.mp3").stat().st_size > 0


def test_the_table_of_wheels_names_every_requirement() -> None:
    table = (ROOT / "docs" / "platforms.md").read_text("utf-8")
    named = re.findall(r"^\| ([\w-]+) \| [\d.]+ \|", table, re.M)
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    required = [found[0] for line in lines if (found := re.match(r"[\w-]+", line))]
    assert named == required
