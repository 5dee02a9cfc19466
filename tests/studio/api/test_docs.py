"""Every example of docs/api.md and docs/script.md is run, as it stands, against a server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile

from engine import Library
from engine.testing import FakeEngine
from studio.api import ApiSettings, create_api
from studio.api.bodies.schemas import SpeechBody
from studio.api.responses.encoding import MEDIA_TYPES
from tests.studio.api.routes.test_voices import recording

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "api.md"
TEXTS = DOCS.read_text("utf-8") + (ROOT / "docs" / "script.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(sh|python)\n(.*?)^```", TEXTS, re.M | re.S)
ADDRESS = "127.0.0.1:7860"
WRITTEN = re.compile(r"(?:-o |--out |open\(\"|to_file\(\")([\w-]+\.\w+)")  # files an example names


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = [
        sys.executable,
        "-m",
        "tests.support.page_server",
        str(tmp_path_factory.mktemp("docs")),
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as server:
        yield server.stdout.readline().strip()
        server.stdin.close()
        server.wait(60)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where an example runs: it may have a recording of its reader."""
    (tmp_path / "me.wav").write_bytes(recording())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "code"), BLOCKS, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(BLOCKS)]
)
def test_example(kind: str, code: str, address: str, folder: Path) -> None:
    code = code.replace(ADDRESS, address)
    assert address in code
    shell = ["bash", "-euo", "pipefail", "-c"]
    printed = run(shell if kind == "sh" else [sys.executable, "-c"], code)
    if "gradio_client" in code:  # a line for a path
        check(Path(printed.strip()))
    for name in WRITTEN.findall(code):
        check(folder / name)


def run(command: list[str], code: str) -> str:
    """Run an example as a reader would; curl fails when it is refused."""
    code = code.replace("curl -sS", "curl --fail-with-body -sS")
    code = code.replace("python app.py", f"{sys.executable} {ROOT / 'app.py'}")
    done = subprocess.run([*command, code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(file: Path) -> None:
    """What an example wrote is sound."""
    if file.suffix in (".wav", ".mp3"):
        assert soundfile.info(file).duration > 0.3
    elif file.suffix == ".pcm":
        assert file.stat().st_size > 3840
    else:
        assert "error" not in json.loads(file.read_text("utf-8"))


def test_every_field_is_in_the_table() -> None:
    text = DOCS.read_text("utf-8")
    assert not [name for name in SpeechBody.model_fields if f"`{name}`" not in text]


def test_every_format_is_in_both_tables() -> None:
    """The tables of formats and of how each is streamed."""
    text = DOCS.read_text("utf-8")
    formats = next(line for line in text.splitlines() if line.startswith("| `response_format`"))
    streaming = text.split("| format | first bytes |")[1].split("\n\n")[0]
    for table in (formats, streaming):
        assert not [name for name in MEDIA_TYPES if f"`{name}`" not in table]


def test_every_path_is_in_the_table(tmp_path: Path) -> None:
    with FakeEngine() as engine:
        paths = create_api(engine, Library(tmp_path)).openapi()["paths"]
    text = DOCS.read_text("utf-8").replace("{id}", "{name}")
    assert not [path for path in paths if path.removesuffix("/{name}") not in text]


def test_the_defaults_told_are_the_settings() -> None:
    settings, text = ApiSettings(), DOCS.read_text("utf-8")
    for sentence in (
        f"more than {settings.body_bytes >> 20} MiB",
        f"more than {settings.audio_bytes >> 20} MiB",
        f"At most {settings.batch_items} items, {settings.batch_parallel} of them",
        f"At most {settings.utterances} utterances",
        f"{settings.idle_timeout:g} s without a word",
        f"for {settings.stall_timeout / 60:g} minutes",
    ):
        assert sentence in text, sentence
