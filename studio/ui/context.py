"""The state that all tabs share: the engine, the library, the takes.

Knows no components and no pages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine import Library, SpeechEngine
from studio.imports.import_process import Imports
from studio.imports.project_uploads import ProjectUploads
from studio.settings import StudioSettings
from studio.takes.take_store import Takes
from studio.ui.player.live_takes import LiveTakes
from studio.voices.transcription import Transcribe
from studio.voices.voice_catalog import Choices
from studio.voices.voice_training import VoiceTraining


@dataclass(frozen=True)
class Studio:
    """One per app; tabs have no state of their own across visitors."""

    engine: SpeechEngine
    library: Library
    live: LiveTakes  # being generated
    takes: Takes  # kept on disk
    guests: bool = (
        False  # visitors are separated: each sees their own takes, and none can load models
    )

    transcribe: Transcribe | None = None  # writes down recordings, where the operator wants it
    trainings: VoiceTraining | None = None  # of voices; None: visitors train none
    uploads: ProjectUploads | None = None  # of large files; None: only Gradio's routes are reached
    imports: Imports = field(default_factory=Imports)  # the processes that read files
    # What tabs want deleted regularly; the server runs it (studio/retention.py).
    upkeep: list[Callable[[StudioSettings], object]] = field(default_factory=list)

    def choices(self) -> Choices:
        """The voices that are available now, with the library as it is."""
        return Choices(self.engine.capabilities(), self.library)
