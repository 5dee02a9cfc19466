"""The engine's data types: voices, requests, chunks and ends.

All are immutable. A voice is data and has no method that calls a model. This module knows no
tensors, no threads and no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from engine.errors import InvalidSetting

SAMPLE_RATE = 24_000
FRAME_SAMPLES = 1_920  # 80 ms
FRAME_SECONDS = FRAME_SAMPLES / SAMPLE_RATE
CODEBOOKS = 16
MAX_LEARNED_ROWS = 64

Vector: TypeAlias = NDArray[np.float32]  # [width]
Codes: TypeAlias = NDArray[np.int64]  # [frames, 16]
Rows: TypeAlias = NDArray[np.float32]  # [rows, width]
Pcm: TypeAlias = NDArray[np.int16]  # [samples]
Waveform: TypeAlias = NDArray[np.float32]  # [samples], 24 kHz mono


@dataclass(frozen=True)
class Preset:
    """A speaker that is part of a checkpoint; the instruction is optional."""

    name: str
    instruct: str = ""


@dataclass(frozen=True, eq=False)
class Clone:
    """A voice from recordings: its speaker embedding, optionally with transcript and codes of one
    recording, or with rows that were learned from many and follow the embedding in the prompt."""

    vector: Vector
    transcript: str = ""
    codes: Codes | None = None
    model: str = ""  # the checkpoint whose speaker space the vector belongs to; "": unknown
    rows: Rows | None = None  # learned
    digest: str = ""  # of the weights for which the rows were learned
    references: tuple[tuple[str, Clone], ...] = ()  # the same person in moods, by the mood's name

    @property
    def in_context(self) -> bool:
        return self.codes is not None and bool(self.transcript)

    @property
    def trained(self) -> bool:
        return self.rows is not None


@dataclass(frozen=True)
class Design:
    """A voice made from a description."""

    instruct: str


@dataclass(frozen=True, eq=False)
class Mood:
    """How a voice changes: a shift of speaker vectors, at strength 1 (`engine/voices/mood.py`)."""

    name: str
    shift: Vector
    space: str = ""  # in which speaker vectors it means something; "": unknown
    words: tuple[str, ...] = ()  # other names, like gladly


@dataclass(frozen=True, eq=False)
class Blend:
    """Voices mixed by their speaker embeddings; weights need not sum to one."""

    parts: tuple[tuple[Preset | Clone | Mooded, float], ...]
    method: Literal["linear", "spherical"] = "linear"


@dataclass(frozen=True, eq=False)
class Mooded:
    """A voice in moods, each with a strength; the norm of its speaker vector stays."""

    voice: Preset | Clone | Blend
    moods: tuple[tuple[Mood, float], ...]


Voice: TypeAlias = Preset | Clone | Design | Blend | Mooded


class Settings(BaseModel):
    """The base of all settings: frozen; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    renamed: ClassVar[dict[str, str]] = {}  # old name -> new name
    removed: ClassVar[dict[str, str]] = {}  # name -> why it was removed

    @model_validator(mode="before")
    @classmethod
    def _names_are_current(cls, values: Any) -> Any:
        for name in values if isinstance(values, dict) else ():
            if name in cls.renamed:
                raise InvalidSetting("{old} is called {new} now.", old=name, new=cls.renamed[name])
            if name in cls.removed:
                raise InvalidSetting("{old} is gone: {why}", old=name, why=cls.removed[name])
        return values


class SamplingParams(Settings):
    """How codes are sampled. None: the value in the checkpoint's generation_config.json."""

    greedy: bool = False
    temperature: float | None = Field(None, gt=0, le=5)
    top_k: int | None = Field(None, ge=0, le=4096)  # 0: off
    top_p: float | None = Field(None, gt=0, le=1)
    repetition_penalty: float | None = Field(None, ge=1, le=5)
    predictor_greedy: bool | None = None  # None: as `greedy`
    predictor_temperature: float | None = Field(None, gt=0, le=5)
    predictor_top_k: int | None = Field(None, ge=0, le=4096)
    predictor_top_p: float | None = Field(None, gt=0, le=1)


# What is sent when, where speech is made slower than it plays. off: it is held back until the rest
# will be in time; pauses: pieces that end at pauses; pieces: each as soon as it is made, the first
# after one frame, also where a machine that is quick enough would hold some back for hold-ups.
EarlyStart: TypeAlias = Literal["off", "pauses", "pieces"]


@dataclass(frozen=True)
class SpeechRequest:
    """A request for speech.

    With `open_text`, `text` may be empty, and more text is appended through the stream until it is
    closed. `layout` None takes the voice's default: "whole" for presets and designs, "streamed" for
    clones, blends and open text.
    """

    text: str
    voice: Voice
    language: str = "auto"
    sampling: SamplingParams = field(default_factory=SamplingParams)
    seed: int | None = None  # None: drawn at submission, see SpeechStream.seed
    max_frames: int | None = None  # in all; None: a budget from the length of the text
    live: bool = True  # played while it is generated; False: a file
    early_start: EarlyStart | None = None  # None: as the settings say
    open_text: bool = False
    layout: Literal["whole", "streamed"] | None = None
    spell_out: bool = True  # figures and abbreviations as words, for a model that needs it
    ignore_end: bool = False  # never sample end of speech, for benchmarks
    model: str | None = None  # None: the voice picks the checkpoint
    # Moods that the text may name ([glad] … [/glad]), by their names in small letters.
    moods: Mapping[str, Mood] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Audio handed to the listener."""

    index: int
    pcm: Pcm
    codes: Codes  # of the frames in this audio

    @property
    def frames(self) -> int:
        return len(self.codes)

    @property
    def seconds(self) -> float:
        return len(self.pcm) / SAMPLE_RATE


Reason = Literal["finished", "length", "runaway", "incomplete", "cancelled", "error"]


@dataclass(frozen=True)
class End:
    """The end of a stream.

    `length`: the frame limit was reached. `runaway`: speech that did not end was stopped.
    `incomplete`: end of speech was sampled too early for the text.
    """

    reason: Reason
    frames: int
    seed: int
    error: Exception | None = None


@dataclass(frozen=True)
class Capabilities:
    """What a checkpoint can do, read from its files."""

    name: str
    size: str
    width: int  # of a speaker embedding
    speakers: tuple[str, ...]
    languages: tuple[str, ...]
    dialects: dict[str, str]  # speaker -> dialect, used when the language is Chinese or Auto
    preset: bool
    clone: bool
    design: bool
    instruct: bool  # presets follow an instruction
    max_letters: int  # spoken well in one run; longer text is spoken in groups of sentences
    # The instructions that it was taught, with the words that ask for each; {}: any.
    styles: dict[str, tuple[str, ...]] = field(default_factory=dict)
    described: tuple[str, ...] = ()  # words that it knows in a description; (): any
    spoken_form: bool = False  # it was taught words alone, so what is written is spelt out for it
    digest: str = ""  # of the talker's weights, to which trained voices belong
