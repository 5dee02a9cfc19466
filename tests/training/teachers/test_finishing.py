"""Finishing a batch is finishing each wave, as the plain forms here do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from training.data.speech_format import RATE, Wave, weighting
from training.teachers import finishing


def shape(source: Wave, rate: float, tilt: float) -> Wave:
    """Resample from `rate` to 24 kHz with `tilt` dB per octave about 1 kHz, in one transform."""
    padded = np.pad(source, (0, 2048))
    spectrum = np.fft.rfft(padded)
    hertz = np.fft.rfftfreq(len(padded), 1 / rate)
    octaves = np.log2(np.clip(hertz, 150, 6000) / 1000)
    spectrum *= 10 ** (tilt * octaves / 20)
    length = round(len(padded) * RATE / rate)
    bins = length // 2 + 1
    kept = np.zeros(bins, spectrum.dtype)
    kept[: min(bins, len(spectrum))] = spectrum[:bins]
    return (np.fft.irfft(kept, length) * (length / len(padded))).astype(np.float32)


def speech_span(wave: Wave) -> tuple[int, int]:
    """Start and end of speech, with 60 ms before and 160 ms after."""
    hop = 240
    power = np.square(wave[: len(wave) // hop * hop].reshape(-1, hop)).mean(1)
    loud = np.flatnonzero(power > power.max() * 10**-4.2)
    return max(0, (loud[0] - 6) * hop), min(len(wave), (loud[-1] + 17) * hop)


def loudness(wave: Wave) -> float:
    """Integrated loudness in LUFS, gated as in BS.1770."""
    block, hop = int(0.4 * RATE), int(0.1 * RATE)
    padded = np.pad(wave, (0, max(0, block - len(wave))))
    spectrum = np.fft.rfft(padded)
    gain = np.sqrt(weighting(np.fft.rfftfreq(len(padded), 1 / RATE)))
    power = np.square(np.fft.irfft(spectrum * gain, len(padded)))
    sums = np.concatenate(([0.0], np.cumsum(power)))
    starts = np.arange(0, len(padded) - block + 1, hop)
    blocks = (sums[starts + block] - sums[starts]) / block
    heard = blocks[blocks > 10 ** ((-70 + 0.691) / 10)]
    if not len(heard):
        return -np.inf
    return float(-0.691 + 10 * np.log10(heard[heard > heard.mean() / 10].mean()))


def sine(hertz: float, seconds: float, room: float = 0.0) -> Tensor:
    at = torch.arange(round(seconds * RATE)) / RATE
    wave = torch.sin(2 * torch.pi * hertz * at)
    return torch.nn.functional.pad(wave, (0, round(room * RATE)))


def bursts() -> Tensor:
    """Two rows of noise of different loudness, each with silence around it."""
    torch.manual_seed(1)
    rows = torch.zeros(2, 2 * RATE)
    rows[0, 4_000:30_000] = 0.05 * torch.randn(26_000)
    rows[1, 12_000:44_000] = 0.3 * torch.randn(32_000)
    return rows


@pytest.mark.parametrize("tract", [0.9, 1.1])
def test_a_tract_moves_every_frequency(tract: float) -> None:
    rows = torch.stack((sine(1000, 1.0), sine(1000, 1.0)))
    moved = finishing.scale_tract(rows, torch.tensor([tract, 1.0]))
    cut = round(RATE * 0.8)
    spectrum = torch.fft.rfft(moved[:, 480:cut] * torch.hann_window(cut - 480)).abs()
    found = spectrum.argmax(1) * RATE / (cut - 480)
    assert found.tolist() == pytest.approx([1000 * tract, 1000], abs=3)
    torch.testing.assert_close(moved[1, 480:cut], rows[1, 480:cut], atol=1e-4, rtol=0)


def test_tilt_is_that_of_the_plain_form() -> None:
    rows = bursts()
    tilted = finishing.tilt_rows(rows, torch.tensor([1.5, -1.0]))
    for row, tilt in enumerate((1.5, -1.0)):
        expected = shape(rows[row].numpy(), RATE, tilt)
        np.testing.assert_allclose(tilted[row], expected[: 2 * RATE], atol=2e-3)


def test_ends_and_loudness_are_those_of_the_plain_form() -> None:
    rows = bursts()
    spans = finishing.speech_spans(rows)
    levels = finishing.loudness(*finishing.crop_rows(rows, spans))
    for row, (start, stop) in enumerate(spans.tolist()):
        assert (start, stop) == speech_span(rows[row].numpy())
        plain = loudness(rows[row, start:stop].numpy())
        assert float(levels[row]) == pytest.approx(plain, abs=0.05)


def test_rows_get_one_loudness_where_peaks_allow() -> None:
    quiet = torch.stack((sine(500, 1.0, 1.0) * 0.05, sine(800, 2.0) * 0.01))
    lengths = torch.tensor([RATE, 2 * RATE])
    made = finishing.level_rows(quiet, lengths)
    assert finishing.loudness(made, lengths).tolist() == pytest.approx([-20.0, -20.0], abs=0.1)
    click = torch.zeros(1, RATE)
    click[0, 100] = 1.0
    loudest = float(finishing.level_rows(click, torch.tensor([RATE])).abs().max())
    assert loudest <= finishing.HIGHEST_PEAK + 1e-6


def test_a_full_tone_of_997_hertz_measures_as_the_standard_says() -> None:
    full = sine(997, 1.5)
    assert loudness(full.numpy()) == pytest.approx(-3.01, abs=0.05)
    measured = finishing.loudness(full[None], torch.tensor([len(full)]))
    assert float(measured) == pytest.approx(-3.01, abs=0.05)
