"""A server of the API alone, where the page's library is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from studio.layout import ROOT

# Gradio and what comes with it are not there for this process.
WALL = """
import importlib.util, sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("gradio", "gradio_client", "pandas", "PIL"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Wall())
there = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "gradio" else there(name, *rest)
"""
API = """
from pathlib import Path
from fastapi.testclient import TestClient
from engine.testing import FakeEngine
from studio.cli.app_context import AppContext
from studio.cli.console import Console
from studio.cli.serve import build_application
from studio.settings import StudioSettings

settings = StudioSettings(page=False, data=Path(sys.argv[1]))
application = build_application(AppContext(settings, Console()), FakeEngine())
client = TestClient(application, base_url="http://localhost")
print(client.get("/v1/audio/voices").status_code)
"""
SERVE = """
import app
sys.argv = ["app.py", "--data", sys.argv[1], "--port", "1"]
app.main()
"""


def run(code: str, data: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WALL + code, str(data)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_api_answers(tmp_path: Path) -> None:
    done = run(API, tmp_path)
    assert done.stdout == "200\n", done.stderr


def test_the_page_says_what_it_needs(tmp_path: Path) -> None:
    done = run(SERVE, tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "timbre-studio[page]" in done.stderr


def test_what_cannot_be_is_told_before_the_server_is_imported(tmp_path: Path) -> None:
    """Its libraries take seconds."""
    wrong = SERVE.replace("app.main()", "sys.argv += ['--profile', 'fast']\n{}")
    wrong = wrong.format(
        "try:\n    app.main()\nfinally:\n    assert 'fastapi' not in sys.modules, 'imported'"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys{wrong}", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: There is no profile 'fast'")
