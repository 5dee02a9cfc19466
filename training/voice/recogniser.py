"""Words of a waveform by faster-whisper, where the user names a model."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import soxr

from engine import SAMPLE_RATE, InvalidSetting, Waveform
from training.voice.judge import Recognise

RATE = 16_000
THREADS = 1


def open_recogniser(model: str) -> Recognise:
    """`model`: a folder or a hub id. Raises InvalidSetting."""
    if importlib.util.find_spec("faster_whisper") is None:
        raise InvalidSetting(
            "A recogniser needs one more package: pip install 'timbre-studio[transcribe]' "
            "(in a checkout: -r requirements-transcribe.txt)"
        )
    kind: Any = importlib.import_module("faster_whisper").WhisperModel
    network = kind(model, device="cpu", compute_type="int8", cpu_threads=THREADS)

    def recognise(wave: Waveform) -> str:
        sound = soxr.resample(wave, SAMPLE_RATE, RATE).astype(np.float32)
        segments, _ = network.transcribe(sound, condition_on_previous_text=False)
        return " ".join(segment.text.strip() for segment in segments)

    return recognise
