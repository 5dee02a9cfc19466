"""Detects speech that does not end, or ends too early.

About one request in 300 never samples the end of speech: it loops over the same audio or stays
silent. This module has the frame budget of a text and detectors for both cases; the scheduler
decides what to do about them.

The budget: speech takes about 3.5 frames per token in languages with an alphabet (15 characters per
second, 4 per token) and about 5 in Chinese and Japanese, where a token is often a whole word; a
digit is one token and takes 6. So 12 and 16 frames per token allow slow, acted speech, and 192
frames (15 s) allow short texts with long pauses.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from engine.text.sentences import FASTEST_LETTERS_PER_SECOND
from engine.types import FRAME_SAMPLES, FRAME_SECONDS, Codes, Pcm

MIN_BUDGET = 192  # frames
TOKEN_FRAMES = 12
WORD_TOKEN_FRAMES = 16
WORD_TOKEN_LANGUAGES = ("auto", "chinese", "japanese", "beijing_dialect", "sichuan_dialect")

LOOP_FRAMES = 62  # 5 s of codebook 0 repeating exactly
LONGEST_PERIOD = 8  # frames
SILENT_FRAMES = 75  # 6 s
SILENT_PEAK = 33  # of 32,768: -60 dB

MIN_LETTERS = 12  # shorter texts may end at any time


def frame_budget(tokens: int, language: str) -> int:
    """The most frames that this many text tokens may take."""
    slow = language.lower() in WORD_TOKEN_LANGUAGES
    return max(MIN_BUDGET, tokens * (WORD_TOKEN_FRAMES if slow else TOKEN_FRAMES))


def ended_too_early(frames: int, letters: int) -> bool:
    """Whether speech is too short to hold its text (see `text_groups.letters`)."""
    fastest = letters / FASTEST_LETTERS_PER_SECOND
    return letters >= MIN_LETTERS and frames * FRAME_SECONDS < fastest


class LoopDetector:
    """Detects a short pattern of codebook 0 that keeps repeating."""

    def __init__(self) -> None:
        self._recent: deque[int] = deque(maxlen=LONGEST_PERIOD)  # newest first
        # run lengths of frames equal to the one 1, 2, 3, … before
        self._repeats = [0] * LONGEST_PERIOD

    def looping(self, code: int) -> bool:
        """Add a code; whether the loop has lasted too long."""
        for back, earlier in enumerate(self._recent):
            self._repeats[back] = self._repeats[back] + 1 if code == earlier else 0
        self._recent.appendleft(code)
        return max(self._repeats) >= LOOP_FRAMES


class SilenceDetector:
    """Detects silence that does not end."""

    def __init__(self) -> None:
        self._silent = 0  # frames in a row

    def silent(self, pcm: Pcm) -> bool:
        """Add whole frames; whether the silence has lasted too long."""
        frames = pcm.reshape(-1, FRAME_SAMPLES)
        loud = np.flatnonzero(
            (frames.max(axis=1) > SILENT_PEAK) | (frames.min(axis=1) < -SILENT_PEAK)
        )
        count = len(frames)
        self._silent = count - 1 - int(loud[-1]) if len(loud) else self._silent + count
        return self._silent >= SILENT_FRAMES


class DegenerationDetector:
    """Both detectors over one attempt; never positive unless `enabled`."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._loop = LoopDetector()
        self._silence = SilenceDetector()

    def check_codes(self, codes: Codes) -> bool:
        return self._enabled and self._loop.looping(int(codes[0]))

    def check_audio(self, pcm: Pcm) -> bool:
        return self._enabled and self._silence.silent(pcm)
