"""The engine's public face. The studio imports only the names in `__all__`.

A name's module is imported when the name is first used, so that a command which needs few of them
starts at once. Importing this package leaves torch out: `open_engine`, `exchange`, `add_model` and
`forget_packed` alone load it.
"""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the one list of where names are: type checkers read it, and `_modules`
    from engine.atomic import (
        PARTIAL_SUFFIX,
        atomic_replace,
        explain_write_errors,
        mark_changed,
        write_atomic,
    )
    from engine.audio.audio_io import (
        Loudspeaker,
        SoundWriter,
        check_target,
        duration,
        open_sound,
        save_sound,
    )
    from engine.audio.recording_marks import RecordingMarks, marks_of
    from engine.audio.reference_audio import Recording, load_reference_audio
    from engine.audio.sound_formats import SOUND_FORMATS
    from engine.audio.sound_reader import sound_blocks, unreadable
    from engine.config import EngineSettings, checked, engine_settings, load_profile, profiles
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
        LibraryFull,
        NameTaken,
        NotCapable,
        NotSaved,
        OtherCodec,
        OutOfMemory,
        RequestError,
        StepFailed,
        TimbreError,
        TooMany,
        UnknownLanguage,
        UnknownVoice,
    )
    from engine.folding import folded
    from engine.machine import kernel_folder, may_have_gpu
    from engine.messages import Message
    from engine.open import (
        MINI,
        add_model,
        check_choices,
        exchange,
        fitting,
        forget_packed,
        open_cluster,
        open_engine,
        open_process,
        open_zerogpu,
        read_capabilities,
    )
    from engine.remote.boot import BootedProcess, boot_ahead
    from engine.remote.protocol import Refused
    from engine.remote.remote_engine import RemoteEngine
    from engine.remote.replica import Parts, Replica
    from engine.remote.replicas import ReplicaLost, Replicas
    from engine.requests.input_processor import check_readable
    from engine.requests.sequence import Sequence, TextPiece
    from engine.requests.text_moods import recorded_moods, said_text
    from engine.speech_engine import AdmissionHook, SpeechEngine
    from engine.stats import Stats
    from engine.stream import Postprocess, SpeechStream
    from engine.text.chat import has_words
    from engine.text.languages import written_in
    from engine.text.mood_tags import (
        mood_named,
        mood_runs,
        open_tags,
        unknown_tags,
        without_mood_tags,
        without_tags,
    )
    from engine.text.sentences import (
        LANGUAGE_CODES,
        SYLLABIC,
        SentenceBuffer,
        cut_text,
        speaking_seconds,
        split_sentences,
        spoken_size,
    )
    from engine.text.spoken_form import spoken_form
    from engine.threads import lower_thread_priority
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
        EarlyStart,
        End,
        Mood,
        Mooded,
        Pcm,
        Preset,
        Reason,
        SamplingParams,
        Settings,
        SpeechRequest,
        Vector,
        Voice,
        Waveform,
    )
    from engine.voices.blend import format_blend, mix, parse_blend
    from engine.voices.library import Library
    from engine.voices.mood import MAX_STRENGTH, check_strength, learn_shift, speaker_space
    from engine.voices.mood_library import MoodLibrary, SavedMood, mood_words
    from engine.voices.routing import Routed, describe, is_native, speaker_names
    from engine.voices.voice_store import DamagedVoice, SavedVoice

__all__ = [
    "CODEBOOKS",
    "FRAME_SAMPLES",
    "FRAME_SECONDS",
    "LANGUAGE_CODES",
    "MAX_STRENGTH",
    "MINI",
    "PARTIAL_SUFFIX",
    "SAMPLE_RATE",
    "SOUND_FORMATS",
    "SYLLABIC",
    "AdmissionHook",
    "Blend",
    "BootedProcess",
    "Busy",
    "Capabilities",
    "CheckpointError",
    "Chunk",
    "Clone",
    "Codes",
    "DamagedVoice",
    "Design",
    "EarlyStart",
    "End",
    "Engine",
    "EngineClosed",
    "EngineError",
    "EngineSettings",
    "InvalidAudio",
    "InvalidSetting",
    "InvalidText",
    "InvalidVoice",
    "Library",
    "LibraryFull",
    "Loudspeaker",
    "Message",
    "Mood",
    "MoodLibrary",
    "Mooded",
    "NameTaken",
    "NotCapable",
    "NotSaved",
    "OtherCodec",
    "OutOfMemory",
    "Parts",
    "Pcm",
    "Postprocess",
    "Preset",
    "Reason",
    "Recording",
    "RecordingMarks",
    "Refused",
    "RemoteEngine",
    "Replica",
    "ReplicaLost",
    "Replicas",
    "RequestError",
    "Routed",
    "SamplingParams",
    "SavedMood",
    "SavedVoice",
    "SentenceBuffer",
    "Sequence",
    "Settings",
    "SoundWriter",
    "SpeechEngine",
    "SpeechRequest",
    "SpeechStream",
    "Stats",
    "StepFailed",
    "TextPiece",
    "TimbreError",
    "TooMany",
    "UnknownLanguage",
    "UnknownVoice",
    "Vector",
    "Voice",
    "Waveform",
    "add_model",
    "atomic_replace",
    "boot_ahead",
    "check_choices",
    "check_readable",
    "check_strength",
    "check_target",
    "checked",
    "cut_text",
    "describe",
    "duration",
    "engine_settings",
    "exchange",
    "explain_write_errors",
    "fitting",
    "folded",
    "forget_packed",
    "format_blend",
    "has_words",
    "is_native",
    "kernel_folder",
    "learn_shift",
    "load_profile",
    "load_reference_audio",
    "lower_thread_priority",
    "mark_changed",
    "marks_of",
    "may_have_gpu",
    "mix",
    "mood_named",
    "mood_runs",
    "mood_words",
    "open_cluster",
    "open_engine",
    "open_process",
    "open_sound",
    "open_tags",
    "open_zerogpu",
    "parse_blend",
    "profiles",
    "read_capabilities",
    "recorded_moods",
    "said_text",
    "save_sound",
    "sound_blocks",
    "speaker_names",
    "speaker_space",
    "speaking_seconds",
    "split_sentences",
    "spoken_form",
    "spoken_size",
    "unknown_tags",
    "unreadable",
    "without_mood_tags",
    "without_tags",
    "write_atomic",
    "written_in",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_modules()[name]), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]


@cache
def _modules() -> dict[str, str]:
    """The module of each public name."""
    imports = ast.walk(ast.parse(Path(__file__).read_text("utf-8")))
    return {
        alias.name: node.module or ""
        for node in imports
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
