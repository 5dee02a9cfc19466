"""Clients of PyPI and npm as they are, each in an environment of its own, against page and API.

Slow: each installs its client. What they do is in scripts/.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SCRIPTS = Path(__file__).parent / "scripts"
PYTHON = {
    "elevenlabs==2.78.0": "elevenlabs_speech.py",
    "litellm==1.106.2": "litellm_speech.py",
    "livekit-plugins-openai==1.8.9": "livekit_speech.py",
    "pipecat-ai[openai]==1.14.0": "pipecat_speech.py",
}
NODE = {"openai@7.57.0": "openai_node.mjs", "@gradio/client@2.7.0": "gradio_node.mjs"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = str(tmp_path_factory.mktemp("data"))
    command = [sys.executable, "-m", "tests.support.page_server", data]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as server:
        yield f"http://{server.stdout.readline().strip()}"
        server.stdin.close()
        server.wait(20)


@pytest.mark.parametrize("requirement", PYTHON)
def test_python(requirement: str, url: str, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", requirement)
    run(python, SCRIPTS / PYTHON[requirement], url)


@pytest.mark.skipif(shutil.which("npm") is None, reason="Node is not installed")
@pytest.mark.parametrize("package", NODE)
def test_node(package: str, url: str, tmp_path: Path) -> None:
    script = shutil.copy(SCRIPTS / NODE[package], tmp_path)
    run("npm", "install", "--silent", "--prefix", tmp_path, package)
    run("node", script, url)


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
