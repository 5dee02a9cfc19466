"""Measures of a voice agree with sounds whose pitch and balance are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.quality.acoustic_features import centroid, pitch
from engine import SAMPLE_RATE, Waveform


def voiced(hertz: float, tilt: float = 1.0) -> Waveform:
    """A harmonic series falling off with the harmonic's number."""
    t = np.arange(SAMPLE_RATE) / SAMPLE_RATE
    harmonics = range(1, int(7000 / hertz))
    wave = sum(np.sin(2 * np.pi * n * hertz * t) / n**tilt for n in harmonics)
    return np.asarray(0.1 * wave, np.float32)


@given(st.floats(75, 330))
@settings(max_examples=25, deadline=None)
def test_pitch_is_found(hertz: float) -> None:
    assert pitch(voiced(hertz)) == pytest.approx(hertz, rel=0.03)


@given(st.floats(100, 250))
@settings(max_examples=10, deadline=None)
def test_a_brighter_sound_balances_higher(hertz: float) -> None:
    assert centroid(voiced(hertz, 0.7)) > centroid(voiced(hertz, 1.5))
