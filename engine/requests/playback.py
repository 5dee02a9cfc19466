"""How much sound a listener still has, if playing began with the first chunk.

Knows no clock: every call is told the time. A gap is counted, and playing goes on after it.
"""

from __future__ import annotations


class Playback:
    """One listener's side of a stream."""

    def __init__(self) -> None:
        self.began: float | None = None  # when the first chunk was delivered
        self.delivered = 0.0  # seconds of sound
        self.gaps = 0  # times the sound ran out in the middle
        self.silence = 0.0  # seconds without sound, over all gaps
        self._until = 0.0  # when the sound delivered so far is played

    def deliver(self, seconds: float, now: float, excused: bool = False) -> None:
        """`excused`: the sound was late because of the listener's own text, not because of us."""
        if self.began is None:
            self.began = self._until = now
        if now > self._until:
            self.gaps += not excused
            self.silence += 0.0 if excused else now - self._until
            self._until = now
        self._until += seconds
        self.delivered += seconds

    def lead(self, now: float) -> float:
        """Seconds of sound delivered and not yet played."""
        return max(0.0, self._until - now) if self.began is not None else 0.0
