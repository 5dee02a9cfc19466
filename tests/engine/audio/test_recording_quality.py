"""Recordings that a voice must not continue are told from clean ones: mixtures of Mini's voices."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from engine.audio.recording_marks import Span, marks_of
from engine.audio.recording_quality import levels_of as levels
from engine.audio.recording_quality import quality_of, speech_over_noise
from engine.audio.reference_audio import Recording, load_reference_audio
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


def test_a_lively_person_is_one(voices: list[Waveform]) -> None:
    """Before: whoever spoke for ten seconds, with questions in them, was told to be two people."""
    for voice in voices:
        again = np.concatenate([voice, np.zeros(4_000, np.float32), voice[12_000:], voice])
        assert not quality_of(again).has_others


def test_noise_is_no_echo(voices: list[Waveform]) -> None:
    noisy = quality_of(_noisy(voices[0], 6))
    assert noisy.is_noisy
    assert not noisy.is_roomy


def _music(seconds: float) -> Waveform:
    """Four chords again and again, each tone with overtones that die away."""
    chords = ((220, 277, 330), (247, 311, 370), (196, 247, 294), (165, 208, 247))
    beats = [
        sum(
            np.sin(2 * np.pi * hertz * k * time) * np.exp(-3 * time) / k
            for hertz in chords[beat % 4]
            for k in range(1, 8)
        )
        for beat in range(round(2 * seconds))
        for time in [np.arange(SAMPLE_RATE // 2) / SAMPLE_RATE]
    ]
    return np.concatenate(beats).astype(np.float32)


def _over(spoken: Waveform, beside: Waveform, decibels: float) -> Waveform:
    """Speech with something so many dB below it."""
    size = np.sqrt(np.square(spoken).mean() / np.square(beside).mean())
    return (spoken + beside[: len(spoken)] * size * 10 ** (-decibels / 20)).astype(np.float32)


def test_music_in_pauses_is_told_from_noise_and_hum(voices: list[Waveform]) -> None:
    pause = np.zeros(SAMPLE_RATE // 2, np.float32)
    spoken = np.concatenate([part for voice in voices for part in (voice, pause)])
    seconds = len(spoken) / SAMPLE_RATE + 1
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    hum = sum(np.sin(2 * np.pi * 100 * k * time) / k for k in range(1, 20)).astype(np.float32)
    for decibels in (20, 30):
        assert quality_of(_over(spoken, _music(seconds), decibels)).flaw == "music in it"
        assert not quality_of(_noisy(spoken, decibels)).is_musical
        assert not quality_of(_over(spoken, hum, decibels)).is_musical
    assert quality_of(spoken).flaw is None or quality_of(spoken).has_others  # six people
    assert quality_of(voices[0]).tones == 0  # no pause
    joined = [part for voice in voices * 3 for part in (voice, np.zeros(SAMPLE_RATE // 3))]
    assert not quality_of(np.concatenate(joined).astype(np.float32)).is_musical


def _drifting(seconds: float, hertz: float, drift: float) -> Waveform:
    """A fan whose speed rises and falls, with its hiss."""
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    turned = np.cumsum(1 + drift * np.sin(2 * np.pi * time / 15)) / SAMPLE_RATE
    tones = sum(np.sin(2 * np.pi * hertz * k * turned) / k for k in range(1, 8))
    hiss = np.random.default_rng(4).standard_normal(len(time))
    return (0.35 * tones / np.std(tones) + 0.3 * hiss).astype(np.float32)


@pytest.mark.parametrize(("hertz", "drift"), [(420, 0.01), (420, 0.1), (1_100, 0.05)])
def test_a_machine_whose_speed_drifts_makes_no_music(
    voices: list[Waveform], hertz: float, drift: float
) -> None:
    """Before, it was kept out as music: its tones are others in each pause."""
    pause = np.zeros(SAMPLE_RATE // 2, np.float32)
    spoken = np.concatenate([part for voice in voices for part in (voice, pause)])
    fan = _drifting(len(spoken) / SAMPLE_RATE + 1, hertz, drift)
    for decibels in (20, 30):
        assert not quality_of(_over(spoken, fan, decibels)).is_musical
    both = _over(spoken, _music(len(spoken) / SAMPLE_RATE + 1), 20)
    assert quality_of(_over(both, fan, 40)).is_musical


def test_nothing_at_all_is_judged_without_a_warning() -> None:
    assert quality_of(np.zeros(10 * SAMPLE_RATE, np.float32)).tones == 0


def _recording(wave: Waveform) -> Recording:
    return load_reference_audio((np.clip(wave, -1, 1), SAMPLE_RATE))


def test_clipped_places_are_found_behind_the_silence_that_is_cut() -> None:
    time = np.arange(3 * SAMPLE_RATE) / SAMPLE_RATE
    loud = 0.3 * np.sin(2 * np.pi * 220 * time)
    hot = slice(SAMPLE_RATE, round(1.2 * SAMPLE_RATE))
    loud[hot] = np.clip(20 * loud[hot], -1, 1)
    silence = np.zeros(SAMPLE_RATE)
    recording = _recording(np.concatenate([silence, loud, silence]).astype(np.float32))
    [(begin, end)] = marks_of(recording).clipped
    margin = (recording.seconds - 3) / 2  # of the silence, on either side
    assert (begin, end) == pytest.approx((1 + margin, 1.2 + margin), abs=0.01)


def _lasting(spans: Iterable[Span]) -> float:
    return sum(stop - start for start, stop in spans)


def test_noise_is_marked_in_pauses_and_tails_after_words(voices: list[Waveform]) -> None:
    pause = np.zeros(SAMPLE_RATE // 2, np.float32)
    spoken = np.concatenate([voices[0], pause, voices[1]])
    begin, end = len(voices[0]) / SAMPLE_RATE, (len(voices[0]) + len(pause)) / SAMPLE_RATE
    noisy = _recording(_noisy(spoken, 12))
    assert any(start < begin + 0.2 and stop > end - 0.2 for start, stop in marks_of(noisy).pauses)
    roomy = marks_of(_recording(_in_room(spoken, 1.5))).tails
    assert any(start < begin + 0.1 and stop > begin + 0.3 for start, stop in roomy)
    assert _lasting(marks_of(_recording(spoken)).tails) < _lasting(roomy) / 2


def test_the_other_person_is_marked(voices: list[Waveform]) -> None:
    long = np.concatenate([voices[0], voices[1], voices[0]])
    marks = marks_of(_recording(long))
    first, second = len(voices[0]) / SAMPLE_RATE, (len(voices[0]) + len(voices[1])) / SAMPLE_RATE
    assert marks.others
    assert all(each.start >= first - 1.3 and each.stop <= second + 1.3 for each in marks.others)
