"""Builds what commands need from the settings: engine, library, postprocessing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

from engine import (
    MINI,
    BootedProcess,
    Capabilities,
    CheckpointError,
    Library,
    Postprocess,
    SpeechEngine,
    check_choices,
    fitting,
    open_engine,
    open_process,
    read_capabilities,
)
from studio.cli.console import Reporter
from studio.layout import ROOT
from studio.settings import StudioSettings
from studio.voices.kept_models import kept_models
from studio.voices.transcription import Transcribe, open_transcriber

BUILT_IN_VOICES = ROOT / "presets" / "voices"
BUILT_IN_MOODS = ROOT / "presets" / "moods"


@dataclass(frozen=True)
class AppContext:
    settings: StudioSettings
    tell: Reporter

    @property
    def cache(self) -> Path:
        """Where starts keep what later ones need not make."""
        return self.settings.cache or self.settings.data / "cache"

    def engine(
        self, booted: BootedProcess | None = None, on_loss: Callable[[], None] | None = None
    ) -> SpeechEngine:
        """An engine with the models loaded; in the process that waits for it, if there is one.
        `on_loss` is called where that process ends by itself."""
        settings, models, finish = self.settings, self.all_models(), self.finish()
        self.check_choices()
        self.tell.line(f"Loading {', '.join(models)} …")
        open_ = partial(open_process, booted=booted, on_loss=on_loss) if booted else open_engine
        engine = open_(
            models,
            settings.device,
            settings.dtype,
            settings.profile,
            weights=settings.weights,
            cache=self.cache,
            beside=True,
            **settings.engine_changes(),
        )
        engine.postprocess = finish
        return engine

    def check_choices(self) -> None:
        """Raises InvalidSetting for a device, a profile and so on that nothing has."""
        settings = self.settings
        check_choices(settings.device, settings.dtype, settings.profile, settings.weights)

    def pack(self) -> None:
        """Write the cache that later starts on a CPU use, for each model."""
        begun = perf_counter()
        self.check_choices()
        self.capabilities()  # refuses what is no model, before torch is imported
        for model in self.models():
            self.tell.line(f"Packing {model} …")
            with open_engine([model], "cpu", weights=self.settings.weights, cache=self.cache):
                seconds = perf_counter() - begun
            self.tell.line(f"{model}: ready in {self.cache} after {seconds:.0f} s.")

    def finish(self) -> Postprocess | None:
        """The postprocessing of all audio: the watermark, if enabled. Raises InvalidSetting."""
        if not self.settings.watermark:
            return None
        from studio.watermark import open_watermark

        return open_watermark().mark

    def transcribe(self) -> Transcribe | None:
        """Fills in transcripts, if a model for it is set. Raises InvalidSetting."""
        return open_transcriber(self.settings.transcriber) if self.settings.transcriber else None

    def capabilities(self) -> dict[str, Capabilities]:
        """What the models can do, without loading them."""
        return read_capabilities(self.all_models())

    def library(self) -> Library:
        return Library(
            self.settings.data / "voices",
            BUILT_IN_VOICES,
            self.settings.api.saved_voices,
            built_in_moods=BUILT_IN_MOODS,
        )

    def shelves(self) -> Library:
        """The library of the current visitor; with guests, each has their own."""
        settings = self.settings
        if not settings.guests:
            return self.library()
        from studio.server.visitors import shelf

        return Library(
            shelf(settings.data),
            BUILT_IN_VOICES,
            settings.guest_voices,
            built_in_moods=BUILT_IN_MOODS,
        )

    def models(self) -> tuple[str, ...]:
        return self.settings.model or (_mini(),)

    def all_models(self) -> tuple[str, ...]:
        """Also those that were trained here and kept; no stranger speaks with somebody's voice."""
        models = self.models()
        kept = [] if self.settings.guests else kept_models(self.settings.data)
        return (*models, *fitting(models, kept))


def _mini() -> str:
    """The embedded model."""
    if not (MINI / "config.json").is_file():
        raise CheckpointError(
            "There is no embedded model in presets/mini. Name a checkpoint: --model FOLDER, "
            "or --model Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice to download one."
        )
    return str(MINI)
