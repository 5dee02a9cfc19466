"""The WebSocket dialogue: text as it comes, cancel, barge-in, timestamps, limits, and chaos."""

from __future__ import annotations

import io
from base64 import b64encode
from typing import Any

import pytest
import soundfile
from fastapi.testclient import TestClient

from engine import FRAME_SAMPLES, SAMPLE_RATE, Engine, Library
from engine.testing import FakeCheckpoint, FakeEngine, fake_capabilities
from studio.api import create_api
from tests.studio.api.responses.test_encoding import READABLE
from tests.studio.api.routes.test_voices import noisy_recording, upload
from tests.studio.api.websocket.ws_client import (
    CANCEL,
    DONE,
    LONG,
    PATH,
    TEXT,
    config,
    hear,
    say,
    words,
)
from tests.support.serving import wait_until

SENTENCES = ("The morning train was late again.", "She read on.")


def whole(client: TestClient, **fields: Any) -> bytes:
    body = {"input": TEXT, "seed": 5, "response_format": "pcm", "non_streaming_mode": False}
    answer = client.post("/v1/audio/speech", json={**body, **fields})
    assert answer.status_code == 200, answer.text
    return answer.content


def test_words_that_come_one_by_one_sound_as_the_text_whole(client: TestClient) -> None:
    with client.websocket_connect(PATH) as socket:
        say(socket, config(voice="ryan"), *words(TEXT), DONE)
        events, audio = hear(socket)
    assert audio == whole(client, voice="ryan")
    assert [message["type"] for message in events] == ["audio.start", "audio.done", "session.done"]
    start, done, last = events
    assert (start["format"], start["sample_rate"], start["seed"]) == ("pcm", SAMPLE_RATE, 5)
    assert done["total_bytes"] == len(audio)
    assert done["end"] == pytest.approx(len(audio) / 2 / SAMPLE_RATE, abs=1e-3)
    assert last["finish_reason"] == "finished"
    assert last["sentences"][-1]["end"] == done["end"]
    assert all(sentence["estimated"] for sentence in last["sentences"])


@pytest.mark.parametrize("format", ["ulaw", "alaw", "g711_ulaw", "alaw_8000"])
@pytest.mark.parametrize("split", ["none", "sentence"])
def test_telephony_is_spoken_as_over_http(client: TestClient, format: str, split: str) -> None:
    """A byte a sample, 8,000 a second; each part is encoded from a start."""
    law = "alaw" if "alaw" in format else "ulaw"
    with client.websocket_connect(PATH) as socket:
        first = config(voice="ryan", response_format=format, split_granularity=split)
        say(socket, first, *words(TEXT), DONE, *words(TEXT), DONE)
        (events, audio), again = hear(socket), hear(socket)
    assert again[1] == audio
    starts = [each for each in events if each["type"] == "audio.start"]
    assert {(each["format"], each["sample_rate"]) for each in starts} == {(law, 8000)}
    dones = [each for each in events if each["type"] == "audio.done"]
    assert sum(each["total_bytes"] for each in dones) == len(audio)
    assert len(audio) == pytest.approx(8000 * dones[-1]["end"], abs=16)
    if split == "none":
        assert audio == whole(client, voice="ryan", response_format=law)
    else:
        how = {"voice": "ryan", "response_format": law, "non_streaming_mode": None}
        assert audio == b"".join(whole(client, input=each, **how) for each in SENTENCES)


def test_what_the_model_leaves_out_is_told_at_the_end(library: Library) -> None:
    checkpoint = FakeCheckpoint(fake_capabilities(spoken_form=True))
    with FakeEngine([checkpoint]) as engine, TestClient(create_api(engine, library)) as client:
        with client.websocket_connect(PATH) as socket:
            say(socket, config(), *words("He said Привет to her."), DONE)
            events, _ = hear(socket)
        assert "Cyrillic" in events[-1]["warnings"][0]
        with client.websocket_connect(PATH) as socket:
            say(socket, config(), *words(TEXT), DONE)
            assert "warnings" not in hear(socket)[0][-1]


def test_a_noisy_reference_is_told_at_the_end_of_its_turn(client: TestClient) -> None:
    sound = "data:audio/wav;base64," + b64encode(noisy_recording()).decode()
    first = config(ref_audio=sound, ref_text="What I said.", consent=True)
    with client.websocket_connect(PATH) as socket:
        say(socket, first, *words(TEXT), DONE, *words(TEXT), DONE)
        (events, _), (later, _) = hear(socket), hear(socket)
    assert "ref_text is not used (too noisy" in events[-1]["warnings"][0]
    assert "warnings" not in later[-1]


def test_a_clone_speaks_from_the_first_words_too(client: TestClient) -> None:
    upload(client, transcript="Hello there.")
    with client.websocket_connect(PATH) as socket:
        say(socket, config(voice="Ada"), *words(TEXT), DONE)
        _, audio = hear(socket)
    assert audio == whole(client, voice="Ada")


def test_it_speaks_before_the_text_is_complete(client: TestClient) -> None:
    with client.websocket_connect(PATH) as socket:
        say(socket, config(), {"type": "input.text", "text": "Hello there my friend "})
        events, _ = hear(socket, until="audio.start")
        assert events[-1]["utterance_index"] == 0
        assert len(socket.receive()["bytes"]) >= 2 * FRAME_SAMPLES
        say(socket, CANCEL)
        hear(socket)


def test_sentence_by_sentence_has_exact_times(client: TestClient) -> None:
    with client.websocket_connect(PATH) as socket:
        say(socket, config(split_granularity="sentence"), *words(TEXT), DONE)
        events, audio = hear(socket)
    starts = [message for message in events if message["type"] == "audio.start"]
    dones = [message for message in events if message["type"] == "audio.done"]
    sentences = ["The morning train was late again.", "She read on."]
    assert [start["sentence_text"] for start in starts] == sentences
    assert [start["sentence_index"] for start in starts] == [0, 1]
    assert dones[0]["start"] == 0
    assert dones[0]["end"] == dones[1]["start"]
    for done in dones:
        seconds = done["total_bytes"] / 2 / SAMPLE_RATE
        assert done["end"] - done["start"] == pytest.approx(seconds, abs=2e-3)
    assert len({start["seed"] for start in starts}) == 1
    last = events[-1]["sentences"]
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


@pytest.mark.parametrize("format", READABLE)
def test_other_formats_are_files_of_their_own(client: TestClient, format: str) -> None:
    with client.websocket_connect(PATH) as socket:
        say(socket, config(response_format=format, speed=1.25), *words(TEXT), DONE)
        events, audio = hear(socket)
    samples = len(soundfile.read(io.BytesIO(audio))[0])
    assert samples / SAMPLE_RATE == pytest.approx(events[-1]["sentences"][-1]["end"], abs=0.1)


@pytest.mark.parametrize("split", ["none", "sentence"])
def test_barging_in_stops_and_starts_anew(slow: Engine, library: Library, split: str) -> None:
    client = TestClient(create_api(slow, library))
    with client.websocket_connect(PATH) as socket:
        say(socket, config(split_granularity=split), LONG, DONE, *words("Next."), DONE)
        hear(socket, until="audio.start")
        wait_until(lambda: slow.stats().running >= 1)
        say(socket, CANCEL, {"type": "input.text", "text": "New."}, DONE)
        reasons = [hear(socket)[0][-1] for _ in range(3)]
    ends = [(each["utterance_index"], each["finish_reason"]) for each in reasons]
    assert ends == [(0, "cancelled"), (1, "cancelled"), (2, "finished")]
    assert reasons[2]["sentences"][0]["text"] == "New."
    wait_until(lambda: slow.stats().running == 0)


def test_leaving_frees_the_slot(slow: Engine, library: Library) -> None:
    client = TestClient(create_api(slow, library))
    with client.websocket_connect(PATH) as socket:
        say(socket, LONG)
        hear(socket, until="audio.start")
        wait_until(lambda: slow.stats().running == 1)
    wait_until(lambda: slow.stats().running == 0, seconds=8)  # 16 to its end
