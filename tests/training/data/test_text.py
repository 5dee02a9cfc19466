"""Text: held-out matter stays out, and every draw is a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import workload
from bench.quality.voice_card import plan
from engine.text.spoken_form import spoken_form
from training.data import text, text_conversation, text_templates, text_words, text_written


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small unpacked package tree: a dictionary, two thousand examples."""
    folder = tmp_path_factory.mktemp("packages")
    random = Random(1)
    letters = "abcdefghijklmnoprstuw"
    words = ["".join(random.choices(letters, k=random.randint(3, 9))) for _ in range(9000)]
    places = {
        "usr/share/dict/american-english": "\n".join(words),
        "usr/share/wordnet/data.noun": "\n".join(
            f'0 | a {random.choice(words)} thing; "{" ".join(random.choices(words, k=6))}"'
            for _ in range(2000)
        ),
    }
    for name, content in places.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_nothing_held_out_is_ever_drawn(root: Path) -> None:
    corpus = text.build_corpus(root)
    held, held_out = set(corpus.held_words), set(corpus.held_sentences)
    assert held
    assert held_out
    random = Random(0)
    for _ in range(3000):
        kind = random.choice(("example", "gloss", "words"))
        drawn = corpus._one(random, kind)
        assert drawn not in held_out
        assert held.isdisjoint(text.words_of(drawn))


def test_the_same_seed_draws_the_same(root: Path) -> None:
    corpus = text.build_corpus(root)
    assert [corpus.draw(Random(5)) for _ in range(9)] == [corpus.draw(Random(5)) for _ in range(9)]


def test_a_corpus_survives_its_file(root: Path, tmp_path: Path) -> None:
    corpus = text.build_corpus(root)
    corpus.draw(Random(1))
    text.save(corpus, tmp_path / "corpus.json")
    assert text.load(tmp_path / "corpus.json") == corpus


@given(st.text(max_size=200))
def test_tidy_text_is_a_sentence_or_nothing(raw: str) -> None:
    tidied = text.clean_sentence(raw)
    if tidied:
        assert tidied.isascii()
        assert tidied[-1] in ".?!"
        assert text.clean_sentence(tidied) == tidied


def test_names_are_words_that_are_never_written_small() -> None:
    corpus = text.Corpus([], [], ["Mark", "Eleanor", "mark", "lamp"], [], [])
    assert corpus.names == ["Eleanor"]


Made = Callable[[Random, Sequence[str]], str]


@pytest.mark.parametrize("made", [text_templates.sentence, text_conversation.sentence])
def test_names_of_the_dictionary_are_said_beside_common_ones(made: Made) -> None:
    random = Random(2)
    spoken = [set(text.words_of(made(random, ["Quimby"]))) for _ in range(600)]
    common = {name.lower() for name in text_templates.NAMES}
    assert sum("quimby" in words for words in spoken) > 30
    assert sum(bool(words & common) for words in spoken) > 30


@pytest.mark.parametrize("made", [text_templates.sentence, text_conversation.sentence])
@given(seed=st.integers(), proper=st.sampled_from([[], ["Quimby", "Aachen"]]))
def test_patterns_are_filled(made: Made, seed: int, proper: list[str]) -> None:
    sentence = made(Random(seed), proper)
    assert sentence.isascii()
    assert not {"{", "}"} & set(sentence)
    assert sentence.lstrip('"')[0] == sentence.lstrip('"')[0].upper()
    assert sentence.rstrip('"')[-1] in ".?!"


@given(st.integers())
def test_talk_is_short_enough_to_be_one_utterance(seed: int) -> None:
    sentence = text_conversation.sentence(Random(seed))
    assert len(sentence) <= text.LONGEST
    assert not re.search(r'[.?!] "?[a-z]', sentence)


UNLEARNED = (
    text.HELD_OUT_SENTENCES.read_text().splitlines()[0],
    workload.SENTENCES[0],
    plan.sentences()[0][1],
    plan.reference_texts()[0],
    "A good loaf sounds hollow, like a small wooden drum.",  # of a paragraph
)


@pytest.mark.parametrize("sentence", UNLEARNED)
def test_what_the_bench_says_is_drawn_anew(sentence: str) -> None:
    """Nor is it one of two sentences that are drawn together."""
    corpus = text.Corpus([sentence, "The lamp is on."], ["A lamp."], ["lamp"], [], [])
    random = Random(3)
    drawn = [corpus.draw(random) for _ in range(300)]
    assert [each for each in drawn if sentence in each] == []
    assert any("The lamp is on." in each for each in drawn)


def test_the_shipped_sentences_are_never_trained_on(root: Path) -> None:
    sentences = text.HELD_OUT_SENTENCES.read_text().splitlines()
    assert len(set(sentences)) == 100
    assert all(text.clean_sentence(sentence) == sentence for sentence in sentences)
    kept = list(text._split([*sentences, "The lamp is on."], set(), want=False))
    assert kept == ["The lamp is on."]


LEMMAS = {
    "noun": {"box", "city", "goat", "glass", "calm"},
    "verb": {"run", "try", "calm", "box", "bake"},
    "adj": {"calm", "restless"},
    "adv": {"slowly"},
}
KNOWN = [
    "box", "boxes", "city", "cities", "goat", "goats", "glass", "run", "running", "tried", "calm",
    "calms", "baked", "baking", "slowly", "restless", "Boston", "brio",
]  # fmt: skip


def test_words_stand_where_their_part_of_speech_may() -> None:
    classes = text_words.word_classes(KNOWN, LEMMAS)
    assert classes == {
        "noun": ["box", "city", "goat", "glass", "calm"],
        "nouns": ["boxes", "cities", "goats", "calms"],
        "verb": ["box", "run", "calm"],
        "adj": ["calm", "restless"],
        "adverb": ["slowly"],
        "third": ["boxes", "calms"],
        "past": ["tried", "baked"],
        "ing": ["running", "baking"],
        "any": ["brio"],
    }


@given(st.integers())
def test_a_sentence_of_any_words_begins_with_a_capital_and_has_no_slot_left(seed: int) -> None:
    made = text_words.sentence(Random(seed), text_words.word_classes(KNOWN, LEMMAS))
    assert made[0].isupper()
    assert made[-1] in ".?!"
    assert not re.search(r"[{}]|\b[Aa] [aeiou]", made)


def test_wordnets_words_are_read_without_its_licence(tmp_path: Path) -> None:
    folder = tmp_path / "usr/share/wordnet"
    folder.mkdir(parents=True)
    (folder / "index.noun").write_text("  1 This software\ngoat n 4 6 @ ~ #m\nbox n 10 5 @\n")
    assert text_words.wordnet_lemmas(tmp_path) == {"noun": {"goat", "box"}}
    assert text_words.wordnet_lemmas(tmp_path / "nothing") == {}


def test_half_of_the_hundreds_are_round() -> None:
    random = Random(0)
    made = [int(text_templates.SLOTS["hundreds"](random)) for _ in range(2000)]
    assert all(100 <= value < 1000 for value in made)
    assert 0.5 < sum(value % 10 == 0 for value in made) / len(made) < 0.6


@given(st.integers())
def test_what_is_written_is_filled_and_has_a_spoken_form(seed: int) -> None:
    made = text_written.sentence(Random(seed), ["Quimby"])
    assert not {"{", "}"} & set(made)
    said = spoken_form(made)
    assert said
    assert not re.search(r"[0-9$£€%°@#]", said)


def test_written_sentences_that_reading_is_judged_by_are_never_learned() -> None:
    assert {"The ticket costs £20.", "The ticket costs twenty pounds."} <= text.unlearned()
