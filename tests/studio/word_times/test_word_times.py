"""Word times against the teacher's own: sentences of Kokoro with the moments its phonemes begin.

`teacher.ogg` has sentences that the network of sound kinds did not learn from, end to end;
`teacher.json` their texts, samples and word starts (training.word_times wrote both).
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import SAMPLE_RATE, Pcm
from studio.word_times import alignment, features, part_times, word_times
from studio.word_times.letter_sounds import HEARD, KINDS, sounds_of

HERE = Path(__file__).parent
MEDIAN, TENTH = 0.06, 0.15  # seconds: half of all words, and nine of ten


@pytest.fixture(scope="module")
def sentences() -> list[tuple[str, Pcm, list[float]]]:
    sound, rate = soundfile.read(HERE / "teacher.ogg", dtype="int16")
    assert rate == SAMPLE_RATE
    read = json.loads((HERE / "teacher.json").read_text())
    found, at = [], 0
    for each in read:
        found.append((each["text"], sound[at : at + each["samples"]], each["starts"]))
        at += each["samples"]
    return found


def errors(sentences: list[tuple[str, Pcm, list[float]]]) -> np.ndarray:
    return np.array(
        [
            found[1] - start
            for text, pcm, starts in sentences
            for found, start in list(zip(word_times(text, pcm), starts, strict=True))[1:]
        ]
    )


def test_words_begin_where_the_teacher_began_them(
    sentences: list[tuple[str, Pcm, list[float]]],
) -> None:
    off = np.abs(errors(sentences))
    assert len(off) >= 40
    assert np.median(off) <= MEDIAN
    assert np.quantile(off, 0.9) <= TENTH


def test_long_speech_does_not_drift(sentences: list[tuple[str, Pcm, list[float]]]) -> None:
    """All sentences twelve times as one text, minutes of it, with pauses between."""
    pause = np.zeros(SAMPLE_RATE // 2, np.int16)
    many = sentences * 12
    text = " ".join(text for text, _, _ in many)
    pcm = np.concatenate([part for _, sound, _ in many for part in (sound, pause)])
    begins = np.cumsum([0, *(len(sound) + len(pause) for _, sound, _ in many)]) / SAMPLE_RATE
    wanted = [
        start + begin
        for (_, _, starts), begin in zip(many, begins, strict=False)
        for start in starts
    ]
    found = [start for _, start, _ in word_times(text, pcm)]
    off = np.abs(np.array(found) - wanted)
    assert len(pcm) / SAMPLE_RATE > 120
    assert np.median(off) <= MEDIAN
    assert np.quantile(off, 0.9) <= 1.5 * TENTH  # first words of sentences count here


def test_what_is_kept_in_memory_changes_no_time(
    sentences: list[tuple[str, Pcm, list[float]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours are aligned in pieces; so are seconds here."""
    text = " ".join(text for text, _, _ in sentences)
    pcm = np.concatenate([sound for _, sound, _ in sentences])
    whole = word_times(text, pcm)
    monkeypatch.setattr(alignment, "_KEPT", 100)
    monkeypatch.setattr(features, "_BLOCK", 64)
    assert len(pcm) / SAMPLE_RATE > 10
    assert word_times(text, pcm) == whole


def test_parts_of_a_text_have_the_times_of_their_words(
    sentences: list[tuple[str, Pcm, list[float]]],
) -> None:
    text, pcm, _ = sentences[0]
    words = word_times(text, pcm)
    cut = len(words) // 2
    parts = [" ".join(each[0] for each in half) for half in (words[:cut], words[cut:])]
    times = part_times(parts, pcm)
    assert times == [(words[0][1], words[cut - 1][2]), (words[cut][1], words[-1][2])]


TEXTS = st.text(max_size=60) | st.sampled_from(
    ["Hello.", "今天天气很好，我们走吧。", "Привет, мир!", "... — !", "42 £20 3.5% BBC", "a" * 60]
)


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.integers(0, 30_000), st.booleans())
def test_any_text_and_sound_have_times_in_order(text: str, samples: int, loud: bool) -> None:
    random = np.random.default_rng(samples)
    pcm = (random.normal(0, 3000, samples) if loud else np.zeros(samples)).astype(np.int16)
    found = word_times(text, pcm)
    if not text.split() or not pcm.any():
        assert found == []
        return
    assert [word for word, _, _ in found] == text.split()
    edges = [edge for _, start, end in found for edge in (start, end)]
    assert edges == sorted(edges)
    assert 0 <= edges[0] <= edges[-1] <= samples / SAMPLE_RATE + 0.02


def test_letters_have_their_kinds() -> None:
    names = [*KINDS, "heard"]

    def kinds(word: str) -> list[str]:
        return [names[sound.kind] for sound in sounds_of(word)]

    assert kinds("ship") == ["hiss", "vowel", "stop"]
    assert kinds("late") == ["glide", "vowel", "stop"]
    assert kinds("Thé,") == ["breath", "vowel"]
    assert kinds("…") == []
    assert kinds("мир") == ["heard"] * 3
    assert all(sound.kind <= HEARD for sound in sounds_of("Straße 42 日本"))


def test_it_is_quick(sentences: list[tuple[str, Pcm, list[float]]]) -> None:
    """A twentieth of the speech's length at most, in seconds of the processor."""
    begun = time.thread_time()
    errors(sentences)
    seconds = sum(len(pcm) for _, pcm, _ in sentences) / SAMPLE_RATE
    assert time.thread_time() - begun < seconds / 20
