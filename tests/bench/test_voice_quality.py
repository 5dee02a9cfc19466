"""The table of judged voices: its arithmetic with judges made up, and the judges where they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
from hypothesis import given
from hypothesis import strategies as st

from bench.quality import judges
from bench.quality.judges import Embedding
from bench.quality.voice_quality import Score, likeness, line, read_recordings, whole
from engine import SAMPLE_RATE, Waveform


class MadeUp:
    """Judges that read their answers out of the first samples of a wave."""

    def __init__(self, heard: Sequence[str]) -> None:
        self.heard = list(heard)

    def prepared(self, wave: Waveform) -> Waveform:
        return wave

    def naturalness(self, sound: Waveform) -> float:
        return float(sound[0])

    def cleanness(self, sound: Waveform) -> float:
        return float(sound[1])

    def words(self, sound: Waveform) -> list[str]:
        return self.heard

    def embedding(self, sound: Waveform) -> Embedding:
        return sound[2:4]


def wave(natural: float, clean: float, angle: float) -> Waveform:
    sound = np.zeros(SAMPLE_RATE, np.float32)
    sound[:4] = natural, clean, np.cos(angle), np.sin(angle)
    return sound


def judged(name: str, marks: Sequence[tuple[float, float, float]], heard: str = "a b") -> Score:
    score = Score(name)
    for mark in marks:
        score.add(MadeUp(heard.split()), "A b.", wave(*mark))
    return score


def test_a_row_has_means_the_least_and_errors() -> None:
    score = judged("clara", [(4.0, 3.0, 0.0), (2.0, 2.0, 0.0)], heard="a c")
    row = score.row([score])
    assert row["distillmos"] == 3.0
    assert row["distillmos_least"] == 2.0
    assert row["dnsmos"] == 2.5
    assert row["word_errors_percent"] == 50.0
    assert row["like_itself"] == 1.0
    assert row["like_next"] is None
    assert "3.0" in line(row)


def test_voices_are_told_apart_by_their_direction() -> None:
    first = judged("a", [(4, 3, 0.0), (4, 3, 0.1)])
    second = judged("b", [(4, 3, 0.5), (4, 3, 0.6)])
    third = judged("c", [(4, 3, 1.5), (4, 3, 1.5)])
    row = first.row([first, second, third])
    assert row["like_itself"] == pytest.approx(np.cos(0.1), abs=1e-3)
    assert row["like_next"] == pytest.approx(np.cos(0.5), abs=1e-3)


def test_a_silent_answer_gets_the_worst_marks() -> None:
    score = Score("mute")
    score.add(MadeUp(["a"]), "A b.", np.zeros(0, np.float32))
    row = score.row([score])
    assert (row["distillmos"], row["word_errors_percent"]) == (1.0, 100.0)
    assert row["like_itself"] is None


def test_all_voices_together_count_sentences_not_voices() -> None:
    scores = [judged("a", [(4, 3, 0)] * 3), judged("b", [(2, 1, 0)], heard="x y")]
    row = whole(scores)
    assert row["sentences"] == 4
    assert row["distillmos"] == 3.5
    assert row["word_errors_percent"] == 25.0


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_likeness_is_at_most_one_and_one_for_equal_sentences(angles: list[float]) -> None:
    vectors = [np.array([np.cos(angle), np.sin(angle)], np.float32) for angle in angles]
    found = likeness(vectors)
    assert found is not None
    assert found <= 1.0
    assert likeness([vectors[0]] * len(vectors)) == 1.0


def test_recordings_are_read_by_number_at_the_rate_of_the_engine(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "01.wav", np.zeros((800, 2)), 8000)
    ((index, sound),) = read_recordings(tmp_path, 3)
    assert index == 1
    assert len(sound) == SAMPLE_RATE // 10


@pytest.mark.slow
def test_the_judges_answer_and_a_tone_is_no_speech() -> None:
    if judges.missing():
        pytest.skip(f"not installed: {', '.join(judges.missing())} (requirements-judges.txt)")

    panel = judges.Judges()
    tone = np.sin(2 * np.pi * 220 * np.arange(2 * SAMPLE_RATE) / SAMPLE_RATE).astype(np.float32)
    sound = panel.prepared(tone)
    assert len(sound) == len(soxr.resample(tone, SAMPLE_RATE, 16_000))
    assert 0 < panel.naturalness(sound) < 3
    assert 0 < panel.cleanness(sound) < 3
    assert np.linalg.norm(panel.embedding(sound)) == pytest.approx(1, abs=1e-4)
