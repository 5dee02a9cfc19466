"""The engine's public face. The studio imports only the names in `__all__`.

Importing this package leaves torch out: the device side is loaded by `open_engine` alone.
"""

from engine.atomic import PART, replacing, write_whole
from engine.blend import format_blend, mix, parse_blend
from engine.config import EngineSettings, engine_settings, load_profile, profiles
from engine.engine import Engine
from engine.errors import (
    Busy,
    CheckpointError,
    EngineClosed,
    EngineError,
    InvalidAudio,
    InvalidSetting,
    InvalidText,
    InvalidVoice,
    NotCapable,
    OutOfMemory,
    RequestError,
    StepFailed,
    TimbreError,
    UnknownLanguage,
    UnknownVoice,
)
from engine.fake import Clock, Costs, FakeCheckpoint, FakeEngine, fake_capabilities
from engine.library import Library
from engine.open import open_engine, read_capabilities
from engine.recording import Recording, load_recording
from engine.routing import Routed, describe, speaker_names
from engine.sound import Loudspeaker, SoundWriter, check_target, duration, open_sound, save_sound
from engine.stats import Stats
from engine.stream import SpeechStream
from engine.types import (
    CODEBOOKS,
    FRAME_SAMPLES,
    FRAME_SECONDS,
    SAMPLE_RATE,
    Blend,
    Capabilities,
    Chunk,
    Clone,
    Codes,
    Design,
    End,
    Pcm,
    Preset,
    Reason,
    Sampling,
    Settings,
    SpeechRequest,
    Vector,
    Voice,
    Waveform,
)
from engine.voice_folder import Damaged, SavedVoice

__all__ = [
    "CODEBOOKS",
    "FRAME_SAMPLES",
    "FRAME_SECONDS",
    "PART",
    "SAMPLE_RATE",
    "Blend",
    "Busy",
    "Capabilities",
    "CheckpointError",
    "Chunk",
    "Clock",
    "Clone",
    "Codes",
    "Costs",
    "Damaged",
    "Design",
    "End",
    "Engine",
    "EngineClosed",
    "EngineError",
    "EngineSettings",
    "FakeCheckpoint",
    "FakeEngine",
    "InvalidAudio",
    "InvalidSetting",
    "InvalidText",
    "InvalidVoice",
    "Library",
    "Loudspeaker",
    "NotCapable",
    "OutOfMemory",
    "Pcm",
    "Preset",
    "Reason",
    "Recording",
    "RequestError",
    "Routed",
    "Sampling",
    "SavedVoice",
    "Settings",
    "SoundWriter",
    "SpeechRequest",
    "SpeechStream",
    "Stats",
    "StepFailed",
    "TimbreError",
    "UnknownLanguage",
    "UnknownVoice",
    "Vector",
    "Voice",
    "Waveform",
    "check_target",
    "describe",
    "duration",
    "engine_settings",
    "fake_capabilities",
    "format_blend",
    "load_profile",
    "load_recording",
    "mix",
    "open_engine",
    "open_sound",
    "parse_blend",
    "profiles",
    "read_capabilities",
    "replacing",
    "save_sound",
    "speaker_names",
    "write_whole",
]
