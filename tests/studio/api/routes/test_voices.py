"""Uploading, blending, previewing and deleting voices."""

from __future__ import annotations

import io
import threading
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from httpx import Response

from engine import SAMPLE_RATE, Clone, Engine, Library
from engine.testing import FakeCheckpoint, FakeEngine, fake_capabilities
from studio.api import create_api
from studio.api.bodies.service_names import OPENAI_MODELS
from studio.api.metrics import Metrics

TEXT = "The morning train was late again."


def recording(seconds: float = 2.0, hertz: float = 200.0) -> bytes:
    t = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    swell = np.sin(2 * np.pi * 2 * t) > -0.5  # words with silence between them
    buffer = io.BytesIO()
    soundfile.write(buffer, 0.3 * swell * np.sin(2 * np.pi * hertz * t), SAMPLE_RATE, format="WAV")
    return buffer.getvalue()


def noisy_recording() -> bytes:
    """A tone that comes and goes in noise 10 dB below it."""
    wave, rate = soundfile.read(io.BytesIO(recording(4.0)))
    noise = np.random.default_rng(1).normal(size=len(wave)) * 0.21 * 10 ** (-10 / 20)
    buffer = io.BytesIO()
    soundfile.write(buffer, wave + noise, rate, format="WAV")
    return buffer.getvalue()


def upload(client: TestClient, name: str = "Ada", **fields: Any) -> Response:
    data = {"name": name, "consent": "true", **fields}
    files = {"audio": ("ada.wav", recording(), "audio/wav")}
    return client.post("/v1/audio/voices", data=data, files=files)


def speak(client: TestClient, **fields: Any) -> bytes:
    body = {"input": TEXT, "seed": 1, "response_format": "pcm", **fields}
    answer = client.post("/v1/audio/speech", json=body)
    assert answer.status_code == 200, answer.text
    return answer.content


def test_an_uploaded_voice_is_listed_spoken_with_and_deleted(client: TestClient) -> None:
    before = client.get("/v1/audio/voices").json()
    voice = upload(client, transcript="Hello there.").json()["voice"]
    assert voice["name"] == "Ada"
    assert voice["in_context"]
    listed = client.get("/v1/audio/voices").json()
    assert [each["id"] for each in listed["uploaded_voices"]] == [voice["id"]]
    assert set(listed["voices"]) - set(before["voices"]) == {"Ada"}
    by_name = speak(client, voice="ada")
    assert by_name == speak(client, voice={"id": voice["id"]})
    assert by_name == speak(client, ref_audio=voice["id"])
    assert by_name != speak(client, voice=before["presets"][0])
    assert client.delete(f"/v1/audio/voices/{voice['id']}").json()["deleted"]
    assert client.get("/v1/audio/voices").json() == before
    assert client.delete(f"/v1/audio/voices/{voice['id']}").status_code == 404


def test_voices_of_a_model_come_and_go_with_it(client: TestClient, engine: Engine) -> None:
    """A model that was trained here is kept while the server runs."""
    able = replace(fake_capabilities("own"), speakers=("alan",))
    engine.add("own", FakeCheckpoint(able))
    assert "alan" in client.get("/v1/audio/voices").json()["presets"]
    assert speak(client, voice="alan")
    engine.remove("own")
    assert "alan" not in client.get("/v1/audio/voices").json()["presets"]


def test_a_reference_in_the_request_sounds_as_the_same_one_uploaded(client: TestClient) -> None:
    upload(client)
    url = "data:audio/wav;base64," + b64encode(recording()).decode()
    assert speak(client, ref_audio=url, task_type="Base", consent=True) == speak(
        client, voice="Ada"
    )


def test_an_embedding_is_a_voice(client: TestClient) -> None:
    files = {"audio": ("a.wav", recording(), "audio/wav")}
    embedded = client.post("/v1/audio/embeddings", data={"consent": "1"}, files=files).json()
    vector = embedded["data"][0]["embedding"]
    assert len(vector) == embedded["width"]
    data = {"name": "Numbers", "consent": "yes", "embedding": str(vector)}
    # a form without a file is still multipart for clients that say so
    answer = client.post("/v1/audio/voices", data=data, files={"note": (None, "made of numbers")})
    assert answer.status_code == 200, answer.text
    assert answer.json()["voice"]["speaker_description"] == "made of numbers"
    assert speak(client, voice="Numbers") == speak(client, speaker_embedding=vector)


def test_a_blend_is_a_voice_and_can_be_kept(client: TestClient) -> None:
    one, two = client.get("/v1/audio/voices").json()["presets"][:2]
    recipe = f"{one}:0.7,{two}:0.3"
    answer = client.post("/v1/audio/voices/blend", json={"name": "Mixed", "voices": recipe})
    assert answer.status_code == 200, answer.text
    assert answer.json()["voice"]["kind"] == "blend"
    assert speak(client, voice="Mixed") == speak(client, voice=recipe)
    listed = [{"voice": one, "weight": 0.7}, {"voice": two, "weight": 0.3}]
    again = client.post("/v1/audio/voices/blend", json={"name": "Again", "voices": listed})
    assert again.status_code == 200
    assert speak(client, voice="Again") == speak(client, voice="Mixed")


def test_openais_voices_stand_for_kept_ones_where_there_are_no_speakers(library: Library) -> None:
    able = fake_capabilities("base", preset=False, speakers=(), design=False)
    with FakeEngine([FakeCheckpoint(able)]) as engine:
        client = TestClient(create_api(engine, library))
        assert client.post("/v1/audio/speech", json={"input": TEXT}).status_code == 400
        body = {"input": TEXT, "voice": "alloy"}
        assert client.post("/v1/audio/speech", json=body).status_code == 404
        assert upload(client).status_code == 200
        assert speak(client, voice="alloy") == speak(client, voice="Ada")


def test_a_preview_is_a_sound_file_and_always_the_same(client: TestClient) -> None:
    name = client.get("/v1/audio/voices").json()["presets"][0]
    first = client.get(f"/v1/audio/voices/{name}/preview")
    assert first.headers["content-type"] == "audio/wav"
    assert len(soundfile.read(io.BytesIO(first.content))[0]) > 0
    assert client.get(f"/v1/audio/voices/{name}/preview").content == first.content
    assert client.get("/v1/audio/voices/nobody/preview").status_code == 404


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"name": ""}, 400, "invalid_name"),
    ({"name": "default"}, 400, "invalid_name"),
    ({"name": "a:1,b:2"}, 400, "invalid_name"),
    ({"consent": "false"}, 400, "consent_missing"),
    ({"surprise": "yes"}, 400, "unknown_key"),
    ({"embedding": "[1]"}, 400, "invalid_value"),
]


@pytest.mark.parametrize(("fields", "status", "code"), REFUSED, ids=str)
def test_bad_uploads_are_refused(
    client: TestClient, fields: dict[str, Any], status: int, code: str
) -> None:
    answer = upload(client, **{"name": "Ada", **fields})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert client.get("/v1/audio/voices").json()["uploaded_voices"] == []


@pytest.mark.parametrize("path", ["/v1/audio/voices", "/v1/audio/embeddings"])
def test_a_bad_recording_is_blamed_on_the_field_it_came_in(client: TestClient, path: str) -> None:
    data = {"consent": "true", **({"name": "Ada"} if path.endswith("voices") else {})}
    answer = client.post(path, data=data, files={"audio": ("a.wav", recording()[:4000])})
    assert answer.status_code == 422
    assert answer.json()["error"]["param"] == "audio"


def test_a_bad_reference_is_blamed_on_its_own_field(client: TestClient) -> None:
    source = "data:audio/wav;base64," + b64encode(recording()[:4000]).decode()
    answer = client.post(
        "/v1/audio/speech", json={"input": TEXT, "ref_audio": source, "consent": True}
    )
    assert answer.status_code == 422
    assert answer.json()["error"]["param"] == "ref_audio"


def test_names_are_taken_once(client: TestClient) -> None:
    assert upload(client).status_code == 200
    assert upload(client, name="ADA").status_code == 409
    preset = client.get("/v1/audio/voices").json()["presets"][0]
    assert upload(client, name=preset).status_code == 409


@pytest.mark.parametrize(
    ("file", "status"),
    [
        (("a.html", b"<html>", "text/html"), 415),
        (("a.wav", b"RIFFnonsense", "audio/wav"), 422),
        (("a.wav", recording(0.3), "audio/wav"), 422),
        (("a.wav", bytes(11 << 20), "audio/wav"), 413),
    ],
    ids=["type", "damaged", "short", "large"],
)
def test_bad_recordings_are_refused(client: TestClient, file: Any, status: int) -> None:
    data = {"name": "Ada", "consent": "true"}
    answer = client.post("/v1/audio/voices", data=data, files={"audio": file})
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["message"]


def test_models_health_and_metrics(client: TestClient, engine: Engine) -> None:
    name = next(iter(engine.capabilities()))
    listed = client.get("/v1/models").json()
    assert [model["id"] for model in listed["data"]] == [*engine.capabilities(), *OPENAI_MODELS]
    assert client.get("/v1/models/tts-1").json()["id"] == "tts-1"
    assert client.get(f"/v1/models/{name}").json() == listed["data"][0]
    assert client.get(f"/v1/models/Qwen/{name}").json() == listed["data"][0]
    assert client.get("/v1/models/none").status_code == 404
    assert client.get("/health").json() == {"status": "ok"}
    speak(client)
    assert client.get("/ready").json()["status"] == "ready"
    printed = client.get("/metrics").text
    assert 'timbre_speech_requests_total{reason="finished",way="audio"} 1.0' in printed
    for number in ("slots", "waiting", "running", "underruns_total", "runaways_total"):
        assert f"\ntimbre_{number} " in printed
    assert "timbre_first_byte_seconds_bucket" in printed


def test_a_closed_engine_is_not_ready_and_says_so(client: TestClient, engine: Engine) -> None:
    assert client.get("/health").status_code == 200
    engine.close()
    assert client.get("/health").status_code == 503
    assert client.get("/ready").status_code == 503
    answer = client.post("/v1/audio/speech", json={"input": TEXT})
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


@pytest.mark.parametrize("consent", ["off", "n", "nein", "null", "none", "2", "maybe", " "])
def test_only_a_clear_yes_is_consent(client: TestClient, consent: str) -> None:
    answer = upload(client, consent=consent)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "consent_missing"


def test_a_blend_has_the_least_of_its_parts_consents(client: TestClient, library: Library) -> None:
    preset = client.get("/v1/audio/voices").json()["presets"][0]
    for name, consent in (("Agreed", True), ("Silent", False)):
        vector = np.arange(1, 17, dtype=np.float32)
        library.save(name, Clone(vector), consent=consent)
        recipe = f"{preset}:0.5,{name}:0.5"
        answer = client.post(
            "/v1/audio/voices/blend", json={"name": f"With {name}", "voices": recipe}
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()["voice"]["consent"] is consent


def test_of_simultaneous_uploads_of_a_name_one_is_kept(
    client: TestClient, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    everybody = threading.Barrier(4)
    save = library.save

    def together(name: str, voice: Clone, **details: Any) -> Any:
        everybody.wait(60)  # each has seen that the name is free
        return save(name, voice, **details)

    monkeypatch.setattr(library, "save", together)
    with ThreadPoolExecutor(4) as crowd:
        answers = list(crowd.map(lambda _: upload(client), range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    assert {answer.json()["error"]["code"] for answer in answers if answer.is_error} == {
        "name_taken"
    }


def lines(metrics: Metrics) -> set[str]:
    return set(metrics.text().decode().splitlines())


def test_each_replica_has_its_own_numbers() -> None:
    with FakeEngine() as engine:
        stats = replace(engine.stats(), running=2, lowest_lead=1.5)
        replicas = {"one": stats, "two": replace(stats, running=3, audio_seconds=8.0)}
        engine.stats = lambda: replace(stats, running=5, replicas=replicas)
        shown = lines(Metrics(engine))
    assert "timbre_running 5.0" in shown
    assert 'timbre_replica_running{replica="one"} 2.0' in shown
    assert 'timbre_replica_running{replica="two"} 3.0' in shown
    assert 'timbre_replica_lead_seconds{replica="one"} 1.5' in shown
    assert 'timbre_replica_audio_seconds_total{replica="two"} 8.0' in shown


def test_one_engine_has_no_replicas() -> None:
    with FakeEngine() as engine:
        assert not [line for line in lines(Metrics(engine)) if "replica" in line]


def test_a_noisy_recording_is_told_wherever_it_is_sent(client: TestClient) -> None:
    sound = "data:audio/wav;base64," + b64encode(noisy_recording()).decode()
    body = {"input": TEXT, "ref_audio": sound, "ref_text": "What I said.", "consent": True}
    answers = [client.post("/v1/audio/speech", json=body)]
    files = {"audio": ("a.wav", noisy_recording(), "audio/wav")}
    form = {"name": "Bea", "consent": "true", "transcript": "What I said."}
    answers.append(client.post("/v1/audio/voices", data=form, files=files))
    for answer in answers:
        assert answer.status_code in (200, 201)
        assert "ref_text is not used (too noisy" in answer.headers["x-warnings"]
    del body["ref_text"]  # nothing that was asked for is left out
    assert "x-warnings" not in client.post("/v1/audio/speech", json=body).headers
