"""What every tab of the studio is given: the engine, the kept voices, the takes.

Knows no components and no pages.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import Library, SpeechEngine
from studio.takes.live_takes import LiveTakes
from studio.takes.take_store import Takes
from studio.voices.voice_catalog import Choices


@dataclass(frozen=True)
class Studio:
    """One for the app; tabs keep nothing of their own between visitors."""

    engine: SpeechEngine
    library: Library
    live: LiveTakes  # in the making
    takes: Takes  # kept on disk
    guests: bool = False  # strangers come: each sees only own takes, nobody loads models

    def choices(self) -> Choices:
        """The voices that can be named now; the library may have changed since the last call."""
        return Choices(self.engine.capabilities(), self.library)
