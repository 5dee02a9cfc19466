"""The whole program on a real model, met from outside: openai-python, curl, every format.

No model is named, so it is the embedded one.
"""

from __future__ import annotations

import asyncio
import io
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest
import soundfile

from bench.__main__ import Plan, measured
from bench.http_lines import Server
from bench.over_http import OverHttp
from bench.workload import Work
from engine import FRAME_SAMPLES, SAMPLE_RATE
from studio.layout import ROOT
from tests.support.programs import environment

TEXT = "The night train was late again."
FRAMES = 30
FORMATS = ["mp3", "opus", "flac", "wav", "pcm"]
PADDING = 0.08  # seconds that an encoder may put around speech
READY = 90  # seconds of a machine that does nothing else


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`python app.py`, as a user starts it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    data = str(tmp_path_factory.mktemp("data"))
    variables = environment(
        TIMBRE_DATA=data, TIMBRE_ENGINE_MAX_WAIT="600"
    )  # a busy machine refuses nobody
    command = [sys.executable, "app.py", "--port", str(port), "--device", "cpu"]
    with subprocess.Popen(command, cwd=ROOT, env=variables) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_ready(url, server)
            yield url
        finally:
            server.terminate()
            server.wait(60)


def wait_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    """Wait for the server. Looks are counted, since a machine that stood still has lost none."""
    for _ in range(READY * 10):
        assert server.poll() is None, "the server has ended"
        try:
            if httpx.get(f"{url}/ready", timeout=30).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("it was not ready in time")


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


def seconds(format: str, data: bytes) -> float:
    if format == "pcm":
        return len(data) / 2 / SAMPLE_RATE
    sound, rate = soundfile.read(io.BytesIO(data))
    return len(sound) / rate


@pytest.mark.parametrize("format", FORMATS)
def test_whole_and_streamed_are_as_long(client: openai.OpenAI, format: str, tmp_path: Path) -> None:
    fields = {"seed": 1, "max_new_tokens": FRAMES, "ignore_eos": True}
    body = {"model": "tts-1", "voice": "alloy", "input": TEXT, "response_format": format}
    whole = client.audio.speech.create(**body, extra_body={**fields, "stream": False})
    file = tmp_path / f"streamed.{format}"
    with client.audio.speech.with_streaming_response.create(
        **body, extra_body={**fields, "stream": True}
    ) as answer:
        answer.stream_to_file(file)
    lengths = [seconds(format, data) for data in (whole.content, file.read_bytes())]
    spoken = FRAMES * FRAME_SAMPLES / SAMPLE_RATE
    assert lengths == [pytest.approx(spoken, abs=PADDING)] * 2
    assert lengths[0] == pytest.approx(lengths[1], abs=PADDING)


def test_lossless_ones_hold_the_same_samples(client: openai.OpenAI) -> None:
    heard = []
    for format in ("flac", "wav", "pcm"):
        answer = client.audio.speech.create(
            model="gpt-4o-mini-tts",
            voice="alloy",
            input=TEXT,
            response_format=format,
            extra_body={"seed": 1, "max_new_tokens": FRAMES, "stream": False},
        )
        raw = {"samplerate": SAMPLE_RATE, "channels": 1, "subtype": "PCM_16", "format": "RAW"}
        how = raw if format == "pcm" else {}
        heard.append(soundfile.read(io.BytesIO(answer.content), dtype="int16", **how)[0])
    np.testing.assert_array_equal(heard[0], heard[1])
    np.testing.assert_array_equal(heard[0], heard[2])


def test_sound_comes_while_it_is_made(client: openai.OpenAI) -> None:
    arrivals = []
    with client.audio.speech.with_streaming_response.create(
        model="tts-1",
        voice="alloy",
        input=TEXT,
        response_format="pcm",
        extra_body={"max_new_tokens": 4 * FRAMES, "ignore_eos": True},
    ) as answer:
        arrivals = [time.monotonic() for _ in answer.iter_bytes(FRAME_SAMPLES)]
    assert arrivals[-1] - arrivals[0] > 0.1


def test_curl_speaks(url: str, tmp_path: Path) -> None:
    file = tmp_path / "train.mp3"
    body = f'{{"input": "{TEXT}", "voice": "alloy", "max_new_tokens": {FRAMES}}}'
    line = ["curl", "-fsS", f"{url}/v1/audio/speech", "-H", "Content-Type: application/json"]
    subprocess.run([*line, "-d", body, "-o", str(file)], check=True, timeout=60)
    assert 0 < soundfile.info(file).duration <= FRAMES * 0.08 + PADDING


@pytest.mark.slow
def test_the_load_client_finds_no_failure(url: str) -> None:
    """Closed 1, 4 and 8 and two arrivals a second, as others are measured."""

    async def load() -> list[dict[str, float]]:
        asking = OverHttp(Server(url), "alloy", {})
        plan = Plan([1, 4, 8], [2.0], [], 8, 10, 1)
        rows = await measured(plan, asking.listen, Work())
        await asking.finish()
        return rows

    rows = asyncio.run(load())
    assert [row["failed"] for row in rows] == [0] * 4
    assert [row["load"] for row in rows] == ["closed 1", "closed 4", "closed 8", "poisson 2"]
