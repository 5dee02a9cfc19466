"""A synthetic recording to clone: a hum with syllables."""

from __future__ import annotations

import base64
import io

import numpy as np
import soundfile
from numpy.typing import NDArray

RATE = 24_000


def hum() -> NDArray[np.float32]:
    """[samples]: a voice-like tone of falling pitch, four syllables per second."""
    at = np.arange(6 * RATE) / RATE
    phase = 2 * np.pi * np.cumsum(130 - 4 * at) / RATE
    tone = sum(np.sin(order * phase) / order for order in range(1, 12))
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * 4 * at)
    return (0.2 * tone * syllables).astype(np.float32)


def marked(sound: NDArray[np.float32], number: int) -> NDArray[np.float32]:
    """The same sound with an inaudible difference, so that caches miss."""
    other = sound.copy()
    other[:64] = [(number >> bit & 1) / 64 for bit in range(64)]
    return other


def wav(sound: NDArray[np.float32]) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, sound, RATE, format="WAV", subtype="PCM_16")
    return file.getvalue()


def data_url(sound: NDArray[np.float32]) -> str:
    return f"data:audio/wav;base64,{base64.b64encode(wav(sound)).decode()}"
