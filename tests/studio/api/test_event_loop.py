"""What takes long, or asks another process, leaves the event loop to the streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from engine import Clone, Engine, Library, Preset, SpeechRequest, SpeechStream, Voice
from engine.voices import voice_folder
from studio.api import create_api
from studio.api.api_context import LONG_TEXT
from studio.api.compat import captioned_speech
from studio.api.routes import speech, voices
from studio.api.websocket.ws_utterance import Split
from tests.studio.api.routes.test_voices import upload
from tests.studio.api.websocket.ws_client import DONE, PATH, config, hear, say
from tests.support.serving import on_loop

BOOK = {"input": "A word. " * (LONG_TEXT // 8 + 1), "max_new_tokens": 10}
HELLO = {"input": "Hello there."}

Ask = Callable[[TestClient], Any]


def listed(client: TestClient) -> Any:
    return client.get("/v1/audio/voices")


def by_id(client: TestClient) -> Any:
    return client.post("/v1/audio/speech", json={**HELLO, "ref_audio": "ada"})


def with_times(client: TestClient) -> Any:
    return client.post("/dev/captioned_speech", json=HELLO)


def in_batch(client: TestClient) -> Any:
    return client.post("/v1/audio/speech/batch", json={"items": [BOOK]})


CASES: list[tuple[str, Ask]] = [
    ("engine.stats", lambda client: client.get("/ready")),
    ("engine.stats", lambda client: client.get("/metrics")),
    ("engine.submit", lambda client: client.post("/v1/audio/speech", json=BOOK)),
    ("engine.submit", lambda client: client.post("/dev/captioned_speech", json=BOOK)),
    ("engine.submit", in_batch),
    ("speech.b64encode", in_batch),
    ("library.find", by_id),
    ("voices._describe", listed),
    ("captions.word_times", with_times),
]


@pytest.mark.parametrize(("method", "ask"), CASES)
def test_it_is_done_in_a_thread(
    client: TestClient,
    engine: Engine,
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    ask: Ask,
) -> None:
    upload(client)
    holder, name = method.split(".")
    modules = {"captions": captioned_speech, "speech": speech, "voices": voices}
    owner: Any = {"engine": engine, "library": library, **modules}[holder]
    work, places = getattr(owner, name), list[bool]()

    def watched(*values: Any) -> Any:
        places.append(on_loop())
        return work(*values)

    monkeypatch.setattr(owner, name, watched)
    answer = ask(client)
    assert answer.status_code == 200, answer.text
    assert places
    assert not any(places)


def test_a_voice_of_another_service_needs_one_look_at_the_library(
    client: TestClient, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, places = library._read, list[bool]()

    def watched() -> Any:
        places.append(on_loop())
        return read()

    monkeypatch.setattr(voice_folder, "SEEN", 60.0)
    monkeypatch.setattr(library, "_read", watched)
    for name in ("alloy", "echo", "Nova"):
        answer = client.post("/v1/audio/speech", json={**HELLO, "voice": name})
        assert answer.status_code == 200, answer.text
    assert places == [False]


def test_a_saved_voice_with_the_name_of_another_service_speaks_at_once(
    client: TestClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, spoken = engine.submit, list[Voice]()

    def watched(request: SpeechRequest) -> SpeechStream:
        spoken.append(request.voice)
        return submit(request)

    monkeypatch.setattr(engine, "submit", watched)
    client.post("/v1/audio/speech", json={**HELLO, "voice": "alloy"})
    assert upload(client, name="Alloy").status_code == 200
    client.post("/v1/audio/speech", json={**HELLO, "voice": "alloy"})
    assert [type(voice) for voice in spoken] == [Preset, Clone]


def test_a_long_sentence_of_a_dialogue_is_taken_in_a_thread(
    engine: Engine, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, places = engine.submit, list[tuple[bool, bool]]()

    def watched(request: SpeechRequest) -> SpeechStream:
        places.append((len(request.text) > LONG_TEXT, on_loop()))
        return submit(request)

    monkeypatch.setattr(engine, "submit", watched)
    texts = ("Hello. ", "a word, " * (LONG_TEXT // 8 + 1))
    with TestClient(create_api(engine, library)).websocket_connect(PATH) as socket:
        settings = config(max_new_tokens=10, split_granularity="sentence")
        say(socket, settings, *({"type": "input.text", "text": text} for text in texts), DONE)
        events, _ = hear(socket)
    assert places == [(False, True), (True, False)]
    assert events[-1]["total_sentences"] == 2


def test_a_sentence_that_is_cancelled_while_it_is_taken_is_not_spoken(slow: Engine) -> None:
    def submit(request: SpeechRequest) -> SpeechStream:
        stream = slow.submit(request)
        utterance.cancel()
        return stream

    text = "a word, " * (LONG_TEXT // 8 + 1)
    utterance = Split(SpeechRequest("", Preset("ryan")), submit, text, 10_000)
    utterance.close()

    async def first() -> SpeechStream:
        part = await anext(utterance.parts())
        async for _ in part.stream:
            pass
        return part.stream

    stream = asyncio.run(first())
    assert stream.end
    assert stream.end.reason == "cancelled"


def test_a_long_piece_of_a_dialogue_is_taken_in_a_thread(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, places = SpeechStream.append, list[tuple[bool, bool]]()

    def watched(stream: SpeechStream, text: str) -> None:
        places.append((len(text) > LONG_TEXT, on_loop()))
        append(stream, text)

    monkeypatch.setattr(SpeechStream, "append", watched)
    pieces = ({"type": "input.text", "text": text} for text in ("Hello. ", "So. ", BOOK["input"]))
    with client.websocket_connect(PATH) as socket:
        say(socket, config(max_new_tokens=3000), *pieces, DONE)
        hear(socket)
    assert set(places) == {(False, True), (True, False)}
