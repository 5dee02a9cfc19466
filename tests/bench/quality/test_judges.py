"""The judges where they are installed: a tone is no speech."""

from __future__ import annotations

import numpy as np
import pytest
import soxr

from bench.quality import judges
from engine import SAMPLE_RATE


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
