"""Estimates a listener's buffer, assuming that playback began with the first chunk.

It has no clock: every call passes the time. Gaps are counted, and playback resumes after them.
"""

from __future__ import annotations


class Playback:
    """The listener's side of one stream."""

    def __init__(self) -> None:
        self.began: float | None = None  # when the first chunk was delivered
        self.delivered = 0.0  # seconds of audio
        self.gaps = 0  # times the audio ran out in the middle
        self.silence = 0.0  # seconds without audio, over all gaps
        self._until = 0.0  # when the delivered audio has been played

    def deliver(self, seconds: float, now: float, excused: bool = False) -> None:
        """`excused`: the chunk is late because the request's text was late."""
        if self.began is None:
            self.began = self._until = now
        if now > self._until:
            self.gaps += not excused
            self.silence += 0.0 if excused else now - self._until
            self._until = now
        self._until += seconds
        self.delivered += seconds

    def lead(self, now: float) -> float:
        """Seconds of audio delivered and not yet played."""
        return max(0.0, self._until - now) if self.began is not None else 0.0
