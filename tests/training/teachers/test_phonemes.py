"""Phonemes beside their text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.spoken_form import spoken_form
from training.data.phones import PHONES
from training.teachers import phonemes
from training.teachers.phonemes import PhonemizedText, Reader, align_words, phones_of

WORD = st.text("bdɪkmæˈ", min_size=1, max_size=6)


@given(st.lists(st.tuples(st.text("abc", min_size=1, max_size=5), WORD), min_size=1, max_size=6))
def test_places_grow_to_the_end_of_the_text(pairs: list[tuple[str, str]]) -> None:
    text = " ".join(written for written, _ in pairs)
    texts = align_words(text, text, [spoken for _, spoken in pairs])
    assert texts is not None
    assert len(texts.places) == len(texts.phonemes)
    assert texts.places == sorted(texts.places)
    assert texts.places[-1] == len(text)
    at = -1
    for _, spoken in pairs:
        at += len(spoken) + 1
        last = at - 1 if at == len(texts.phonemes) else at
        assert texts.phonemes[: last + 1].rstrip().endswith(spoken)


def test_numbers_are_said_in_the_place_of_their_digits() -> None:
    texts = align_words(
        "It is 2:50 now.", "It is two fifty now.", ["ɪt", "ɪz", "tu", "fɪfti", "naw."]
    )
    assert texts is not None
    spoken_at = texts.phonemes.index("fɪfti") + len("fɪfti") - 1
    assert texts.places[spoken_at] == len("It is 2:50")
    assert texts.places[-1] == len("It is 2:50 now.")


def test_what_has_no_phone_or_is_too_long_is_left_out() -> None:
    assert align_words("A", "A", ["ʘ"]) is None
    assert align_words("A", "A", ["b" * 200]) is None


def test_marks_of_stress_and_spaces_sound_like_their_neighbours() -> None:
    found = [PHONES[phone] for phone in phones_of("ˈæd bɪ.")]
    assert found == ["ae", "ae", "d", "d", "b", "ih", "pau"]


def test_said_comes_back_from_its_file(tmp_path: Path) -> None:
    texts = [PhonemizedText("A lamp.", "ɐ lˈæmp.", [1, 1, 2, 3, 4, 5, 6, 7])]
    phonemes.save(texts, tmp_path / "said.json.gz")
    assert phonemes.load(tmp_path / "said.json.gz") == texts


def test_names_of_letters_are_words_of_their_own_for_the_teacher() -> None:
    said = spoken_form("The FBI's two CEOs had COVID.")
    assert said == "The eff-bee-eye's two see-ee-ohs had Coevid."
    assert phonemes.apart(said) == "The eff bee eye's two see ee ohs had covid."
    assert (
        phonemes.apart("Twenty-one well-known tee-shirts.") == "Twenty-one well-known tee-shirts."
    )


def test_hibari_reads_numbers_and_words() -> None:
    pytest.importorskip("hibari", reason="hibari-tts is not installed: training alone needs it")
    texts = Reader().read("It is 2:50 now.")
    assert texts is not None
    assert texts.phonemes.lstrip("ˌ").startswith("ɪt ɪz")
    assert texts.places[-1] == len(texts.text)
