"""The watermark is found again, stays unheard, and is not seen where it is not."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import app
from engine import SAMPLE_RATE, InvalidSetting, Pcm, Waveform, save_sound
from studio.ui.i18n import CHINESE, both
from studio.ui.tabs import check
from studio.watermark import detect, is_installed, judge, open_watermark, perth_weights
from studio.watermark.perth_network import run
from studio.watermark.stft import WINDOW

RAMP = (1, 2, 4, 8, 12)  # frames of a listener's chunks
MP3_128 = 0.2  # libsndfile's word for 128 kb/s at 24 kHz
real = pytest.mark.skipif(not is_installed(), reason="requirements-watermark.txt is not installed")


def spoken(seconds: float = 5.0, pitch: float = 120.0) -> Pcm:
    """Something like a voice: vowels in a melody, syllable after syllable."""
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    melody = pitch * (1 + 0.15 * np.sin(2 * np.pi * 0.7 * time))
    phase = 2 * np.pi * np.cumsum(melody) / SAMPLE_RATE
    first = 500 + 200 * np.sin(2 * np.pi * 1.3 * time)
    wave = np.zeros(len(time))
    for number in range(1, 25):
        tone = number * melody
        peaks = ((first, 100.0), (1_500.0, 150.0), (2_500.0, 200.0))
        loud = sum(1 / (1 + ((tone - peak) / width) ** 2) for peak, width in peaks)
        wave += loud * np.sin(number * phase)
    wave *= 0.55 + 0.45 * np.sin(2 * np.pi * 3 * time)
    noise = np.random.default_rng(0).normal(size=len(time)) * 0.002
    return np.asarray(0.4 * 32767 * (wave / np.abs(wave).max() + noise), np.int16)


def chunks(pcm: Pcm, ramp: Sequence[int] = RAMP) -> Iterator[Pcm]:
    sizes = iter(ramp)
    size = at = 0
    while at < len(pcm):
        size = next(sizes, size)
        yield pcm[at : at + 1_920 * size]
        at += 1_920 * size


def marked(pcm: Pcm, ramp: Sequence[int] = RAMP) -> Pcm:
    return np.concatenate([open_watermark().mark(chunk) for chunk in chunks(pcm, ramp)])


def score(pcm: Pcm) -> float:
    return open_watermark().score(pcm.astype(np.float32) / 32768)


def through(pcm: Pcm, **kind: Any) -> Pcm:
    """Written to a file's bytes and read again."""
    file = io.BytesIO()
    soundfile.write(file, pcm, SAMPLE_RATE, **kind)
    file.seek(0)
    return np.asarray(soundfile.read(file, dtype="int16")[0][: len(pcm)], np.int16)


def loudness(pcm: Pcm) -> float:
    return float(10 * np.log10(np.mean(np.square(pcm, dtype=np.float64))))


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    strange = tmp_path / "strange.tar"
    strange.write_bytes(b"PK and something else")
    monkeypatch.setattr(perth_weights, "_find", lambda: strange)
    with pytest.raises(InvalidSetting, match="Install it again"):
        perth_weights.read_networks()


# The mark itself.


@real
@pytest.mark.parametrize("pitch", [110.0, 220.0])
@pytest.mark.parametrize("ramp", [RAMP, (4,), (60,)], ids=["live", "short", "whole"])
def test_what_is_marked_is_found(pitch: float, ramp: Sequence[int]) -> None:
    sound = spoken(pitch=pitch)
    assert score(sound) < 0.4
    assert score(marked(sound, ramp)) > 0.7


CHANGES = {
    "mp3 at 128 kb/s": lambda pcm: through(
        pcm, format="MP3", bitrate_mode="CONSTANT", compression_level=MP3_128
    ),
    "flac": lambda pcm: through(pcm, format="FLAC"),
    "8 kHz": lambda pcm: soxr.resample(soxr.resample(pcm, SAMPLE_RATE, 8_000), 8_000, SAMPLE_RATE),
    "quieter": lambda pcm: pcm // 10,
    "cut": lambda pcm: pcm[len(pcm) // 3 + 77 :],
    "between silences": lambda pcm: np.pad(pcm, SAMPLE_RATE),
}


@real
@pytest.mark.parametrize("change", list(CHANGES))
def test_the_mark_survives(change: str, tmp_path: Path) -> None:
    for sound, expected in ((marked(spoken()), True), (spoken(), False)):
        file = save_sound(tmp_path / "changed.wav", CHANGES[change](sound))
        assert judge(file).marked is expected


@real
def test_length_and_loudness_stay() -> None:
    sound = spoken()
    with_mark = marked(sound)
    assert len(with_mark) == len(sound)
    assert abs(loudness(with_mark) - loudness(sound)) < 0.5  # dB
    change = with_mark.astype(np.float64) - sound
    assert 10 < loudness(sound) - loudness(change) < 30  # measured with speech: 15.5
    tones = np.abs(np.fft.rfft(change)) ** 2
    above = tones[round(len(tones) * 2_100 / (SAMPLE_RATE / 2)) :].sum()
    assert above < 1e-3 * tones.sum()


@real
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 4_000), st.integers(1, 32_767), st.integers(0, 2**32 - 1))
def test_any_chunk_keeps_its_length_and_its_ends(samples: int, loud: int, seed: int) -> None:
    """At its ends nothing is added, so chunks fit together; too short a chunk stays as it is."""
    chunk = np.random.default_rng(seed).integers(-loud, loud + 1, samples).astype(np.int16)
    done = open_watermark().mark(chunk)
    assert (done.dtype, done.shape) == (chunk.dtype, chunk.shape)
    assert np.array_equal(done[:8], chunk[:8])
    assert np.array_equal(done[-8:], chunk[-8:])
    if samples < WINDOW:
        assert np.array_equal(done, chunk)
    else:
        assert np.isfinite(open_watermark().score(done.astype(np.float32) / 32768))


@real
def test_silence_stays_silent() -> None:
    assert not open_watermark().mark(np.zeros(24_000, np.int16)).any()


@real
def test_the_networks_are_the_library_s() -> None:
    """What resemble-perth 1.0.1 itself answers, run with torch on the same numbers."""
    levels = np.random.default_rng(0).random((60, 128)).astype(np.float32) * 0.3 + 0.4
    marker, *finders = perth_weights.read_networks()
    raised = run(marker, levels)
    values = [raised.mean(), raised.std(), raised[10, 20], raised[59, 127]]
    assert np.allclose(values, [-0.00118, 0.00975, -0.0088, 0.00702], atol=1e-5)
    answers = [run(finder, levels).mean(axis=0) for finder in finders]
    expected = [[-0.0449, 0.0623], [0.2575, 0.0117], [-0.0791, 0.0368]]
    assert np.allclose(answers, expected, atol=1e-4)


# The check of a file.


@real
def test_the_command_tells_marked_from_unmarked(tmp_path: Path) -> None:
    files = [
        str(save_sound(tmp_path / "with.mp3", marked(spoken()))),
        str(save_sound(tmp_path / "without.ogg", spoken())),
        str(save_sound(tmp_path / "short.wav", spoken(1.5))),
    ]
    ran = CliRunner().invoke(app.cli, ["check", *files])
    assert ran.exit_code == 0, ran.output
    printed = ran.stdout.splitlines()
    assert "carries the watermark" in printed[0]
    assert "No watermark was found" in printed[1]
    assert "Three seconds" in printed[2]
    assert [judge(file).marked for file in files[:2]] == [True, False]


@real
def test_a_file_that_is_no_sound_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_text(json.dumps({"a": 1}))
    ran = CliRunner().invoke(app.cli, ["check", str(tmp_path / "a.wav")])
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "it is no sound" in ran.stderr


@real
def test_the_page_and_programs_are_told_the_same(tmp_path: Path) -> None:
    file = str(save_sound(tmp_path / "with.flac", marked(spoken())))
    answer = check.program(file)
    assert answer["marked"] is True
    assert both(answer["said"]) in check.answered(file)
    assert check.answered(None) == ""
    (tmp_path / "a.wav").write_text("<b>")
    assert "it is no sound" in check.answered(str(tmp_path / "a.wav"))


@pytest.mark.parametrize(("score", "marked"), [(0.99, True), (0.5, None), (0.01, False)])
def test_between_found_and_not_found_nothing_is_claimed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, score: float, marked: bool | None
) -> None:
    class Mark:
        def score(self, wave: Waveform) -> float:
            assert np.abs(wave).max() <= 1
            return score

    monkeypatch.setattr(detect, "open_watermark", Mark)
    file = save_sound(tmp_path / "a.wav", spoken(3.5))
    assert judge(file).marked is marked
    assert judge(file).said in CHINESE
