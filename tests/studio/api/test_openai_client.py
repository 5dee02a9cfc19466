"""The official client, unchanged, against a real port."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openai
import pytest
import soundfile

from engine import FRAME_SAMPLES, Engine, Library
from engine.plan import StepPlan
from engine.testing import FakeEngine
from studio.api import ApiSettings, create_api
from studio.api.bodies.service_names import OPENAI_MODELS
from tests.studio.api.conftest import Serve
from tests.support.serving import PATIENCE

TEXT = "The morning train was late again, so she read the last chapter on the platform."


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_it_speaks_to_a_file(client: openai.OpenAI, tmp_path: Path) -> None:
    file = tmp_path / "speech.mp3"
    answer = client.audio.speech.create(model="gpt-4o-mini-tts", voice="alloy", input=TEXT)
    answer.write_to_file(file)
    assert soundfile.info(file).duration > 1


@pytest.mark.parametrize("format", ["mp3", "opus", "flac", "wav", "pcm"])
def test_it_streams_every_format_to_a_file(
    client: openai.OpenAI, tmp_path: Path, format: str
) -> None:
    file = tmp_path / f"speech.{format}"
    speech = client.audio.speech.with_streaming_response
    with speech.create(
        model="tts-1",
        voice="ryan",
        input=TEXT,
        response_format=format,  # type: ignore[arg-type]
        extra_body={"seed": 1, "stream": True, "max_new_tokens": 20, "ignore_eos": True},
    ) as answer:
        answer.stream_to_file(file)
    if format == "pcm":
        samples = file.stat().st_size // 2
    else:
        samples = len(soundfile.read(io.BytesIO(file.read_bytes()))[0])
    assert abs(samples - 20 * FRAME_SAMPLES) <= FRAME_SAMPLES


@pytest.mark.parametrize("format", ["mp3", "opus", "aac", "wav", "pcm"])
def test_every_format_is_heard_long_before_it_is_complete(
    slow: FakeEngine, library: Library, serve: Serve, format: str
) -> None:
    text, heard = TEXT * 2, threading.Event()  # a frame for each letter

    def wait(plan: StepPlan) -> None:
        if any(piece.stop > 0.4 * len(text) for piece in plan.codec_decode):
            assert heard.wait(PATIENCE)

    slow.worker.fault = wait
    url = f"{serve(create_api(slow, library))}/v1"
    with (
        openai.OpenAI(base_url=url, api_key="none") as client,
        client.audio.speech.with_streaming_response.create(
            model="tts-1",
            voice="ryan",
            input=text,
            response_format=format,  # type: ignore[arg-type]
        ) as answer,
    ):
        pieces = answer.iter_bytes(256)
        next(pieces)
        heard.set()
        assert sum(map(len, pieces)) > 1000


def test_pcm_streams_as_it_does_at_openai(client: openai.OpenAI) -> None:
    with client.audio.speech.with_streaming_response.create(
        model="tts-1", voice="nova", input=TEXT, response_format="pcm"
    ) as answer:
        pieces = list(answer.iter_bytes(1024))
    assert len(pieces) > 1
    assert len(np.frombuffer(b"".join(pieces), "<i2")) % FRAME_SAMPLES == 0


def test_it_speaks_asynchronously_with_speed_and_instructions(url: str) -> None:
    async def speak() -> bytes:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
            answer = await client.audio.speech.create(
                model="tts-1",
                voice="vivian",
                input=TEXT,
                instructions="Calmly.",
                speed=1.5,
                response_format="wav",
            )
            return answer.content

    assert len(soundfile.read(io.BytesIO(asyncio.run(speak())))[0]) > 0


def test_its_errors_are_its_own(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="text"):
        client.audio.speech.create(model="tts-1", voice="alloy", input="")
    with pytest.raises(openai.NotFoundError, match="nobody"):
        client.audio.speech.create(model="tts-1", voice="nobody", input=TEXT)
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.speech.create(
            model="tts-1", voice="alloy", input=TEXT, extra_body={"instructionz": 1}
        )
    assert refused.value.param == "instructionz"
    assert refused.value.code == "unknown_key"


def test_it_lists_models(client: openai.OpenAI, engine: Engine) -> None:
    listed = [model.id for model in client.models.list()]
    assert listed == [*engine.capabilities(), *OPENAI_MODELS]
    assert client.models.retrieve("tts-1").id == "tts-1"


def test_it_shows_its_key(engine: Engine, library: Library, serve: Serve) -> None:
    url = serve(create_api(engine, library, ApiSettings(keys=("right",))))
    with openai.OpenAI(base_url=f"{url}/v1", api_key="right", max_retries=0) as right:
        assert right.models.list().data
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key="wrong", max_retries=0) as wrong,
        pytest.raises(openai.AuthenticationError),
    ):
        wrong.models.list()
