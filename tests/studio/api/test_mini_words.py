"""The embedded model's audio has the words of the text, whichever way it is requested.

The words are found by a recogniser that is no part of this project (bench/quality/wer.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from bench.quality.wer import Listener
from engine import Library, Pcm, open_engine
from studio.api import create_api
from studio.cli.app_context import MINI
from tests.studio.api.websocket.ws_client import CANCEL, DONE, PATH, config, hear, say, words
from tests.support.programs import CACHE

TEXTS = (
    "Turn left after the bridge, then follow the river until you see the old mill.",
    "The morning train was late again, so she read the last chapter on the platform.",
    "Rain fell on the tin roof all night long.",
)
WRONG = 0.4  # of the words; seen: 0.08 to 0.13
VOICE, SEED = "robert", 3  # the recogniser mishears high voices: clara 0.7, robert 0.1


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    library = Library(tmp_path_factory.mktemp("heard") / "voices")
    with (
        open_engine([MINI], device="cpu", cache=CACHE, max_num_seqs=4) as engine,
        TestClient(create_api(engine, library)) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def listener() -> Listener:
    return Listener()


def wrong(listener: Listener, spoken: list[Pcm]) -> float:
    """The share of words that were not recognised."""
    counts = [
        listener.errors(text, pcm.astype(np.float32) / 32768)
        for text, pcm in zip(TEXTS, spoken, strict=True)
    ]
    return sum(missed for missed, _ in counts) / sum(each for _, each in counts)


def sound_of(client: TestClient, text: str, **fields: Any) -> Pcm:
    body = {"input": text, "voice": VOICE, "seed": SEED, "response_format": "pcm", **fields}
    answer = client.post("/v1/audio/speech", json=body)
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, "<i2")


@pytest.mark.parametrize("speed", [1, 1.5])
def test_a_whole_answer_says_the_text(client: TestClient, listener: Listener, speed: float) -> None:
    assert wrong(listener, [sound_of(client, text, speed=speed) for text in TEXTS]) < WRONG


def test_words_that_come_one_by_one_are_said(client: TestClient, listener: Listener) -> None:
    """They are also said after an utterance was interrupted on the same socket."""
    spoken = []
    with client.websocket_connect(PATH) as socket:
        say(socket, config(voice=VOICE, seed=SEED), *words(TEXTS[1]))
        hear(socket, until="audio.start")
        say(socket, CANCEL)
        hear(socket)
        for text in TEXTS:
            say(socket, *words(text), DONE)
            spoken.append(np.frombuffer(hear(socket)[1], "<i2"))
    assert wrong(listener, spoken) < WRONG
