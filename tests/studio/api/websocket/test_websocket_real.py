"""Sessions with real networks: tiny checkpoints give the same on the socket as over HTTP."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from engine import FRAME_SAMPLES, Engine, Library, open_engine, read_capabilities
from studio.api import create_api
from tests.studio.api.routes.test_voices import recording, upload
from tests.studio.api.websocket.ws_client import CANCEL, DONE, PATH, config, hear, say, words
from tests.support.serving import wait_until

TEXT = "The night train was late again. She read, 然后等了很久 – until 7:45!"
MOST = 24  # frames of an answer
LSB = 2  # pieces of other sizes round a sample another way
SEEDS = (0, 2, 3)  # with 1 a draw lies 6e-8 from the next code: rounding of a batch decides


@pytest.fixture(scope="module", params=["preset", "clone", "design"])
def engine(request: pytest.FixtureRequest, golden_dir: Path) -> Iterator[Engine]:
    """A checkpoint that can do this one thing at least."""
    for folder in sorted(at.parent for at in golden_dir.glob("*/golden.json")):
        (able,) = read_capabilities([folder]).values()
        if getattr(able, request.param):
            with open_engine([folder], device="cpu", max_num_seqs=4) as engine:
                yield engine
            return
    pytest.fail(f"no golden checkpoint is able: {request.param}")


@pytest.fixture(scope="module")
def client(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    library = Library(tmp_path_factory.mktemp("real") / "voices")
    with TestClient(create_api(engine, library)) as client:
        if any(able.clone for able in engine.capabilities().values()):
            assert upload(client, transcript="What I said in it.").status_code == 200
        yield client


@pytest.fixture(scope="module")
def fields(engine: Engine) -> dict[str, Any]:
    """A voice of this checkpoint."""
    (able,) = engine.capabilities().values()
    most = {"max_new_tokens": MOST, "ignore_eos": True}
    if able.speakers:
        return {"voice": able.speakers[0], **most}
    if able.clone:
        return {"voice": "Ada", **most}
    return {"task_type": "VoiceDesign", "instructions": "A calm voice.", **most}


def over_http(client: TestClient, **fields: Any) -> np.ndarray:
    body = {"input": TEXT, "seed": 5, "response_format": "pcm", "non_streaming_mode": False}
    answer = client.post("/v1/audio/speech", json={**body, **fields})
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, "<i2").astype(int)


def on_socket(client: TestClient, fields: dict[str, Any], *pieces: dict[str, Any]) -> np.ndarray:
    with client.websocket_connect(PATH) as socket:
        say(socket, config(**fields), *pieces, DONE)
        events, audio = hear(socket)
    assert events[-1]["finish_reason"] == "length"
    return np.frombuffer(audio, "<i2").astype(int)


def shreds(text: str) -> list[dict[str, Any]]:
    """Pieces that end anywhere, as a language model's tokens do."""
    chance, pieces = random.Random(1), []
    while text:
        size = chance.randint(1, 5)
        pieces.append({"type": "input.text", "text": text[:size]})
        text = text[size:]
    return pieces


@pytest.mark.parametrize("cut", [words, shreds])
def test_a_text_in_pieces_is_the_text(client: TestClient, fields: dict[str, Any], cut: Any) -> None:
    spoken = on_socket(client, fields, *cut(TEXT))
    written = over_http(client, **fields)
    assert len(spoken) == len(written) == MOST * FRAME_SAMPLES
    assert np.abs(spoken - written).max() <= LSB


def test_several_at_once_hear_what_each_would_alone(
    client: TestClient, fields: dict[str, Any]
) -> None:
    alone = [on_socket(client, {**fields, "seed": seed}, *words(TEXT)) for seed in SEEDS]
    with ThreadPoolExecutor(3) as pool:
        requested = [
            pool.submit(on_socket, client, {**fields, "seed": seed}, *words(TEXT)) for seed in SEEDS
        ]
        together = [one.result(60) for one in requested]
    for one, other in zip(alone, together, strict=True):
        assert np.abs(one - other).max() <= LSB


def test_barge_in_frees_the_slot_and_the_next_is_whole(
    client: TestClient, engine: Engine, fields: dict[str, Any]
) -> None:
    endless = {**fields, "max_new_tokens": 2000}
    with client.websocket_connect(PATH) as socket:
        say(socket, config(**endless), *words(TEXT * 3))
        hear(socket, until="audio.start")
        got = socket.receive()
        assert "bytes" in got, got
        say(socket, CANCEL, config(**fields), *words(TEXT), DONE)
        cut, _ = hear(socket)
        wait_until(lambda: engine.stats().running <= 1)
        events, audio = hear(socket)
    assert (cut[-1]["finish_reason"], events[-1]["finish_reason"]) == ("cancelled", "length")
    written = over_http(client, **fields)
    assert np.abs(np.frombuffer(audio, "<i2").astype(int) - written).max() <= LSB


def test_sentences_follow_each_other_without_a_hole(
    client: TestClient, fields: dict[str, Any]
) -> None:
    with client.websocket_connect(PATH) as socket:
        say(
            socket, config(**fields, split_granularity="sentence"), *words("One. Two. Three."), DONE
        )
        events, audio = hear(socket)
    sentences = events[-1]["sentences"]
    assert [each["text"] for each in sentences] == ["One.", "Two.", "Three."]
    assert len(audio) == 3 * 2 * MOST * FRAME_SAMPLES
    assert sentences[-1]["end"] == pytest.approx(len(audio) / 2 / 24_000)


def test_a_recording_of_ones_own_is_spoken_with(client: TestClient, engine: Engine) -> None:
    if not any(able.clone for able in engine.capabilities().values()):
        form = {"data": {"consent": "true"}, "files": {"audio": recording()}}
        assert client.post("/v1/audio/embeddings", **form).status_code == 422
        return
    heard = f"data:audio/wav;base64,{base64.b64encode(recording()).decode()}"
    most = {"max_new_tokens": MOST, "ignore_eos": True}
    for each in ({"ref_text": "What I said in it."}, {}):
        fields = {"ref_audio": heard, "consent": True, **each, **most}
        spoken = on_socket(client, fields, *words(TEXT))
        assert np.abs(spoken - over_http(client, **fields)).max() <= LSB
