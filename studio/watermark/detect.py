"""Checks an untrusted file for the watermark: marked, not marked, or undecided.

The limits are those of any recording. Thresholds were measured: docs/experiments.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from engine import load_reference_audio
from studio.watermark.embed import open_watermark

SURE, PERHAPS = 0.7, 0.4  # scores: marked from here on, not marked below
SHORT = 3.0  # seconds; scores of shorter audio are less reliable

MARKED: Final = (
    "This sound carries the watermark that Timbre leaves, and other programs that use Perth. "
    "A hum or a long tone can be taken for it."
)
CLEAR: Final = (
    "No watermark was found. A program may have spoken it all the same: not every program leaves "
    "a mark, and changing a sound's tempo and pitch removes it."
)
UNSURE: Final = "It cannot be told whether this sound carries the watermark."
LONGER: Final = "Three seconds of speech and more are surer."


@dataclass(frozen=True)
class Verdict:
    """The result; `said` and `advice` are keys of studio/ui/i18n."""

    score: float
    said: str
    advice: str = ""

    @property
    def marked(self) -> bool | None:
        """Whether it is marked; None: undecided."""
        return {MARKED: True, CLEAR: False}.get(self.said)


def judge(source: str | os.PathLike[str]) -> Verdict:
    """Raises InvalidAudio for a file that cannot be used, InvalidSetting without the extra."""
    watermark = open_watermark()
    recording = load_reference_audio(source)
    score = watermark.score(recording.waveform)
    verdict = MARKED if score >= SURE else UNSURE if score >= PERHAPS else CLEAR
    return Verdict(score, verdict, LONGER if recording.seconds < SHORT else "")
