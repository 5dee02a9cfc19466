"""A text in another language is named where it is plain, and never an English one."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from bench.workload import SENTENCES
from engine.config import EngineSettings
from engine.requests.input_processor import InputProcessor
from engine.testing.fake_checkpoint import FakeCheckpoint, fake_capabilities
from engine.text.languages import WORDS, written_in
from engine.types import Preset, SpeechRequest

WRITTEN = {
    "german": "Der Zug ist heute wieder zu spät, und sie liest das Buch auf dem Bahnsteig.",
    "french": "Le train est encore en retard, et elle lit le dernier chapitre sur le quai.",
    "spanish": "El tren llega tarde otra vez, y ella lee el último capítulo en la estación.",
    "italian": "Questa è la casa della nonna, che non sono mai riuscito a trovare.",
    "portuguese": "Não é fácil para os meninos, mas eles foram com você.",
    "dutch": "De trein is weer te laat, en ze leest het laatste hoofdstuk op het perron.",
}


@pytest.mark.parametrize("language", WORDS)
def test_each_language_is_named(language: str) -> None:
    assert written_in(WRITTEN[language]) == language
    assert written_in(WRITTEN[language].upper()) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hi.",
        "Los Angeles, San Francisco, La Jolla, El Paso and Las Cruces are in the west.",
        "Ludwig van Beethoven, Vincent van Gogh en Anna van der Berg",
        "I am in the USA; no, do not go on to Rio de Janeiro with us.",
        "He ordered a crème brûlée and read Der Spiegel on the train to Las Vegas.",
        "他说你好。",
    ],
)
def test_names_are_no_language(text: str) -> None:
    assert written_in(text) is None


def test_english_sentences_are_english() -> None:
    assert [text for text in SENTENCES if written_in(text)] == []


def test_a_listener_is_told_what_a_model_does_not_speak() -> None:
    own = replace(fake_capabilities(), languages=("english", "french"))
    processor = InputProcessor({"fake": FakeCheckpoint(own)}, EngineSettings(), time.monotonic)

    def told(language: str) -> list[str]:
        request = SpeechRequest(WRITTEN[language], Preset("ryan"))
        return [str(notice) for notice in processor.process(request).sequence.notices]

    assert told("german") == [
        "fake does not speak German: it reads this text by the rules of English, French."
    ]
    assert told("french") == []
