"""Writes down what is said in a recording, with faster-whisper (an extra) on this machine's CPU.

The model is loaded at the first recording. Knows no pages and no files: a waveform goes in.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import soxr

from engine import SAMPLE_RATE, InvalidSetting, Waveform

MISSING: Final = (
    "Transcripts need one more package. Run pip install 'timbre-studio[transcribe]' "
    "(in a checkout: -r requirements-transcribe.txt), and start again."
)
RATE: Final = 16_000  # Hz, what whisper is trained on
THREADS: Final = 2
SILENT: Final = 0.8  # probability of silence above which a segment's words are made up
UNSURE: Final = -1.2  # mean log probability below which they are too
_PACKAGE: Final = "faster_whisper"

Transcribe: TypeAlias = Callable[[Waveform], str]

log = logging.getLogger(__name__)


def open_transcriber(model: str) -> Transcribe:
    """`model`: a folder or a hub id of a faster-whisper model. Raises InvalidSetting."""
    if importlib.util.find_spec(_PACKAGE) is None:
        raise InvalidSetting(MISSING)
    return Transcriber(model)


class Transcriber:
    """One recording at a time; others wait."""

    def __init__(self, model: str) -> None:
        self._name = model
        self._model: Any = None
        self._lock = threading.Lock()

    def __call__(self, waveform: Waveform) -> str:
        """The words of a recording at 24 kHz; empty where nothing is understood."""
        sound = soxr.resample(waveform, SAMPLE_RATE, RATE).astype(np.float32)
        with self._lock:
            try:
                heard, _ = self._loaded().transcribe(sound, condition_on_previous_text=False)
                segments = list(heard)  # recognised while it is read
            except Exception:  # whatever a model on disk or its download may raise
                log.exception("the recording could not be transcribed with %s", self._name)
                return ""
        words = (each.text.strip() for each in segments if not _made_up(each))
        return " ".join(filter(None, words))

    def _loaded(self) -> Any:
        if self._model is None:
            kind = importlib.import_module(_PACKAGE).WhisperModel
            self._model = kind(self._name, device="cpu", compute_type="int8", cpu_threads=THREADS)
        return self._model


def _made_up(segment: Any) -> bool:
    return bool(segment.no_speech_prob > SILENT and segment.avg_logprob < UNSURE)
