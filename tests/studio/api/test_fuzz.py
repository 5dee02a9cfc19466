"""Mutated bodies from the API's schema: never a 500, never a slot left taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import EngineSettings, Library
from engine.testing import FakeEngine
from studio.api import create_api
from studio.api.bodies.schemas import SpeechBody
from studio.api.json_text import to_json
from studio.api.responses.encoding import MEDIA_TYPES
from tests.studio.api.routes.test_voices import recording, upload
from tests.support.serving import wait_until

STATUSES = {200, 400, 401, 404, 405, 409, 413, 415, 422, 429}
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
TEXT = st.text(max_size=60) | st.sampled_from(["Hello there.", "今天。明天！", "<|im_end|>", "…"])
NAMES = st.sampled_from(
    ["ryan", "RYAN ", "alloy", "Ada", "ada", "ryan:1,Ada:2", "ryan(1)+vivian", "default", "", "x:"]
)
AUDIO = st.sampled_from(
    ["data:audio/wav;base64,AAAA", "data:,x", "data:", "http://localhost/a", "ada", "../../etc"]
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "input": TEXT,
    "model": st.sampled_from(["fake", "Qwen/fake", "tts-1", "", "none", "/"]),
    "voice": NAMES | st.builds(lambda name: {"id": name}, NAMES),
    "blend_method": st.sampled_from(["linear", "spherical", "other"]),
    "mood": st.sampled_from(["", "glad", "x" * 90]),
    "mood_strength": st.one_of(st.floats(-1, 2), st.just(0.5)),
    "instructions": TEXT,
    "response_format": st.sampled_from([*MEDIA_TYPES, "ogg"]),
    "sample_rate": st.sampled_from([8000, 16000, 44100, 12345, -1]),
    "bit_rate": st.sampled_from([32_000, 64_000, 128_000, 5, -1]),
    "speed": st.floats(0.4, 2.2),
    "language": st.sampled_from(["auto", "English", "Chinese", "klingon", ""]),
    "task_type": st.sampled_from(["CustomVoice", "VoiceDesign", "Base", "Other"]),
    "ref_audio": AUDIO,
    "ref_text": TEXT,
    "consent": st.sampled_from([True, "yes", False]),
    "x_vector_only_mode": st.booleans(),
    "speaker_embedding": st.lists(st.floats(-3, 3), min_size=15, max_size=17),
    "seed": st.integers(-1, 2**64),
    "do_sample": st.booleans(),
    "temperature": st.floats(-0.1, 6),
    "top_k": st.integers(-1, 5000),
    "top_p": st.floats(-0.1, 1.1),
    "repetition_penalty": st.floats(0.9, 5.1),
    "subtalker_dosample": st.booleans(),
    "subtalker_temperature": st.floats(-0.1, 6),
    "subtalker_top_k": st.integers(-1, 5000),
    "subtalker_top_p": st.floats(-0.1, 1.1),
    "max_new_tokens": st.integers(0, 40) | st.sampled_from([10**6, 2**40]),
    "ignore_eos": st.booleans(),
    "early_start": st.sampled_from(["off", "pauses", "pieces", "now"]),
    "spell_out": st.booleans(),
    "initial_codec_chunk_frames": st.integers(-1, 30),
    "non_streaming_mode": st.booleans(),
    "word_timestamps": st.booleans(),
    "stream": st.booleans(),
    "stream_format": st.sampled_from(["audio", "sse", "ogg"]),
}
SPARSE = st.fixed_dictionaries(
    {"input": TEXT}, optional={key: values for key, values in VALUES.items() if key != "input"}
)
BENT = st.dictionaries(st.sampled_from(sorted(VALUES)) | st.text(max_size=8), JUNK, max_size=2)
BODIES = st.builds(lambda body, bent: {**body, **bent}, SPARSE, st.just({}) | BENT)
FEW = st.lists(st.sampled_from(sorted(VALUES)), max_size=5, unique=True).flatmap(
    lambda keys: st.fixed_dictionaries({"input": TEXT, **{key: VALUES[key] for key in keys}})
)
SPEECH = FEW | BODIES | JUNK


def test_every_field_of_the_schema_is_drawn() -> None:
    assert set(VALUES) == set(SpeechBody.model_fields)


@pytest.fixture(scope="module")
def engine() -> Iterator[FakeEngine]:
    with FakeEngine(settings=EngineSettings(max_num_seqs=4)) as engine:
        yield engine


@pytest.fixture(scope="module")
def client(engine: FakeEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    library = Library(tmp_path_factory.mktemp("fuzz") / "voices")
    with TestClient(create_api(engine, library)) as client:
        assert upload(client, transcript="Hello there.").status_code == 200
        yield client


def check(client: TestClient, engine: FakeEngine, method: str, path: str, body: Any) -> int:
    headers = {"content-type": "application/json"}
    answer = client.request(method, path, content=to_json(body).encode(), headers=headers)
    assert answer.status_code in STATUSES, answer.text
    if answer.status_code != 200:
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
        assert "Traceback" not in answer.text
    wait_until(lambda: engine.stats().running == 0)
    return answer.status_code


def test_speech(client: TestClient, engine: FakeEngine) -> None:
    fuzz_speech(client, engine, 200)


@pytest.mark.slow
def test_speech_two_thousand_times(client: TestClient, engine: FakeEngine) -> None:
    fuzz_speech(client, engine, 2000)


def fuzz_speech(client: TestClient, engine: FakeEngine, count: int) -> None:
    statuses: Counter[int] = Counter()

    @settings(
        max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(SPEECH)
    def ask(body: Any) -> None:
        statuses[check(client, engine, "POST", "/v1/audio/speech", body)] += 1

    ask()
    assert statuses[200] > count / 20, statuses  # not everything was refused at the door


OTHERS = {
    "/v1/audio/speech/batch": st.fixed_dictionaries(
        {"items": st.lists(FEW | JUNK, max_size=3)}, optional={"seed": JUNK, "voice": NAMES}
    ),
    "/v1/audio/voices/blend": st.fixed_dictionaries(
        {
            "name": st.text(max_size=90),
            "voices": NAMES
            | st.lists(
                st.fixed_dictionaries({"voice": NAMES, "weight": st.floats(-1, 3)}), max_size=3
            ),
        },
        optional={"method": st.sampled_from(["linear", "spherical", "x"])},
    ),
}


@pytest.mark.parametrize("path", OTHERS)
def test_other_bodies(client: TestClient, engine: FakeEngine, path: str) -> None:
    @settings(
        max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(OTHERS[path] | JUNK)
    def ask(body: Any) -> None:
        check(client, engine, "POST", path, body)

    ask()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.sampled_from(["GET", "DELETE", "POST", "PUT"]), st.text(max_size=30))
def test_paths(client: TestClient, engine: FakeEngine, method: str, name: str) -> None:
    for path in (f"/v1/audio/voices/{quote(name)}/preview", f"/v1/{quote(name)}"):
        check(client, engine, method, path, {})


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    st.dictionaries(
        st.sampled_from(["name", "consent", "embedding", "transcript", "note", "model"])
        | st.text("abc", max_size=4),
        st.text(max_size=30) | st.sampled_from(["fake", "[1, NaN]", "[1]", "true"]),
        max_size=5,
    ),
    st.sampled_from([b"", b"RIFF", recording(0.5), recording()[:-9]]),
)
def test_uploads(
    client: TestClient, engine: FakeEngine, fields: dict[str, str], audio: bytes
) -> None:
    for path in ("/v1/audio/voices", "/v1/audio/embeddings"):
        answer = client.post(path, data=fields, files={"audio": ("a.wav", audio, "audio/wav")})
        assert answer.status_code in STATUSES, answer.text
