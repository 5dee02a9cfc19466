"""Recordings that a voice must not continue are told from clean ones: mixtures of Mini's voices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from engine.audio.recording_quality import _levels as levels
from engine.audio.recording_quality import quality_of, speech_over_noise
from engine.types import SAMPLE_RATE, Waveform

SPOKEN = Path(__file__).parents[3] / "docs/sound/mini.mp3"  # six voices, one after another


@pytest.fixture(scope="module")
def voices() -> list[Waveform]:
    sound, rate = soundfile.read(SPOKEN, dtype="float32")
    mono = sound if sound.ndim == 1 else sound.mean(1)
    wave = soxr.resample(mono, rate, SAMPLE_RATE).astype(np.float32)
    return _apart(wave)


def _apart(wave: Waveform) -> list[Waveform]:
    """The stretches between pauses of a third of a second."""
    loud = levels(wave) > levels(wave).max() - 45
    places = np.flatnonzero(loud)
    cuts = np.flatnonzero(np.diff(places) > 34)
    edges = zip([0, *(cuts + 1)], [*cuts, len(places) - 1], strict=True)
    hop = SAMPLE_RATE // 100
    spans = [(max(0, places[a] - 15), places[b] + 15) for a, b in edges]
    return [wave[a * hop : b * hop] for a, b in spans if b - a > 200]


def _noisy(wave: Waveform, decibels: float) -> Waveform:
    noise = np.random.default_rng(1).standard_normal(len(wave)) * np.sqrt(np.square(wave).mean())
    return (wave + noise * 10 ** (-decibels / 20)).astype(np.float32)


def _in_room(wave: Waveform, seconds: float) -> Waveform:
    """A room of this reverberation time, as loud as the voice itself."""
    times = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    tail = np.random.default_rng(2).standard_normal(len(times)) * 10 ** (-3 * times / seconds)
    tail[0] = np.sqrt(np.square(tail).sum())
    return np.convolve(wave, tail / tail[0])[: len(wave)].astype(np.float32)


def test_clean_recordings_have_no_flaw(voices: list[Waveform]) -> None:
    assert len(voices) >= 5
    assert [quality_of(voice).flaw for voice in voices] == [None] * len(voices)
    assert [quality_of(_noisy(voice, 30)).flaw for voice in voices] == [None] * len(voices)


def test_noise_is_told(voices: list[Waveform]) -> None:
    for voice in voices:
        found = quality_of(_noisy(voice, 10)).flaw
        assert found
        assert "noisy" in found
        assert speech_over_noise(levels(_noisy(voice, 10))) == pytest.approx(13, abs=2)


def test_a_room_is_told(voices: list[Waveform]) -> None:
    assert all(quality_of(_in_room(voice, 0.8)).flaw for voice in voices)
    assert not any(quality_of(_in_room(voice, 0.15)).flaw for voice in voices)


def test_a_woman_and_a_man_are_told_from_one_person(voices: list[Waveform]) -> None:
    found = quality_of(np.concatenate(voices[:2])).flaw
    assert found
    assert "person" in found
