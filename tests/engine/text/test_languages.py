"""A text in another language is named where it is plain, and never an English one."""

from __future__ import annotations

import time
from dataclasses import replace
from unicodedata import normalize

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
    "polish": "Dzień dobry, jak się masz? Dzisiaj jest bardzo ładna pogoda i idziemy na spacer.",
    "czech": "Dobrý den, jak se máte? Dnes je velmi hezky a jdeme na procházku do parku.",
    "swedish": "Hej, hur mår du? Det är fint väder idag och vi ska gå till parken med barnen.",
    "danish": "Det er meget smukt i dag, og jeg ved ikke, hvad hun bliver efter skolen.",
    "norwegian": "Det er mye å gjøre i dag, og jeg vet ikke hva hun blir etter skolen.",
    "vietnamese": "Xin chào, hôm nay thời tiết rất đẹp và chúng tôi đi dạo trong công viên.",
    "turkish": "Merhaba, bugün hava çok güzel ve biz parka gidiyoruz.",
    "indonesian": "Selamat pagi, hari ini cuacanya sangat bagus dan kami akan di taman.",
    "romanian": "Astăzi este o vreme foarte frumoasă și mergem la plimbare în parc.",
    "hungarian": "Ez nagyon szép idő, és azt hiszem, hogy még nem volt ilyen.",
    "finnish": "Hän sanoi, että se on tänään kiinni, mutta minä en tiedä mitä se on.",
}


@pytest.mark.parametrize("language", WORDS)
def test_each_language_is_named(language: str) -> None:
    assert written_in(WRITTEN[language]) == language
    assert written_in(normalize("NFD", WRITTEN[language]).upper()) == language


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
        "I met Wojciech Szczęsny and Łukasz in Łódź, and then Nguyễn Văn An in Kraków.",
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor.",
    ],
)
def test_names_are_no_language(text: str) -> None:
    assert written_in(text) is None


def test_english_sentences_are_english() -> None:
    assert [text for text in SENTENCES if written_in(text)] == []


def test_a_listener_is_told_what_a_model_does_not_speak() -> None:
    able = replace(fake_capabilities(), languages=("english", "french"))
    processor = InputProcessor({"fake": FakeCheckpoint(able)}, EngineSettings(), time.monotonic)

    def notices(language: str) -> list[str]:
        request = SpeechRequest(WRITTEN[language], Preset("ryan"))
        return [str(notice) for notice in processor.process(request).sequence.notices]

    assert notices("german") == [
        "fake does not speak German: it reads this text by the rules of English, French."
    ]
    assert notices("french") == []
