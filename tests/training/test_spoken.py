"""What a model spoke is read as any other speech is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from training import spoken
from training.smooth_speaker import drawn, filled
from training.speech import RATE, Utterance


def test_what_was_spoken_is_heard_again_with_its_voice(tmp_path: Path) -> None:
    levels = {3: 0.25, 640: 0.5, 7: -0.125}
    made = [
        (Utterance("A stone.", who, 0), np.full(6 * RATE, level, np.float32))
        for who, level in levels.items()
    ]
    spoken.write(tmp_path, 1, made)
    plain = filled(tmp_path, 1.0, torch.device("cpu"))
    waves, voices = drawn(plain, 24)
    assert set(voices.tolist()) == set(levels)
    for wave, voice in zip(waves, voices.tolist(), strict=True):
        assert np.allclose(wave[200:-200].numpy(), levels[voice], atol=1e-3)
