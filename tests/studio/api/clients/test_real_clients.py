"""Clients of PyPI and npm as they are, each in an environment of its own, against page and API.

Slow: each installs its client. What they do is in scripts/.
"""

from __future__ import annotations

import shutil
import venv
from pathlib import Path

import pytest

from tests.studio.api.clients.conftest import run

SCRIPTS = Path(__file__).parent / "scripts"
PYTHON = {
    "openai[realtime]==3.57.0": ("openai_voices.py", "openai_realtime.py", "azure_speech.py"),
    "elevenlabs==2.78.0": ("elevenlabs_speech.py", "elevenlabs_contexts.py"),
    "huggingface_hub==2.4.0": ("hf_speech.py",),
    "zaphodvox==2.3.0": ("zaphodvox_speech.py",),
    "openapi-python-client==0.29.1": ("generated_client.py",),
    "mcp==2.3.0": ("mcp_tools.py",),
    "litellm==1.106.2": ("litellm_speech.py",),
    "livekit-plugins-elevenlabs==1.8.9": ("livekit_contexts.py",),
    "livekit-plugins-openai==1.8.9": ("livekit_speech.py",),
    "pipecat-ai[openai]==1.14.0": ("pipecat_speech.py",),
}
NODE = {"openai@7.57.0": "openai_node.mjs", "@gradio/client@2.7.0": "gradio_node.mjs"}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("requirement", PYTHON)
def test_python(requirement: str, url: str, tmp_path: Path) -> None:
    python = install(requirement, tmp_path)
    for script in PYTHON[requirement]:
        run(python, SCRIPTS / script, url)


def test_wyoming(wyoming: str, tmp_path: Path) -> None:
    run(install("wyoming==1.10.2", tmp_path), SCRIPTS / "wyoming_speech.py", wyoming)


def install(requirement: str, folder: Path) -> Path:
    """The Python of an environment of its own."""
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", requirement)
    return python


@pytest.mark.skipif(shutil.which("npm") is None, reason="Node is not installed")
@pytest.mark.parametrize("package", NODE)
def test_node(package: str, url: str, tmp_path: Path) -> None:
    script = shutil.copy(SCRIPTS / NODE[package], tmp_path)
    run("npm", "install", "--silent", "--prefix", tmp_path, package)
    run("node", script, url)
