"""The page's JavaScript: its own tests, ESLint and TypeScript's checks, where node is there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from studio.ui.static_files import FILES, ROOT, preloads
from tests.test_walls import name_of, sources

TOP = Path(__file__).parents[3]
CHECKS = {
    "tests": ["node", "--test", "tests/javascript/"],
    "eslint": [str(TOP / "node_modules/.bin/eslint"), "studio/ui", "tests/javascript"],
    "types": [str(TOP / "node_modules/.bin/tsc"), "--project", "jsconfig.json"],
}
IMPORT = re.compile(r"""^import (?:[^'"]* from )?['"]([^'"]+)['"];""", re.MULTILINE)
# What only a script has: an arrow before a brace, a listener, a function of the browser.
SCRIPT = re.compile(r"\) => [{(\[]|addEventListener|querySelector|<script>[^{]|window\.\w+ =")


@pytest.mark.parametrize("check", CHECKS)
def test_javascript_passes(check: str) -> None:
    program, *_ = CHECKS[check]
    if shutil.which(program) is None:
        pytest.skip("no node here" if program == "node" else "no node_modules here: npm ci")
    done = subprocess.run(
        CHECKS[check], cwd=TOP, check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_import_is_a_file_that_is_served_and_preloaded() -> None:
    for name, content in FILES.items():
        for wanted in IMPORT.findall(content.decode()) if name.endswith(".js") else ():
            target = (ROOT / name).parent / wanted
            imported = target.resolve().relative_to(ROOT).as_posix()
            assert imported in FILES, f"{name} imports {wanted}"
            assert f"/{imported}" in preloads()


def test_no_python_file_holds_javascript() -> None:
    found = [name_of(path) for path in sources("studio") if SCRIPT.search(path.read_text("utf-8"))]
    assert found == []
