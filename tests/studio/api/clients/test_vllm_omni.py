"""vllm-omni's own clients for Qwen3-TTS, from its source package, run as they are."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import httpx
import pytest
import soundfile

from tests.studio.api.clients.conftest import run
from tests.studio.api.routes.test_voices import recording

VERSION = "0.20.0"
CLIENTS = "examples/online_serving/text_to_speech/qwen3_tts"
TEXT = "The train leaves at seven."

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vllm-omni")
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    run(*pip, "-d", folder, f"vllm-omni=={VERSION}")
    (package,) = folder.glob("*.tar.gz")
    with tarfile.open(package) as archive:
        archive.extractall(folder, filter="data")
    return folder / package.name.removesuffix(".tar.gz") / CLIENTS


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    path = tmp_path / "me.wav"
    path.write_bytes(recording())
    return path


def sounds(path: Path) -> bool:
    return soundfile.info(path).duration > 0.3


@pytest.mark.parametrize(
    "options",
    [
        ["--speaker", "vivian", "--language", "English", "--instructions", "Speak softly"],
        ["--task-type", "VoiceDesign", "--instructions", "A warm voice"],
        ["--task-type", "Base", "--ref-audio", "me.wav", "--ref-text", "What I said."],
        ["--task-type", "Base", "--ref-audio", "me.wav", "--x-vector-only"],
    ],
    ids=lambda options: " ".join(options[:2]) + f" {len(options)}",
)
def test_speech(
    options: list[str], clients: Path, url: str, reference: Path, tmp_path: Path
) -> None:
    options = [str(reference) if each == "me.wav" else each for each in options]
    client, file = clients / "openai_speech_client.py", tmp_path / "speech.wav"
    run(sys.executable, client, "--api-base", url, "--text", TEXT, *options, "--output", file)
    assert sounds(file)


def test_batch(clients: Path, url: str, tmp_path: Path) -> None:
    client = clients / "batch_speech_client.py"
    run(sys.executable, client, "--api-base", url, "--texts", "One.", "Two.", "-o", tmp_path)
    assert [sounds(tmp_path / f"batch_{i}.wav") for i in range(2)] == [True, True]


def test_streaming(clients: Path, url: str, tmp_path: Path) -> None:
    socket = url.replace("http", "ws") + "/v1/audio/speech/stream"
    client = clients / "streaming_speech_client.py"
    run(sys.executable, client, "--url", socket, "--text", TEXT, "--output-dir", tmp_path)
    assert sounds(tmp_path / "sentence_000.wav")


def test_interpolation(clients: Path, url: str, reference: Path, tmp_path: Path) -> None:
    """Vectors come from this server: its own encoder is the model's."""
    upload = {"audio": reference.read_bytes()}
    answer = httpx.post(f"{url}/v1/audio/embeddings", files=upload, timeout=60)
    vector = tmp_path / "vector.json"
    vector.write_text(json.dumps(answer.raise_for_status().json()["data"][0]["embedding"]))
    ends = ["--embedding-a", vector, "--embedding-b", vector]
    client, file = clients / "speaker_embedding_interpolation.py", tmp_path / "between.wav"
    run(sys.executable, client, "--api-base", url, "interpolate", *ends, "--text", TEXT, "-o", file)
    assert sounds(file)
