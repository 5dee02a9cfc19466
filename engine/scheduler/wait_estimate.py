"""How many frames a text token takes, and how much longer a frame takes than a step, as averages.

A frame takes longer than a step: prompts of others, and the time to the last chunk.
"""

from __future__ import annotations

from engine.thresholds import MOST_OVERHEAD, NEW_SHARE, TOKEN_FRAMES


class WaitEstimate:
    """Frames of a token, and steps' time that a frame takes."""

    def __init__(self) -> None:
        self.token_frames = TOKEN_FRAMES
        self.overhead = 1.0
        self._measured = 0  # requests

    def record(self, tokens: int, frames: int, seconds: float, step: float) -> None:
        """A request of `tokens` made `frames` while it held its slot for `seconds`.

        `step`: seconds of a step at its end.
        """
        if not frames or not step:
            return
        share = max(NEW_SHARE, 1 / (1 + self._measured))  # the first ones are averaged
        self._measured += 1
        self.token_frames += share * (frames / max(1, tokens) - self.token_frames)
        self.overhead += share * (min(MOST_OVERHEAD, seconds / frames / step) - self.overhead)
