"""Joints are found in pauses, with the level on both sides and what is heard inside."""

from __future__ import annotations

import numpy as np
import pytest

from bench.quality.moods.joints import joints
from engine import SAMPLE_RATE, Waveform

PARTS = (0.5, 0.4, 0.7, 0.3, 0.6)  # s: speech, pause, speech, pause, speech


def sound(levels: tuple[float, float, float], click: float = 0.0) -> Waveform:
    """Tones of these amplitudes with pauses between them; a click in the first pause."""
    amplitudes = (levels[0], 0.0, levels[1], 0.0, levels[2])
    pieces = [
        amplitude * np.sin(2 * np.pi * 200 * np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE)
        for amplitude, seconds in zip(amplitudes, PARTS, strict=True)
    ]
    pieces[1][len(pieces[1]) // 2] += click
    return np.concatenate(pieces).astype(np.float32)


def test_a_joint_has_the_step_of_its_sides_and_the_length_of_its_pause() -> None:
    first, second = joints(sound((0.2, 0.1, 0.2)))
    assert first.step == pytest.approx(-6.0, abs=0.1)
    assert second.step == pytest.approx(6.0, abs=0.1)
    assert first.beside == pytest.approx(-6.0, abs=0.1)
    assert (first.pause, second.pause) == (
        pytest.approx(0.4, abs=0.03),
        pytest.approx(0.3, abs=0.03),
    )
    assert max(first.loudest, second.loudest) < -100


def test_a_click_in_a_pause_is_seen() -> None:
    first, second = joints(sound((0.2, 0.2, 0.2), click=0.001))
    assert first.jump == pytest.approx(-60, abs=0.5)
    assert second.jump < -100


def test_sound_without_a_pause_has_no_joints() -> None:
    assert joints(sound((0.2, 0.2, 0.2))[: round(0.4 * SAMPLE_RATE)]) == []
