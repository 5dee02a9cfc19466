"""Dialogues that go wrong: limits, bad messages, failing steps, chaos."""

from __future__ import annotations

import json
import random
import socket
import struct
import time
from base64 import b64encode
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient
from starlette.testclient import WebSocketDenialResponse, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from engine import SAMPLE_RATE, Engine, EngineSettings, Library, Pcm
from engine.testing import Costs, FakeEngine
from studio.api import ApiSettings, create_api
from studio.api.responses.audio_output import Render
from tests.studio.api.conftest import Serve
from tests.studio.api.routes.test_voices import recording
from tests.studio.api.websocket.ws_client import CANCEL, DONE, LONG, PATH, config, hear, say, words
from tests.support.serving import wait_until


def test_too_many_utterances_are_refused_one_by_one(slow: Engine, library: Library) -> None:
    client = TestClient(create_api(slow, library, ApiSettings(utterances=2)))
    with client.websocket_connect(PATH) as socket:
        say(socket, LONG, DONE, LONG, DONE, *words("Third."), DONE)
        events, _ = hear(socket, until="error")
        assert events[-1]["error"]["code"] == "too_many_utterances"


def test_what_follows_a_refused_text_is_not_spoken_without_it(
    slow: Engine, library: Library
) -> None:
    """A model's words come while others end: "Please do" was refused, "not open the door" is not
    what was meant."""
    client = TestClient(create_api(slow, library, ApiSettings(utterances=1)))
    first, rest = words("Please do "), words("not open the door.")
    with client.websocket_connect(PATH) as socket:
        say(socket, {"type": "input.text", "text": "Wait."}, DONE, *first[:1])
        events, _ = hear(socket, until="error")
        assert events[-1]["error"]["code"] == "too_many_utterances"
        hear(socket)  # there is room
        say(socket, *rest[:1])
        events, audio = hear(socket, until="error")
        assert (events[-1]["error"]["code"], audio) == ("text_refused", b"")
        say(socket, DONE)
        events, audio = hear(socket)
        assert (events[-1]["finish_reason"], audio) == ("error", b"")
        say(socket, *first, *rest, DONE)
        events, audio = hear(socket)
        assert (events[-1]["finish_reason"], len(events)) == ("finished", 3)
        assert events[-1]["sentences"][0]["text"] == "Please do not open the door."


def test_no_word_is_missing_in_the_middle(library: Library) -> None:
    with FakeEngine(settings=EngineSettings(max_text=40)) as engine:
        client = TestClient(create_api(engine, library))
        with client.websocket_connect(PATH) as socket:
            pieces = ("You should press the red button, ", "absolutely never ", "now. ")
            say(socket, *[{"type": "input.text", "text": piece} for piece in pieces])
            codes = [hear(socket, until="error")[0][-1]["error"]["code"] for _ in range(2)]
            say(socket, DONE)
            events, _ = hear(socket)
    assert codes == ["invalid_text", "text_refused"]
    assert "now" not in events[-1]["sentences"][0]["text"]


def test_what_is_cancelled_takes_nobodys_turn(library: Library) -> None:
    settings = EngineSettings(max_num_seqs=4, max_wait=600)  # a busy machine refuses nobody either
    with FakeEngine(settings=settings, costs=Costs(step=0.01)) as engine:
        client = TestClient(create_api(engine, library, ApiSettings(utterances=2)))
        with client.websocket_connect(PATH) as socket:
            for _ in range(3):
                say(socket, LONG, DONE, LONG, DONE, CANCEL)
            say(socket, *words("At last."), DONE)
            events = [hear(socket)[0] for _ in range(7)]
    assert not [message for part in events for message in part if message["type"] == "error"]
    assert events[-1][-1]["finish_reason"] == "finished"


def test_silence_ends_the_socket(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(idle_timeout=0.1)))
    with client.websocket_connect(PATH) as socket:
        say(socket, {"type": "input.text", "text": "Never finished"})
        events, _ = hear(socket, until="error")
        assert events[-1]["error"]["code"] == "idle_timeout"
        with pytest.raises(WebSocketDisconnect):
            hear(socket)
    wait_until(lambda: engine.stats().running == 0)


def test_speaking_is_not_silence(slow: Engine, library: Library) -> None:
    client = TestClient(create_api(slow, library, ApiSettings(idle_timeout=1.0)))
    with client.websocket_connect(PATH) as socket:
        say(socket, {"type": "input.text", "text": "x" * 150}, DONE)
        events, _ = hear(socket)
    assert events[-1]["finish_reason"] == "finished"


def test_waiting_for_the_first_sound_is_not_silence(library: Library) -> None:
    """A slow machine holds the sound of an open text back."""
    with FakeEngine(costs=Costs(step=2.0)) as engine:
        client = TestClient(create_api(engine, library, ApiSettings(idle_timeout=0.05)))
        with client.websocket_connect(PATH) as socket:
            say(socket, {"type": "input.text", "text": "Never finished"})
            events, audio = hear(socket, until="error")
    assert events[-1]["error"]["code"] == "idle_timeout"
    assert audio


def test_who_still_listens_is_not_idle(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(idle_timeout=0.2)))
    with client.websocket_connect(PATH) as socket:
        begun = time.monotonic()
        say(socket, config(max_new_tokens=25, ignore_eos=True), *words("Two seconds."), DONE)
        _, audio = hear(socket)
        events, _ = hear(socket, until="error")
    assert (events[-1]["error"]["code"], len(audio) / 2 / SAMPLE_RATE) == ("idle_timeout", 2)
    assert time.monotonic() - begun > 2  # the audio is made in no time


def test_a_cancel_ends_what_would_still_be_heard(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(idle_timeout=0.2)))
    with client.websocket_connect(PATH) as socket:
        say(socket, config(max_new_tokens=2000, ignore_eos=True), LONG, DONE)
        hear(socket)
        say(socket, CANCEL)
        begun = time.monotonic()
        events, _ = hear(socket, until="error")
    assert events[-1]["error"]["code"] == "idle_timeout"
    assert time.monotonic() - begun < 100  # 160 s of audio


@pytest.mark.parametrize("split", ["none", "sentence"])
def test_an_utterance_in_pieces_is_no_longer_than_a_request(library: Library, split: str) -> None:
    with FakeEngine(settings=EngineSettings(max_text=200)) as engine:
        client = TestClient(create_api(engine, library))
        with client.websocket_connect(PATH) as socket:
            say(
                socket,
                config(split_granularity=split),
                *[{"type": "input.text", "text": "It goes on. "}] * 20,
            )
            events, _ = hear(socket, until="error")
            say(socket, DONE)
            hear(socket)
        assert events[-1]["error"]["code"] == "invalid_text"
        assert sum(engine.stats().ended.values()) <= 200 // len("It goes on. ")


def test_what_came_while_the_server_stood_still_is_heard(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(idle_timeout=0.3)))
    with client.websocket_connect(PATH) as socket:
        socket.portal.start_task_soon(time.sleep, 0.6)  # its event loop, not this thread
        say(socket, *words("Better late than never."), DONE)
        events, _ = hear(socket)
    assert [message for message in events if message["type"] == "error"] == []
    assert events[-1]["finish_reason"] == "finished"


def test_sockets_are_bounded(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(sockets=1)))
    with client.websocket_connect(PATH):
        with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect(PATH):
            pass
        assert refused.value.status_code == 503
        assert refused.value.headers["retry-after"] == "5"
        assert refused.value.json()["error"]["retry_after"] == 5
    with client.websocket_connect(PATH):
        pass


def test_a_recording_in_a_config_counts_as_a_request(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(address_rate="2/minute")))
    url = f"data:audio/wav;base64,{b64encode(recording()).decode()}"
    heard = config(ref_audio=url, consent=True)
    with client.websocket_connect(PATH) as socket:  # the first request
        say(socket, heard, heard, {"type": "dance"})
        events, _ = hear(socket, until="error")
    assert events[-1]["error"]["code"] == "rate_limit"


def unread(url: str, *messages: dict[str, Any]) -> socket.socket:
    """A socket that says something and reads nothing of the answer."""
    place, wire = urlsplit(url), socket.socket()
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.connect((place.hostname, place.port))
    names = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
    key = b64encode(bytes(16)).decode()
    head = (f"GET {PATH} HTTP/1.1", "Host: x", *names, f"Sec-WebSocket-Key: {key}", "", "")
    wire.sendall("\r\n".join(head).encode())
    assert b" 101 " in wire.recv(1024)
    for data in (json.dumps(message).ljust(126).encode() for message in messages):
        wire.sendall(struct.pack(">BBHI", 0x81, 0x80 | 126, len(data), 0) + data)
    return wire


def test_who_reads_nothing_loses_the_place(engine: Engine, library: Library, serve: Serve) -> None:
    api = create_api(engine, library, ApiSettings(stall_timeout=0.3, sockets=1))
    endless = config(max_new_tokens=2500, ignore_eos=True)
    with closing(unread(serve(api), endless, LONG, DONE)):
        wait_until(lambda: engine.stats().ended)
        wait_until(lambda: not api.state.context.sockets._taken)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("nonsense", "invalid_message"),
        ("[]", "invalid_message"),
        ('{"type": "dance"}', "invalid_message"),
        ('{"type": "input.text"}', "missing"),
        ('{"type": "input.text", "text": "hi", "texts": 1}', "unknown_key"),
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
        events, _ = hear(socket, until="error")
        assert events[-1]["error"]["code"] == code
        assert events[-1]["message"] == events[-1]["error"]["message"]
        say(socket, config(), *words("Fine."), DONE)
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
        events, _ = hear(socket)
        assert [each["type"] for each in events][-2:] == ["error", "session.done"]
        assert events[-1]["finish_reason"] == "error"
        say(socket, *words("Again."), DONE)
        assert hear(socket)[0][-1]["finish_reason"] == "finished"


def test_an_encoder_that_fails_ends_the_utterance_not_the_socket(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(render: Render, pcm: Pcm) -> bytes:
        raise RuntimeError("the encoder is gone")  # as soundfile's errors are

    with client.websocket_connect(PATH) as socket:
        with monkeypatch.context() as patched:
            patched.setattr(Render, "feed", broken)
            say(socket, *words("Hello."), DONE)
            events, _ = hear(socket)
        assert [each["type"] for each in events][-2:] == ["error", "session.done"]
        assert events[-2]["error"]["code"] == "internal_error"
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
    with FakeEngine(costs=Costs(step=0.0005), settings=EngineSettings(max_num_seqs=3)) as engine:
        # more than the cancelled ones that may wait, so that the last one is not refused
        client = TestClient(create_api(engine, library, ApiSettings(utterances=64)))
        with client.websocket_connect(PATH) as socket:
            for _ in range(500):
                send_wild(socket, chance.choice(CHAOS))
            say(socket, config(), CANCEL, *words("The end."), DONE)
            while True:
                events, _ = hear(socket)
                sentences = events[-1]["sentences"]
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


@pytest.mark.parametrize(
    "refused", [{"voice": "nobody"}, {"speed": 9}, {"voices": "Ada"}, {"response_format": "ape"}]
)
def test_nothing_is_spoken_after_a_refused_config(
    engine: Engine, library: Library, refused: dict[str, Any]
) -> None:
    """Neither in the default voice nor in the one before."""
    text = {"type": "input.text", "text": "Hello there."}
    client = TestClient(create_api(engine, library))
    with client.websocket_connect(PATH) as socket:
        say(socket, config(), config(**refused), text)
        for code in (None, "not_configured"):
            answer = json.loads(socket.receive_text())
            assert answer["type"] == "error"
            assert code in (None, answer["error"]["code"])
        say(socket, config(), text, DONE)
        events, audio = hear(socket)
        assert events[-1]["finish_reason"] == "finished"
        assert audio
