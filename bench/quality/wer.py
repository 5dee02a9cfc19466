"""Word errors by pocketsphinx, an independent recogniser that needs little, for tests."""

from __future__ import annotations

import numpy as np
import soxr

from engine import SAMPLE_RATE, Waveform
from training.data.text import words_of
from training.voice.words import word_errors

HEARD_RATE = 16_000
PEAK = 20_000  # of 32768; the level that the model expects


class Listener:
    def __init__(self) -> None:
        from pocketsphinx import Decoder

        self._decoder = Decoder(samprate=HEARD_RATE, loglevel="FATAL")

    def words(self, wave: Waveform) -> list[str]:
        """Transcribe a waveform at 24 kHz."""
        sound = soxr.resample(wave, SAMPLE_RATE, HEARD_RATE)
        loudest = float(np.abs(sound).max(initial=0.0))
        if loudest < 1e-4:
            return []
        samples = (sound * (PEAK / loudest)).astype(np.int16)
        self._decoder.start_utt()
        self._decoder.process_raw(samples.tobytes(), full_utt=True)
        self._decoder.end_utt()
        found = self._decoder.hyp()
        return found.hypstr.split() if found else []

    def errors(self, text: str, wave: Waveform) -> tuple[int, int]:
        """Errors and words of one sentence."""
        wanted = words_of(text)
        return word_errors(wanted, self.words(wave)), len(wanted)
