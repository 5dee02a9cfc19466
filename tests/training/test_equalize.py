"""A decoder that was equalized says what it said, through the filter."""

from __future__ import annotations

import math

import pytest
import torch

from training import equalize
from training.codec import ALL_CODEBOOKS, Codec
from training.data.speech_format import FRAME, RATE

DEPTH = torch.tensor([ALL_CODEBOOKS])


@pytest.mark.parametrize("hertz", [250.0, equalize.UNCHANGED, 4000.0, 11_000.0])
def test_the_filter_brightens(hertz: float) -> None:
    tilt = 0.15
    tone = torch.sin(2 * math.pi * hertz / RATE * torch.arange(4096, dtype=torch.float64))
    gain = float(equalize.tilted(tone, tilt)[100:].norm() / tone[100:].norm())
    wanted = equalize.response(hertz, tilt) / equalize.response(equalize.UNCHANGED, tilt)
    assert gain == pytest.approx(wanted, rel=1e-3)
    assert (gain > 1.01) == (hertz > 1000)


def test_an_equalized_decoder_says_the_filtered_wave() -> None:
    torch.manual_seed(0)
    codec = Codec().eval()
    codec.copy_codebooks()
    waves = 0.1 * torch.randn(5, 4 * FRAME).cumsum(1).mul(0.1)
    with torch.no_grad():
        before = codec(waves[-1:], DEPTH).wave[0]
        wrong = equalize.equalize(codec, waves, 0.12)
        after = codec(waves[-1:], DEPTH).wave[0]
    wanted = equalize.tilted(before, 0.12)
    found = 20 * math.log10(float((after - wanted).norm() / wanted.norm()))
    assert found == pytest.approx(wrong, abs=6)
    assert found < -25
    assert float((before - wanted).norm() / wanted.norm()) > 0.02
