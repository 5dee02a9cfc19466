"""The speech half of OpenAI's Realtime, event by event."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import WebSocketDenialResponse, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from engine import FRAME_SAMPLES, Engine, Library
from studio.api import ApiSettings, create_api
from studio.api.bodies.realtime_events import EVENTS, Item
from studio.api.errors import ApiError
from studio.api.realtime.conversation import LONGEST, MOST, Conversation
from tests.studio.api.routes.test_voices import speak
from tests.support.serving import wait_until

PATH = "/v1/realtime?model=gpt-realtime"
TEXT = "The morning train was late again. She read on."
LONG = "A word. " * 50


@pytest.fixture
def socket(client: TestClient) -> Iterator[WebSocketTestSession]:
    with client.websocket_connect(PATH) as socket:
        assert socket.receive_json()["type"] == "session.created"
        yield socket


def send(socket: WebSocketTestSession, kind: str, **fields: Any) -> None:
    socket.send_json({"type": kind, **fields})


def write(socket: WebSocketTestSession, text: str, **item: Any) -> None:
    content = [{"type": "input_text", "text": text}]
    message = {"type": "message", "role": "user", "content": content, **item}
    send(socket, "conversation.item.create", item=message)


def configure(socket: WebSocketTestSession, output: dict[str, Any], **fields: Any) -> Any:
    session = {"type": "realtime", "seed": 1, "audio": {"output": output}, **fields}
    send(socket, "session.update", session=session)
    return socket.receive_json()


def until(socket: WebSocketTestSession, kind: str = "response.done") -> list[Any]:
    events: list[Any] = []
    while not events or events[-1]["type"] != kind:
        events.append(socket.receive_json())
        assert kind == "error" or events[-1]["type"] != "error", events[-1]
    return events


def sound(events: list[Any]) -> bytes:
    deltas = [each["delta"] for each in events if each["type"] == "response.output_audio.delta"]
    return b"".join(map(base64.b64decode, deltas))


def test_a_text_is_spoken_in_order(socket: WebSocketTestSession, client: TestClient) -> None:
    updated = configure(socket, {"voice": "vivian"})
    assert updated["session"]["audio"]["output"]["voice"] == "vivian"
    write(socket, TEXT, id="item_mine")
    send(socket, "response.create")
    events = until(socket)
    kinds = list(dict.fromkeys(each["type"] for each in events))
    assert kinds == [
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    assert len({each["event_id"] for each in events}) == len(events)
    added = [each for each in events if each["type"] == "conversation.item.added"]
    assert (added[0]["item"]["id"], added[1]["previous_item_id"]) == ("item_mine", "item_mine")
    assert sound(events) == speak(client, voice="vivian", input=TEXT)
    response = events[-1]["response"]
    assert response["status"] == "completed"
    assert response["output"][0]["content"] == [{"type": "output_audio", "transcript": TEXT}]
    frames = len(sound(events)) // 2 // FRAME_SAMPLES
    assert response["usage"]["output_tokens"] == frames
    send(socket, "response.create")  # everything was spoken
    assert until(socket, "error")[-1]["error"]["code"] == "no_text"


def test_what_was_not_spoken_yet_is(socket: WebSocketTestSession, client: TestClient) -> None:
    configure(socket, {"voice": "vivian"})
    write(socket, "You are a poet.", role="system")
    write(socket, "First.")
    write(socket, "Second.", role="assistant")
    send(socket, "response.create")
    assert sound(until(socket)) == speak(client, voice="vivian", input="First.\nSecond.")
    aside = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Aside."}],
    }
    write(socket, "Third.")
    send(socket, "response.create", response={"conversation": "none", "input": [aside]})
    events = until(socket)
    assert sound(events) == speak(client, voice="vivian", input="Aside.")
    assert events[-1]["response"]["conversation_id"] is None
    send(socket, "response.create")
    assert sound(until(socket)) == speak(client, voice="vivian", input="Third.")


def test_a_response_has_settings_of_its_own(
    socket: WebSocketTestSession, client: TestClient
) -> None:
    configure(socket, {"voice": "vivian"})
    write(socket, TEXT)
    voice = {"audio": {"output": {"voice": {"id": "ryan"}}}, "max_output_tokens": 5}
    send(socket, "response.create", response={**voice, "metadata": {"a": "b"}})
    events = until(socket)
    assert sound(events) == speak(client, voice="ryan", input=TEXT, max_new_tokens=5)
    response = events[-1]["response"]
    assert (response["status"], response["metadata"]) == ("incomplete", {"a": "b"})
    assert response["status_details"]["reason"] == "max_output_tokens"


def test_a_response_is_cancelled_and_the_next_one_is_spoken(slow: Engine, library: Library) -> None:
    client = TestClient(create_api(slow, library))
    with client.websocket_connect(PATH) as socket:
        write(socket, LONG)
        send(socket, "response.create")
        first = until(socket, "response.output_audio.delta")
        item = next(line["item"] for line in first if line["type"] == "response.output_item.added")
        send(socket, "response.create", response={"input": []})
        write(socket, "More.")
        send(socket, "response.create", event_id="second")
        error = until(socket, "error")[-1]["error"]
        assert error["code"] == "conversation_already_has_active_response"
        assert until(socket, "error")[-1]["error"]["event_id"] == "second"
        send(socket, "response.cancel")
        send(socket, "conversation.item.truncate", item_id=item["id"], audio_end_ms=80)
        done = until(socket)[-1]["response"]
        assert done["status"] == "cancelled"
        assert done["status_details"]["reason"] == "client_cancelled"
        wait_until(lambda: slow.stats().running == 0)
        send(socket, "response.create")
        until(socket)
        send(socket, "conversation.item.retrieve", item_id=item["id"])
        kept = until(socket, "conversation.item.retrieved")[-1]["item"]
        assert (kept["status"], kept["role"]) == ("incomplete", "assistant")
        assert 0 < len(kept["content"][0]["transcript"]) < len(LONG) / 10
        send(socket, "conversation.item.truncate", item_id=item["id"], audio_end_ms=10_000)
        assert until(socket, "error")[-1]["error"]["param"] == "audio_end_ms"
        send(socket, "response.cancel")
        assert until(socket, "error")[-1]["error"]["code"] == "response_cancel_not_active"


@pytest.mark.parametrize(
    ("session", "param"),
    [
        ({"type": "transcription"}, "session.type"),
        ({"output_modalities": ["text"]}, "session.output_modalities"),
        ({"tools": [{"type": "function", "name": "a"}]}, "session.tools"),
        ({"audio": {"output": {"format": {"type": "audio/pcm", "rate": 16000}}}}, "session"),
        ({"audio": {"output": {"format": {"type": "audio/mp3"}}}}, "session"),
        ({"audio": {"output": {"voice": "nobody"}}}, "voice"),
        ({"audio": {"output": {"speed": 9}}}, "session"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"instructons": "Calmly."}, "instructons"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    socket: WebSocketTestSession, session: dict[str, Any], param: str
) -> None:
    send(socket, "session.update", session={"type": "realtime", **session}, event_id="mine")
    error = socket.receive_json()
    assert error["type"] == "error"
    assert error["error"]["type"] in ("invalid_request_error", "not_found_error")
    assert error["error"]["param"].startswith(param)
    assert error["error"]["event_id"] == "mine"
    assert configure(socket, {})["type"] == "session.updated"


@pytest.mark.parametrize("kind", ["append", "commit", "clear"])
def test_listening_is_refused(socket: WebSocketTestSession, kind: str) -> None:
    send(socket, f"input_audio_buffer.{kind}", audio="AAAA", event_id="mic")
    error = socket.receive_json()["error"]
    assert (error["code"], error["event_id"]) == ("not_supported", "mic")


@pytest.mark.parametrize(("kind", "format"), [("audio/pcmu", "ulaw"), ("audio/pcma", "alaw")])
def test_telephony_has_its_own_formats(
    socket: WebSocketTestSession, client: TestClient, kind: str, format: str
) -> None:
    updated = configure(socket, {"voice": "vivian", "format": {"type": kind}})
    assert updated["session"]["audio"]["output"]["format"] == {"type": kind}
    write(socket, TEXT)
    send(socket, "response.create")
    assert sound(until(socket)) == speak(client, voice="vivian", input=TEXT, response_format=format)


def test_a_voice_that_follows_no_instructions_speaks(
    socket: WebSocketTestSession, client: TestClient
) -> None:
    numbers = "[" + ",".join(["0.5"] * 16) + "]"
    form = {"name": (None, "Ada"), "consent": (None, "true"), "embedding": (None, numbers)}
    assert client.post("/v1/audio/voices", files=form).status_code == 200
    updated = configure(socket, {"voice": "Ada"}, instructions="You are a helpful assistant.")
    assert updated["type"] == "session.updated", updated
    write(socket, TEXT)
    send(socket, "response.create")
    assert sound(until(socket)) == speak(client, voice="Ada", input=TEXT)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["event_id", "session", "item", "item_id", "response", "response_id", "audio_end_ms", "audio"]
)
HOSTILE = st.builds(
    lambda kind, fields: {"type": kind, **fields},
    st.sampled_from([*EVENTS, "input_audio_buffer.append", "no.such"]) | JUNK,
    st.dictionaries(KEYS, JUNK, max_size=3),
)


def test_any_event_is_answered_and_the_session_goes_on(engine: Engine, library: Library) -> None:
    client, numbers = TestClient(create_api(engine, library)), itertools.count()
    with client.websocket_connect(PATH) as socket:
        socket.receive_json()

        @settings(
            max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None
        )
        @given(HOSTILE | JUNK)
        def ask(event: Any) -> None:
            socket.send_text(json.dumps(event))
            own = f"own{next(numbers)}"  # the event may have been an item too
            write(socket, "", id=own)
            told: dict[str, Any] = {"type": ""}
            while told["type"] != "conversation.item.done" or told["item"]["id"] != own:
                told = socket.receive_json()

        ask()
    with client.websocket_connect(PATH) as socket:  # in which nothing is spoken
        socket.receive_json()
        for text in ("", "{", "[" * 5000, '{"type": "session.update"' + ", " * 9 + "}"):
            socket.send_text(text)
            assert socket.receive_json()["type"] == "error"
        socket.send_text(json.dumps({"type": "response.cancel", "event_id": "x" * 200_000}))
        assert socket.receive_json()["error"]["code"] == "too_large"
    wait_until(lambda: engine.stats().running == 0)


def test_a_conversation_is_bounded() -> None:
    conversation = Conversation()
    piece = Item(content=[{"type": "input_text", "text": "x" * (LONGEST // 8)}])  # type: ignore[list-item]
    for number in range(3 * MOST):
        conversation.add(str(number), piece)
        conversation.take()
    assert conversation.last() == str(3 * MOST - 1)
    with pytest.raises(ApiError, match="no item '10'"):
        conversation.get("10")


def test_no_text_is_spoken_without_its_beginning(socket: WebSocketTestSession) -> None:
    """A writer of one message a word, who asks for the response at the end."""
    for number in range(MOST + 5):
        write(socket, f"word{number}", id=f"w{number}")
    send(socket, "response.create")
    assert until(socket, "error")[-1]["error"]["code"] == "too_large"
    write(socket, "Again.")
    send(socket, "response.create")
    assert until(socket)[-1]["response"]["output"][0]["content"][0]["transcript"] == "Again."


def test_doors_are_those_of_every_socket(engine: Engine, library: Library) -> None:
    guarded = TestClient(create_api(engine, library, ApiSettings(keys=("secret",))))
    with pytest.raises(WebSocketDenialResponse) as refused, guarded.websocket_connect(PATH):
        pass
    assert refused.value.status_code == 401
    protocols = ["realtime", "openai-insecure-api-key.secret"]
    with guarded.websocket_connect(PATH, subprotocols=protocols) as socket:
        assert socket.accepted_subprotocol == "realtime"
        assert socket.receive_json()["type"] == "session.created"
    settings = ApiSettings(idle_timeout=0.1, sockets=1, address_rate="3/minute")
    client = TestClient(create_api(engine, library, settings))
    with client.websocket_connect(PATH) as socket:
        socket.receive_json()
        with pytest.raises(WebSocketDenialResponse), client.websocket_connect(PATH):
            pass
        write(socket, TEXT)
        send(socket, "response.create")
        until(socket)
        write(socket, TEXT)
        send(socket, "response.create")
        assert until(socket, "error")[-1]["error"]["code"] == "rate_limit"
        assert until(socket, "error")[-1]["error"]["code"] == "idle_timeout"
        with pytest.raises(WebSocketDisconnect):
            until(socket)


def test_who_leaves_takes_the_response_along(slow: Engine, library: Library) -> None:
    client = TestClient(create_api(slow, library))
    with client.websocket_connect(PATH) as socket:
        write(socket, LONG)
        send(socket, "response.create")
        until(socket, "response.output_audio.delta")
    wait_until(lambda: slow.stats().running == 0)
