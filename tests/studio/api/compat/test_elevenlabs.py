"""ElevenLabs' routes: the times of characters, text over a WebSocket, voices, models, account."""

from __future__ import annotations

import base64
import io
import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from engine import SAMPLE_RATE, Engine, EngineSettings, Library
from engine.testing import Costs, FakeEngine
from studio.api import ApiSettings, create_api
from studio.api.compat.alignment import align
from tests.studio.api.routes.test_voices import speak, upload
from tests.support.serving import wait_until

TEXT = "The morning train was late again."
VOICE = "/v1/text-to-speech/vivian"
INPUT = f"{VOICE}/stream-input?output_format=pcm_24000&seed=1"
BODY = {"text": TEXT, "seed": 1}


def check_times(answer: dict[str, Any], text: str, seconds: float) -> None:
    assert "".join(answer["characters"]) == text
    starts = answer["character_start_times_seconds"]
    ends = answer["character_end_times_seconds"]
    assert len(starts) == len(ends) == len(text)
    edges = [edge for pair in zip(starts, ends, strict=True) for edge in pair]
    assert edges == sorted(edges)
    assert 0 <= edges[0] < edges[-1] <= seconds + 0.001


@pytest.mark.parametrize("speed", [1.0, 2.0])
def test_a_whole_answer_has_the_times_of_its_characters(client: TestClient, speed: float) -> None:
    body = {**BODY, "voice_settings": {"speed": speed}}
    body_read = client.post(f"{VOICE}/with-timestamps?output_format=pcm_24000", json=body).json()
    sound = base64.b64decode(body_read["audio_base64"])
    assert sound == speak(client, voice="vivian", speed=speed)
    check_times(body_read["alignment"], TEXT, len(sound) / 2 / SAMPLE_RATE)
    assert body_read["normalized_alignment"] == body_read["alignment"]
    wrong = client.post(f"{VOICE}/with-timestamps?output_format=pcm_1", json=BODY)
    assert wrong.json()["error"]["param"] == "output_format"


def test_fields_of_the_sdk_that_change_nothing_are_no_typing_errors(client: TestClient) -> None:
    path = f"{VOICE}?output_format=pcm_24000"
    plain = client.post(path, json=BODY)
    fields = {
        "apply_text_normalization": "auto",
        "apply_language_text_normalization": True,
        "previous_text": "Before.",
        "next_text": "After.",
        "previous_request_ids": ["x"],
        "next_request_ids": [],
        "pronunciation_dictionary_locators": [],
        "use_pvc_as_ivc": False,
    }
    answer = client.post(path, json={**BODY, **fields})
    assert answer.status_code == 200, answer.text
    assert answer.content == plain.content
    assert "apply_language_text_normalization" in answer.headers["x-ignored-fields"]


def test_a_streamed_answer_ends_with_the_times(client: TestClient) -> None:
    path = f"{VOICE}/stream/with-timestamps?output_format=pcm_24000"
    with client.stream("POST", path, json=BODY) as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        lines = [json.loads(line) for line in answer.iter_lines()]
    assert len(lines) >= 2  # a busy machine joins chunks
    sound = b"".join(base64.b64decode(line["audio_base64"]) for line in lines)
    assert sound == speak(client, voice="vivian")
    assert all(line["alignment"] is None for line in lines[:-1])
    check_times(lines[-1]["alignment"], TEXT, len(sound) / 2 / SAMPLE_RATE)
    assert client.post(path.replace("vivian", "nobody"), json=BODY).status_code == 404


@settings(max_examples=60, deadline=None, database=None)
@given(st.text(st.sampled_from("ab .,\n\u00a0你é"), max_size=40), st.integers(0, 3))
def test_any_text_has_times_in_order(text: str, tones: int) -> None:
    tone = (np.sin(np.arange(SAMPLE_RATE // 4) / 5) * 9000).astype(np.int16)
    pcm = np.concatenate([tone * 0, *[tone] * tones])
    times = align(text, pcm)
    assert "".join(times.characters) == text
    assert len(times.edges) == len(text) + 1
    assert times.edges == sorted(times.edges)
    assert 0 <= times.edges[0] <= times.edges[-1] <= len(pcm) / SAMPLE_RATE
    milliseconds = times.milliseconds()
    assert all(each >= 0 for each in milliseconds["charDurationsMs"])


def send(socket: WebSocketTestSession, text: str, **fields: Any) -> None:
    socket.send_json({"text": text, **fields})


def hear(socket: WebSocketTestSession) -> list[Any]:
    """All messages, to the final one."""
    reports: list[Any] = []
    while not reports or not (reports[-1].get("isFinal") or "error" in reports[-1]):
        reports.append(socket.receive_json())
    return reports


def sound(messages: list[Any]) -> bytes:
    return b"".join(base64.b64decode(each["audio"]) for each in messages if each.get("audio"))


def alignments(messages: list[Any]) -> list[Any]:
    return [each["alignment"] for each in messages if each.get("alignment")]


def test_text_in_pieces_is_spoken_with_its_times(client: TestClient) -> None:
    with client.websocket_connect(INPUT) as socket:
        send(socket, " ", voice_settings={"speed": 1.0}, generation_config={"x": [50]})
        for word in TEXT.split():
            send(socket, word + " ", try_trigger_generation=True)
        send(socket, "")
        events = hear(socket)
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
    assert closed.value.code == 1000
    assert events[-1] == {"audio": None, "isFinal": True}
    (times,) = alignments(events)
    assert "".join(times["chars"]) == TEXT + " "
    starts = times["charStartTimesMs"]
    assert starts == sorted(starts)
    seconds = len(sound(events)) / 2 / SAMPLE_RATE
    assert 0 < starts[-1] + times["charDurationsMs"][-1] <= 1000 * seconds + 1


def test_a_flush_speaks_what_is_there(client: TestClient) -> None:
    with client.websocket_connect(INPUT) as socket:
        send(socket, " ")
        send(socket, "First part. ", flush=True)
        reports: list[Any] = []
        while not alignments(reports):  # before any further text
            reports.append(socket.receive_json())
        assert "".join(alignments(reports)[0]["chars"]) == "First part. "
        send(socket, "Second part. ")
        send(socket, "")
        rest = hear(socket)
    assert "".join(alignments(rest)[0]["chars"]) == "Second part. "
    assert sound(reports)
    assert sound(rest)


def test_other_formats_come_as_asked(client: TestClient) -> None:
    path = INPUT.replace("pcm_24000", "mp3_44100_128")
    with client.websocket_connect(path) as socket:
        send(socket, TEXT)
        send(socket, "")
        file = sound(hear(socket))
    assert soundfile.info(io.BytesIO(file)).samplerate == 44_100


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (INPUT.replace("vivian", "nobody"), "voice_not_found"),
        (INPUT.replace("pcm_24000", "pcm_7"), "invalid_value"),
        (INPUT + "&language_code=xx", "unknown_language"),
        (INPUT.replace("seed=1", "seed=x"), "invalid_value"),
    ],
)
def test_what_cannot_be_ends_the_socket(client: TestClient, path: str, code: str) -> None:
    with client.websocket_connect(path) as socket:
        send(socket, TEXT)
        message = socket.receive_json()
        assert (message["error"], message["code"]) == (code, 1008)
        assert message["message"]
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
    assert closed.value.code == 1008


@pytest.mark.parametrize(
    "message",
    ["", "{", "[]", "1", '{"text": 1}', "{}", '{"text": "a", "voice_setings": {}}', "[" * 3000,
     '{"text": "' + "x" * 200_000 + '"}'],
)  # fmt: skip
def test_hostile_messages_end_the_socket(client: TestClient, message: str) -> None:
    with client.websocket_connect(INPUT) as socket:
        socket.send_text(message)
        assert socket.receive_json()["error"]
        with pytest.raises(WebSocketDisconnect):
            socket.receive_json()


def test_text_without_end_is_bounded(library: Library) -> None:
    with FakeEngine(settings=EngineSettings(max_text=200)) as engine:
        client = TestClient(create_api(engine, library))
        with client.websocket_connect(INPUT) as socket:
            for _ in range(40):
                send(socket, "It goes on. ")
            assert hear(socket)[-1]["error"] == "invalid_text"
        wait_until(lambda: engine.stats().running == 0)


def test_silence_and_leaving_end_what_runs(slow: Engine, library: Library) -> None:
    client = TestClient(create_api(slow, library, ApiSettings(idle_timeout=0.3)))
    with client.websocket_connect(INPUT) as socket:
        send(socket, "Never finished")
        assert hear(socket)[-1]["error"] == "idle_timeout"
    with client.websocket_connect(INPUT) as socket:
        send(socket, "A word. " * 100, flush=True)
        socket.receive_json()
    wait_until(lambda: slow.stats().running == 0)


def test_waiting_for_the_first_sound_is_not_silence(library: Library) -> None:
    """A slow machine holds the sound of an open text back."""
    with FakeEngine(costs=Costs(step=2.0)) as engine:
        client = TestClient(create_api(engine, library, ApiSettings(idle_timeout=0.05)))
        with client.websocket_connect(INPUT) as socket:
            send(socket, "Never finished")
            messages = hear(socket)
    assert messages[-1]["error"] == "idle_timeout"
    assert messages[0]["audio"]


def test_voices_models_and_account(client: TestClient, engine: Engine) -> None:
    made = upload(client, note="Warm.").json()
    for name in (made["id"], "Ada", "ada"):
        voice = client.get(f"/v1/voices/{name}").json()
        assert (voice["voice_id"], voice["name"], voice["category"]) == (made["id"], "Ada", "clone")
    assert voice["description"] == "Warm."
    assert client.get("/v1/voices/VIVIAN").json()["voice_id"] == "vivian"
    missing = client.get("/v1/voices/nobody")
    assert (missing.status_code, missing.json()["error"]["param"]) == (404, "voice_id")
    for path in ("/v1/voices/ada/settings", "/v1/voices/settings/default"):
        assert client.get(path).json() == {"speed": 1.0}
    models = client.get("/v1/models", headers={"xi-api-key": "none"}).json()
    assert [able["model_id"] for able in models] == list(engine.capabilities())
    assert models[0]["can_do_text_to_speech"]
    assert client.get("/v1/models").json()["object"] == "list"
    account = client.get("/v1/user/subscription").json()
    assert (account["voice_slots_used"], account["status"]) == (1, "active")
    assert client.get("/v1/user").json()["subscription"] == account


def test_keys_hold_here_too(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(keys=("secret",))))
    for path in ("/v1/user", "/v1/voices/vivian"):
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"xi-api-key": "secret"}).status_code == 200
    with client.websocket_connect(INPUT, headers={"xi-api-key": "secret"}) as socket:
        send(socket, "")
        assert hear(socket)[-1]["isFinal"]


# multi-stream-input

CONTEXTS = INPUT.replace("/stream-input", "/multi-stream-input")


def by_context(messages: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for each in messages:
        found.setdefault(each["contextId"], []).append(each)
    return found


def hear_all(socket: WebSocketTestSession, *names: str) -> dict[str, list[Any]]:
    """Messages until each of these contexts has told its last."""
    reports: list[Any] = []
    left = sorted(names)
    while left:
        reports.append(socket.receive_json())
        assert "error" not in reports[-1], reports[-1]
        if reports[-1]["isFinal"]:
            left.remove(reports[-1]["contextId"])
    return by_context(reports)


def test_contexts_speak_at_the_same_time(client: TestClient) -> None:
    texts = {"a": TEXT, "b": "Then more of it."}
    with client.websocket_connect(CONTEXTS) as socket:
        for name in texts:
            send(socket, " ", context_id=name, voice_settings={"speed": 1.0})
        for name, text in texts.items():
            for word in text.split():
                send(socket, word + " ", context_id=name)
            send(socket, "", context_id=name, flush=True)
            socket.send_json({"context_id": name, "close_context": True})
        messages = hear_all(socket, *texts)
        socket.send_json({"close_socket": True})
        with pytest.raises(WebSocketDisconnect) as ended:
            socket.receive_json()
    assert ended.value.code == 1000
    for name, text in texts.items():
        assert sound(messages[name]) == speak(
            client, input=text + " ", voice="vivian", non_streaming_mode=False
        )
        assert "".join(messages[name][-2]["alignment"]["chars"]) == text + " "


def test_an_interrupted_context_leaves_out_what_was_not_flushed(
    library: Library, slow: Engine
) -> None:
    with TestClient(create_api(slow, library)) as client:
        with client.websocket_connect(CONTEXTS) as socket:
            send(socket, "First of all. ", context_id="a", flush=True)
            send(socket, "It goes on. " * 40, context_id="a")
            while not socket.receive_json()["alignment"]:
                pass  # until the flushed part is said
            socket.send_json({"context_id": "a", "close_context": True})
            send(socket, TEXT, context_id="a", flush=True)  # another of that name
            socket.send_json({"close_socket": True})
            messages = hear_all(socket, "a", "a")["a"]
        ends = [place for place, each in enumerate(messages) if each["isFinal"]]
        assert not alignments(messages[: ends[0]])  # it was not finished
        wait_until(lambda: slow.stats().running == 0)


def test_flushes_that_come_fast_keep_no_message_waiting(client: TestClient) -> None:
    """More parts than may wait: they are joined, and the others go on."""
    words = [f"Part {i} is here. " for i in range(20)]
    with client.websocket_connect(CONTEXTS) as socket:
        for word in words:
            send(socket, word, context_id="a", flush=True)
        send(socket, TEXT, context_id="b", flush=True)
        socket.send_json({"close_socket": True})
        messages = hear_all(socket, "a", "b")
    spoken = ["".join(each["chars"]) for each in alignments(messages["a"])]
    assert "".join(spoken) == "".join(words)
    assert spoken[0] == words[0]


def test_a_text_may_be_kept_without_a_word(client: TestClient) -> None:
    with client.websocket_connect(CONTEXTS) as socket:
        for message in ({"text": ""}, {"text": "", "context_id": "x"}, {"flush": True}):
            socket.send_json(message)
        socket.send_json({"context_id": "x", "close_context": True})
        send(socket, TEXT)
        send(socket, "")
        socket.send_json({"flush": True})
        socket.send_json({"close_socket": True})
        assert sound(hear_all(socket, "default")["default"])


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([{"text": "Word. ", "context_id": str(i)} for i in range(6)], "max_active_contexts"),
        ([{"text": 7}], "invalid_value"),
        ([{"text": "Hi.", "context_id": "x" * 200}], "invalid_value"),
        ([{"text": "Hi.", "voice_settings": {"speed": 9}}], "invalid_value"),
        (["{"], "invalid_json"),
    ],
)
def test_contexts_that_cannot_be_end_the_socket(
    client: TestClient, engine: Engine, messages: list[Any], code: str
) -> None:
    with client.websocket_connect(CONTEXTS) as socket:
        for message in messages:
            socket.send_text(message if isinstance(message, str) else json.dumps(message))
        error = socket.receive_json()
        while "error" not in error:
            error = socket.receive_json()
        assert error["error"] == code
        with suppress(WebSocketDisconnect):
            while True:
                socket.receive_json()
    wait_until(lambda: engine.stats().running == 0)


def test_a_client_that_leaves_frees_all_contexts(library: Library, slow: Engine) -> None:
    with TestClient(create_api(slow, library)) as client:
        with client.websocket_connect(CONTEXTS) as socket:
            for name in "abc":
                send(socket, "It goes on. " * 40, context_id=name, flush=name != "b")
            socket.receive_json()
        wait_until(lambda: slow.stats().running == 0)
