"""What a page works with: the engine, the stores of a data folder, renderings of scripts.

The server makes one and hands it to the page and to `studio/retention.py`. Knows no page.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine import Library, SpeechEngine, SpeechRequest
from studio.imports.import_process import Imports
from studio.imports.projects.project_uploads import MOST_FILE, ProjectUploads
from studio.scripts.export.export_jobs import ExportJobs
from studio.scripts.rendering.playback import ScriptPlayback
from studio.scripts.rendering.script_music import ScriptMusic
from studio.scripts.store import ScriptStore
from studio.takes.event_transport import Payload
from studio.takes.live_takes import LiveTakes
from studio.takes.take_store import Takes
from studio.takes.voice_samples import FOLDER, VoiceSamples
from studio.voices.transcription import Transcribe
from studio.voices.voice_catalog import Choices

if TYPE_CHECKING:  # a container without the trainer serves too
    from studio.voices.voice_training import VoiceTraining

LARGEST_UPLOAD = 100 << 20  # bytes, as for the largest recording; Gradio's default is unlimited


@dataclass(frozen=True)
class Studio:
    """One per server; what belongs to one visitor is sent by the visitor's page."""

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
    samples: VoiceSamples | None = None  # of voices; None: each would cost a visitor something
    imports: Imports = field(default_factory=Imports)  # the processes that read files
    scripts: ScriptStore = field(init=False)
    playback: ScriptPlayback = field(init=False)  # of scripts
    exports: ExportJobs = field(init=False)  # of scripts
    music: ScriptMusic = field(init=False)  # of scripts

    def __post_init__(self) -> None:
        scripts = ScriptStore(self.library.folder.parent / "scripts", self.imports, self.choices)
        playback = ScriptPlayback(scripts, self.engine, self.live, self.guests)
        object.__setattr__(self, "scripts", scripts)
        object.__setattr__(self, "playback", playback)
        object.__setattr__(self, "exports", ExportJobs(scripts))
        object.__setattr__(self, "music", ScriptMusic(scripts, self.imports))

    def choices(self) -> Choices:
        """The voices that are available now, with the library as it is."""
        return Choices(self.engine.capabilities(), self.library)

    def speak(
        self, prepare: Callable[[], SpeechRequest], voice: str = ""
    ) -> AsyncGenerator[Payload, None]:
        """Payloads for a player that hears one request; `voice` is its name there."""
        return self.live.speak(self.engine, prepare, voice)


def open_studio(
    engine: SpeechEngine,
    library: Library,
    takes: Takes | None = None,
    raw: bool = True,
    guests: bool = False,
    transcribe: Transcribe | None = None,
    trainings: VoiceTraining | None = None,
) -> Studio:
    """The studio of a data folder.

    `takes` None: kept beside the voices. `raw` False where only Gradio's own routes are reached.
    `guests` True where strangers come: each sees only own takes, and nobody loads models.
    `transcribe` None: transcripts are typed. `trainings` None: no voice is trained here.
    """
    data = library.folder.parent
    live = LiveTakes(raw, lambda: engine.stats().speed)
    samples = VoiceSamples(
        engine, data / FOLDER, lambda name: Choices(engine.capabilities(), library).named(name)
    )
    uploads = ProjectUploads(data / "uploads", LARGEST_UPLOAD if guests else MOST_FILE)
    return Studio(
        engine,
        library,
        live,
        takes or Takes(data / "takes"),
        guests,
        transcribe,
        trainings,
        uploads if raw else None,
        samples if raw else None,
    )
