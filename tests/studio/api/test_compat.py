"""What clients of other services send and expect."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
import soundfile
from fastapi.testclient import TestClient

from engine import SAMPLE_RATE, Engine, Library, Pcm, Preset, SpeechRequest, SpeechStream
from studio.api import ApiSettings, create_api
from studio.api.responses.audio_output import Output
from studio.api.routes import speech
from studio.voices.foreign_names import FOREIGN_VOICES

TEXT = "The morning train was late again."
PATH = "/v1/audio/speech"


def ask(client: TestClient, **fields: Any) -> Any:
    return client.post(PATH, json={"input": TEXT, "seed": 1, "response_format": "pcm", **fields})


def test_unknown_keys_are_ignored_and_named(client: TestClient) -> None:
    plain = ask(client)
    assert "x-ignored-fields" not in plain.headers
    answer = ask(client, lang_code="a", user="me", _nonce=7, volume_multiplier=1.0)
    assert answer.content == plain.content
    assert answer.headers["x-ignored-fields"] == "lang_code, user, _nonce, volume_multiplier"
    assert ask(client, **{"new\r\nline: x": 1}).headers["x-ignored-fields"] == ""


def test_a_mistyped_key_is_refused(client: TestClient) -> None:
    for wrong, meant in (
        ("instructionz", "instructions"),
        ("voise", "voice"),
        ("respons_format", "response_format"),
        ("temperatur", "temperature"),
    ):
        answer = ask(client, **{wrong: "x"})
        assert answer.status_code == 400, wrong
        assert answer.json()["error"]["param"] == wrong
        assert f"'{meant}'" in answer.json()["error"]["message"]


def test_null_counts_as_left_out(client: TestClient) -> None:
    fields = ("voice", "instructions", "speed", "language", "stream_format", "task_type", "seed")
    assert ask(client, **dict.fromkeys((*fields, "ref_audio"))).status_code == 200
    assert ask(client, input=None).status_code == 400


@pytest.mark.parametrize("language", ["en", "en-US", "EN_gb", "english", "English"])
def test_languages_may_be_codes(client: TestClient, language: str) -> None:
    assert ask(client, language=language).content == ask(client, language="english").content
    assert ask(client, language="xx").status_code == 400


def test_voices_and_models_of_other_services_stand_for_ours(client: TestClient) -> None:
    aliases = client.get("/v1/audio/voices").json()["aliases"]
    for name in ("alloy", "ono_anna", "af_heart", "bm_george"):
        assert name in FOREIGN_VOICES
        wanted = aliases.get(name, name)  # a voice that is here by its own name is no alias
        assert ask(client, voice=name).content == ask(client, voice=wanted).content
    answer = ask(client, model="kokoro")
    assert answer.status_code == 200
    assert answer.headers["x-ignored-fields"] == "model"


def test_every_answer_has_an_id(client: TestClient) -> None:
    first, second = ask(client), ask(client)
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    answer = client.get("/v1/models", headers={"x-request-id": "mine-1"})
    assert answer.headers["x-request-id"] == "mine-1"
    bad = client.get("/v1/models", headers={"x-request-id": "a b"})
    assert bad.headers["x-request-id"].startswith("req_")
    assert client.get("/v1/nothing").headers["x-request-id"]


def test_open_webui_lists_voices_and_models(client: TestClient) -> None:
    """As its `get_available_voices` and `get_available_models` read them."""
    agent = {"user-agent": "python-requests/2.32.5"}
    data = client.get("/v1/audio/voices", headers=agent).json()
    voices = {voice["id"]: voice["name"] for voice in data["voices"]}
    names = client.get("/v1/audio/voices").json()["voices"]
    assert sorted(voices) == sorted(names)
    assert all(isinstance(name, str) for name in names)
    assert client.get("/v1/audio/voices?form=objects").json()["voices"] == data["voices"]
    models = client.get("/v1/audio/models").json()["models"]
    assert {"tts-1", "fake"} <= {model["id"] for model in models}


def test_elevenlabs_routes_speak(client: TestClient) -> None:
    voices = client.get("/v1/voices").json()["voices"]
    voice = voices[0]["voice_id"]
    body = {"text": TEXT, "model_id": "eleven_flash_v2_5", "seed": 1, "language_code": "en"}
    body["voice_settings"] = {"stability": 0.5, "similarity_boost": 0.75, "speed": 1.0}
    whole = client.post(f"/v1/text-to-speech/{voice}?output_format=pcm_24000", json=body)
    assert whole.status_code == 200, whole.text
    assert whole.content == ask(client, voice=voice, language="en").content
    assert {"stability", "similarity_boost"} <= set(whole.headers["x-ignored-fields"].split(", "))
    streamed = client.post(f"/v1/text-to-speech/{voice}/stream", json=body)
    assert streamed.headers["content-type"] == "audio/mpeg"
    assert len(soundfile.read(io.BytesIO(streamed.content))[0])
    refused = client.post(f"/v1/text-to-speech/{voice}?output_format=pcm_f32le", json=body)
    assert refused.json()["error"]["param"] == "output_format"


def test_captioned_speech_has_the_times_of_words(client: TestClient) -> None:
    body = {"model": "kokoro", "input": TEXT, "voice": "af_heart", "response_format": "wav"}
    answer = client.post("/dev/captioned_speech", json={**body, "stream": False}).json()
    sound = soundfile.read(io.BytesIO(base64.b64decode(answer["audio"])))[0]
    times = answer["timestamps"]
    assert [each["word"] for each in times] == TEXT.split()
    edges = [each[key] for each in times for key in ("start_time", "end_time")]
    assert edges == sorted(edges)
    assert 0 <= edges[0] < edges[-1] <= len(sound) / SAMPLE_RATE


def test_a_key_may_come_as_other_clients_send_it(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(keys=("secret",))))
    voice = "/v1/voices"
    assert client.get(voice).status_code == 401
    assert client.get(voice, headers={"xi-api-key": "wrong"}).status_code == 401
    assert client.get(voice, headers={"xi-api-key": "secret"}).status_code == 200
    assert client.get("/dev/captioned_speech").status_code == 401
    protocols = ["realtime", "openai-insecure-api-key.secret"]
    with client.websocket_connect(f"{PATH}/stream", subprotocols=protocols) as socket:
        assert socket.accepted_subprotocol == "realtime"
        socket.send_json({"type": "input.done"})
        assert socket.receive_json()["type"] == "session.done"


def test_a_text_of_nothing_is_done_at_once_but_a_cancelled_one_is_done_once(
    client: TestClient,
) -> None:
    with client.websocket_connect(f"{PATH}/stream") as socket:
        socket.send_json({"type": "input.done"})
        done = socket.receive_json()
        assert (done["type"], done["total_sentences"], done["utterance_index"]) == (
            "session.done", 0, 0,
        )  # fmt: skip
        for kind in ("input.text", "input.cancel", "input.done", "input.done"):
            socket.send_json(
                {"type": kind, "text": TEXT} if kind == "input.text" else {"type": kind}
            )
        reports = []
        while len(reports) < 2:
            message = socket.receive()
            if "session.done" in (message.get("text") or ""):
                reports.append(json.loads(message["text"]))
        by_reason = {each["finish_reason"]: each for each in reports}
        assert by_reason.keys() == {"cancelled", "finished"}  # one for each utterance
        assert by_reason["finished"]["total_sentences"] == 0


def test_a_batch_item_that_succeeded_has_no_error(client: TestClient) -> None:
    answer = client.post("/v1/audio/speech/batch", json={"items": [{"input": TEXT}, {"input": ""}]})
    good, bad = answer.json()["results"]
    assert good["error"] is None
    assert bad["error"]["message"]


def test_null_in_a_batch_item_counts_as_left_out(
    engine: Engine, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    voices: list[Any] = []
    submit = engine.submit

    def noted(request: SpeechRequest) -> SpeechStream:
        voices.append(request.voice)
        return submit(request)

    monkeypatch.setattr(engine, "submit", noted)
    items = [{"input": TEXT, "voice": None}, {"input": TEXT, "speaker": "ryan", "seed": None}]
    client.post(f"{PATH}/batch", json={"voice": "vivian", "seed": 1, "items": items})
    assert voices == [Preset("vivian"), Preset("ryan")]


def test_a_batch_item_that_fails_unforeseen_fails_alone(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    render = speech.render

    def broken(pcm: Pcm, output: Output) -> bytes:
        if output.format == "opus":
            raise RuntimeError("the encoder is gone")
        return render(pcm, output)

    monkeypatch.setattr(speech, "render", broken)
    items = [{"input": TEXT, "response_format": format} for format in ("wav", "opus", "wav")]
    answer = client.post("/v1/audio/speech/batch", json={"items": items})
    results = answer.json()["results"]
    assert [each["status"] for each in results] == ["success", "error", "success"]
    assert results[1]["error"]["code"] == "internal_error"
    assert "encoder" not in answer.text


def test_an_uploaded_voice_has_its_id_at_the_top(client: TestClient) -> None:
    numbers = "[" + ",".join(["0.5"] * 16) + "]"
    form = {"name": (None, "Ada"), "consent": (None, "true"), "embedding": (None, numbers)}
    voice = client.post("/v1/audio/voices", files=form).json()
    assert (voice["object"], voice["name"]) == ("audio.voice", "Ada")
    assert voice["id"] == voice["voice"]["id"]
    assert voice["created_at"] > 0
