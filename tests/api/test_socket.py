"""The WebSocket dialogue: text as it comes, cancel, barge-in, timestamps, limits, and chaos."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from starlette.testclient import WebSocketDenialResponse, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from engine import FRAME_SAMPLES, SAMPLE_RATE, Costs, Engine, EngineSettings, FakeEngine, Library
from studio.api import ApiSettings, create_api

from .serving import wait_until
from .test_voices import upload

PATH = "/v1/audio/speech/stream"
TEXT = "The morning train was late again. She read on."


def say(socket: WebSocketTestSession, *messages: dict[str, Any]) -> None:
    for message in messages:
        socket.send_text(json.dumps(message))


def words(text: str) -> list[dict[str, Any]]:
    pieces = [word + " " for word in text.split(" ")]
    pieces[-1] = pieces[-1][:-1]
    return [{"type": "input.text", "text": piece} for piece in pieces]


def config(**fields: Any) -> dict[str, Any]:
    return {"type": "session.config", "seed": 5, **fields}


DONE, CANCEL = {"type": "input.done"}, {"type": "input.cancel"}


def hear(socket: WebSocketTestSession, until: str = "session.done") -> tuple[list[Any], bytes]:
    """Messages up to one of a type, and the audio between them."""
    told: list[Any] = []
    audio = b""
    while not told or told[-1]["type"] != until:
        message = socket.receive()
        if message["type"] == "websocket.close":
            raise WebSocketDisconnect(message["code"], str(told)[:600])
        audio += message.get("bytes") or b""
        if message.get("text"):
            told.append(json.loads(message["text"]))
    return told, audio


def whole(client: TestClient, **fields: Any) -> bytes:
    body = {"input": TEXT, "seed": 5, "response_format": "pcm", "non_streaming_mode": False}
    answer = client.post("/v1/audio/speech", json={**body, **fields})
    assert answer.status_code == 200, answer.text
    return answer.content


def test_words_that_come_one_by_one_sound_as_the_text_whole(client: TestClient) -> None:
    with client.websocket_connect(PATH) as socket:
        say(socket, config(voice="ryan"), *words(TEXT), DONE)
        told, audio = hear(socket)
    assert audio == whole(client, voice="ryan")
    assert [message["type"] for message in told] == ["audio.start", "audio.done", "session.done"]
    start, done, last = told
    assert (start["format"], start["sample_rate"], start["seed"]) == ("pcm", SAMPLE_RATE, 5)
    assert done["total_bytes"] == len(audio)
    assert done["end"] == pytest.approx(len(audio) / 2 / SAMPLE_RATE, abs=1e-3)
    assert last["finish_reason"] == "finished"
    assert last["sentences"][-1]["end"] == done["end"]
    assert all(sentence["estimated"] for sentence in last["sentences"])


def test_a_clone_speaks_from_the_first_words_too(client: TestClient) -> None:
    upload(client, transcript="Hello there.")
    with client.websocket_connect(PATH) as socket:
        say(socket, config(voice="Ada"), *words(TEXT), DONE)
        _, audio = hear(socket)
    assert audio == whole(client, voice="Ada")


def test_it_speaks_before_the_text_is_complete(client: TestClient) -> None:
    with client.websocket_connect(PATH) as socket:
        say(socket, config(), {"type": "input.text", "text": "Hello there my friend "})
        told, _ = hear(socket, until="audio.start")
        assert told[-1]["utterance_index"] == 0
        assert len(socket.receive()["bytes"]) >= 2 * FRAME_SAMPLES
        say(socket, CANCEL)
        hear(socket)


def test_sentence_by_sentence_has_exact_times(client: TestClient) -> None:
    with client.websocket_connect(PATH) as socket:
        say(socket, config(split_granularity="sentence"), *words(TEXT), DONE)
        told, audio = hear(socket)
    starts = [message for message in told if message["type"] == "audio.start"]
    dones = [message for message in told if message["type"] == "audio.done"]
    sentences = ["The morning train was late again.", "She read on."]
    assert [start["sentence_text"] for start in starts] == sentences
    assert [start["sentence_index"] for start in starts] == [0, 1]
    assert dones[0]["start"] == 0
    assert dones[0]["end"] == dones[1]["start"]
    for done in dones:
        seconds = done["total_bytes"] / 2 / SAMPLE_RATE
        assert done["end"] - done["start"] == pytest.approx(seconds, abs=2e-3)
    assert len({start["seed"] for start in starts}) == 1
    last = told[-1]["sentences"]
    assert [each["text"] for each in last] == sentences
    assert not any(each["estimated"] for each in last)
    assert len(audio) == sum(done["total_bytes"] for done in dones)


def test_utterances_follow_each_other_on_one_socket(client: TestClient) -> None:
    with client.websocket_connect(PATH) as socket:
        say(socket, config(), *words("One."), DONE, *words("Two."), DONE)
        first, one = hear(socket)
        second, two = hear(socket)
    assert (first[0]["utterance_index"], second[0]["utterance_index"]) == (0, 1)
    assert one == whole(client, input="One.")
    assert two == whole(client, input="Two.")


@pytest.mark.parametrize("format", ["wav", "mp3", "opus", "flac"])
def test_other_formats_are_files_of_their_own(client: TestClient, format: str) -> None:
    with client.websocket_connect(PATH) as socket:
        say(socket, config(response_format=format, speed=1.25), *words(TEXT), DONE)
        told, audio = hear(socket)
    samples = len(soundfile.read(io.BytesIO(audio))[0])
    assert samples / SAMPLE_RATE == pytest.approx(told[-1]["sentences"][-1]["end"], abs=0.1)


@pytest.fixture
def slow() -> Any:
    with FakeEngine(costs=Costs(step=0.01), settings=EngineSettings(slots=4)) as engine:
        yield engine


LONG = {"type": "input.text", "text": "A word. " * 200}


@pytest.mark.parametrize("split", ["none", "sentence"])
def test_barging_in_stops_and_starts_anew(slow: Engine, library: Library, split: str) -> None:
    client = TestClient(create_api(slow, library))
    with client.websocket_connect(PATH) as socket:
        say(socket, config(split_granularity=split), LONG, DONE, *words("Next."), DONE)
        hear(socket, until="audio.start")
        wait_until(lambda: slow.stats().running >= 1)
        say(socket, CANCEL, {"type": "input.text", "text": "New."}, DONE)
        reasons = [hear(socket)[0][-1] for _ in range(3)]
    told = [(each["utterance_index"], each["finish_reason"]) for each in reasons]
    assert told == [(0, "cancelled"), (1, "cancelled"), (2, "finished")]
    assert reasons[2]["sentences"][0]["text"] == "New."
    wait_until(lambda: slow.stats().running == 0)


def test_leaving_frees_the_slot(slow: Engine, library: Library) -> None:
    client = TestClient(create_api(slow, library))
    with client.websocket_connect(PATH) as socket:
        say(socket, LONG)
        hear(socket, until="audio.start")
        assert slow.stats().running == 1
    wait_until(lambda: slow.stats().running == 0, seconds=1)


def test_too_many_utterances_are_refused_one_by_one(slow: Engine, library: Library) -> None:
    client = TestClient(create_api(slow, library, ApiSettings(utterances=2)))
    with client.websocket_connect(PATH) as socket:
        say(socket, LONG, DONE, LONG, DONE, *words("Third."), DONE)
        told, _ = hear(socket, until="error")
        assert told[-1]["error"]["code"] == "too_many_utterances"


def test_silence_ends_the_socket(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(idle_timeout=0.1)))
    with client.websocket_connect(PATH) as socket:
        say(socket, {"type": "input.text", "text": "Never finished"})
        told, _ = hear(socket, until="error")
        assert told[-1]["error"]["code"] == "idle_timeout"
        with pytest.raises(WebSocketDisconnect):
            hear(socket)
    wait_until(lambda: engine.stats().running == 0)


def test_speaking_is_not_silence(slow: Engine, library: Library) -> None:
    client = TestClient(create_api(slow, library, ApiSettings(idle_timeout=0.15)))
    with client.websocket_connect(PATH) as socket:
        say(socket, {"type": "input.text", "text": "x" * 60}, DONE)
        told, _ = hear(socket)
    assert told[-1]["finish_reason"] == "finished"


def test_sockets_are_bounded(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(sockets=1)))
    with client.websocket_connect(PATH):
        with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect(PATH):
            pass
        assert refused.value.status_code == 503
    with client.websocket_connect(PATH):
        pass


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("nonsense", "invalid_message"),
        ("[]", "invalid_message"),
        ('{"type": "dance"}', "invalid_message"),
        ('{"type": "input.text"}', "missing"),
        ('{"type": "input.text", "text": "hi", "loud": true}', "unknown_key"),
        ('{"type": "input.text", "text": 5}', "invalid_value"),
        ('{"type": "input.text", "text": "a\\u0000"}', "invalid_text"),
        ('{"type": "session.config", "voice": "nobody"}', "voice_not_found"),
        ('{"type": "session.config", "speed": 9}', "invalid_value"),
        ('{"type": "session.config", "ref_audio": "http://x"}', "address_refused"),
        ('{"type": "input.text", "text": "' + "x" * 200_000 + '"}', "too_large"),
        ("[" * 50_000, "invalid_message"),
    ],
)
def test_a_bad_message_is_answered_and_the_dialogue_goes_on(
    client: TestClient, message: str, code: str
) -> None:
    with client.websocket_connect(PATH) as socket:
        socket.send_text(message)
        told, _ = hear(socket, until="error")
        assert told[-1]["error"]["code"] == code
        assert told[-1]["message"] == told[-1]["error"]["message"]
        say(socket, *words("Fine."), DONE)
        assert hear(socket)[0][-1]["finish_reason"] == "finished"


def test_a_failed_step_ends_the_utterance_not_the_socket(
    engine: Engine, client: TestClient
) -> None:
    def fault(plan: object) -> None:
        engine.worker.fault = lambda plan: None
        raise RuntimeError("the device fell over")

    with client.websocket_connect(PATH) as socket:
        engine.worker.fault = fault
        say(socket, *words("Hello."), DONE)
        told, _ = hear(socket)
        assert [each["type"] for each in told][-2:] == ["error", "session.done"]
        assert told[-1]["finish_reason"] == "error"
        say(socket, *words("Again."), DONE)
        assert hear(socket)[0][-1]["finish_reason"] == "finished"


CHAOS: list[Any] = [
    *words("Hello there. How are you? "),
    *words("Fine."),
    {"type": "input.text", "text": "A word. " * 20},
    {"type": "input.text", "text": ""},
    {"type": "input.text", "text": " "},
    DONE,
    DONE,
    CANCEL,
    config(),
    config(split_granularity="sentence"),
    config(response_format="opus", speed=1.5),
    config(voice="nobody"),
    config(max_new_tokens=3, ignore_eos=True),
    {"type": "dance"},
    {"type": "input.text", "text": 7},
    "nonsense",
    b"\x00\x01binary",
]


@pytest.mark.parametrize("seed", [1, 2])
def test_five_hundred_wild_messages_leave_no_slot_taken(library: Library, seed: int) -> None:
    chance = random.Random(seed)
    with FakeEngine(costs=Costs(step=0.0005), settings=EngineSettings(slots=3)) as engine:
        client = TestClient(create_api(engine, library))
        with client.websocket_connect(PATH) as socket:
            for _ in range(500):
                send_wild(socket, chance.choice(CHAOS))
            say(socket, config(), CANCEL, *words("The end."), DONE)
            while True:
                told, _ = hear(socket)
                sentences = told[-1]["sentences"]
                if sentences and sentences[-1]["text"] == "The end.":
                    break
        wait_until(lambda: engine.stats().running == engine.stats().waiting == 0)
        assert engine.alive
        assert engine.stats().failed_steps == 0


def send_wild(socket: WebSocketTestSession, message: Any) -> None:
    if isinstance(message, bytes):
        socket.send_bytes(message)
    else:
        socket.send_text(message if isinstance(message, str) else json.dumps(message))


def test_audio_is_sixteen_bit_and_whole_samples(client: TestClient) -> None:
    with client.websocket_connect(PATH) as socket:
        say(socket, config(), *words("Hi."), DONE)
        _, audio = hear(socket)
    assert len(np.frombuffer(audio, "<i2")) % FRAME_SAMPLES == 0
