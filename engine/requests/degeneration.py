"""Speech that does not end, or ends too soon.

About one request in 300 never samples the end of speech: it loops over the same sounds or
falls silent. Here are the budget a text's length allows, and detectors for both. Pure
bookkeeping over codes and samples; what to do about it is the scheduler's business.

The budget. Speech takes about 3.5 frames a token in languages with an alphabet (15
characters a second, 4 a token) and about 5 in Chinese and Japanese, where a token is often a
whole word; a digit is a token and takes 6. So 12 and 16 frames a token leave room for slow,
acted speech; 192 frames (15 s) for short texts with long pauses.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from engine.types import FRAME_SAMPLES, Codes, Pcm

LEAST_BUDGET = 192  # frames
TOKEN_FRAMES = 12
WORD_TOKEN_FRAMES = 16
WORD_TOKEN_LANGUAGES = ("auto", "chinese", "japanese", "beijing_dialect", "sichuan_dialect")

LOOP_FRAMES = 62  # 5 s of codebook 0 repeating itself exactly
LONGEST_PERIOD = 8  # frames
SILENT_FRAMES = 75  # 6 s
SILENT_PEAK = 33  # of 32,768: -60 dB

LEAST_TOKENS = 6  # shorter texts may end whenever they like
HASTE_FRAMES = 0.5  # a token: seven times faster than people speak


def frame_budget(tokens: int, language: str) -> int:
    """Frames that this many text tokens can take at the very most."""
    slow = language.lower() in WORD_TOKEN_LANGUAGES
    return max(LEAST_BUDGET, tokens * (WORD_TOKEN_FRAMES if slow else TOKEN_FRAMES))


def ended_early(frames: int, tokens: int) -> bool:
    """The speech is too short to hold its text."""
    return tokens >= LEAST_TOKENS and frames < tokens * HASTE_FRAMES


class LoopDetector:
    """Watches codebook 0 for a short pattern that repeats and repeats."""

    def __init__(self) -> None:
        self._recent: deque[int] = deque(maxlen=LONGEST_PERIOD)  # newest first
        self._repeats = [0] * LONGEST_PERIOD  # frames equal to the one 1, 2, 3, … before

    def looping(self, code: int) -> bool:
        """Tell the next code; true from the frame on where it has looped for too long."""
        for back, earlier in enumerate(self._recent):
            self._repeats[back] = self._repeats[back] + 1 if code == earlier else 0
        self._recent.appendleft(code)
        return max(self._repeats) >= LOOP_FRAMES


class SilenceDetector:
    """Watches the samples for silence that does not end."""

    def __init__(self) -> None:
        self._silent = 0  # frames in a row

    def silent(self, pcm: Pcm) -> bool:
        """Tell the next whole frames; true when the silence has lasted too long."""
        frames = pcm.reshape(-1, FRAME_SAMPLES)
        loud = (frames.max(axis=1) > SILENT_PEAK) | (frames.min(axis=1) < -SILENT_PEAK)
        heard = np.flatnonzero(loud)
        self._silent = len(loud) - 1 - int(heard[-1]) if len(heard) else self._silent + len(loud)
        return self._silent >= SILENT_FRAMES


class Guard:
    """Both detectors over one attempt; `watching` False never objects."""

    def __init__(self, watching: bool) -> None:
        self._watching = watching
        self._loop = LoopDetector()
        self._silence = SilenceDetector()

    def codes(self, codes: Codes) -> bool:
        return self._watching and self._loop.looping(int(codes[0]))

    def sound(self, pcm: Pcm) -> bool:
        return self._watching and self._silence.silent(pcm)
