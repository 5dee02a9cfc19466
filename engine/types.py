"""The nouns of the engine: voices, requests, chunks and ends.

All of them are immutable data. A voice says who speaks; it never says how the model is
called. This module knows no tensors, no threads and no files.
"""

from __future__ import annotations

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

Vector: TypeAlias = NDArray[np.float32]  # [width]
Codes: TypeAlias = NDArray[np.int64]  # [frames, 16]
Pcm: TypeAlias = NDArray[np.int16]  # [samples]
Waveform: TypeAlias = NDArray[np.float32]  # [samples], 24 kHz mono


@dataclass(frozen=True)
class Preset:
    """A speaker that lives in a checkpoint; the instruction is optional."""

    name: str
    instruct: str = ""


@dataclass(frozen=True, eq=False)
class Clone:
    """A voice taken from a recording: its vector alone, or with what was said and its codes."""

    vector: Vector
    transcript: str = ""
    codes: Codes | None = None
    model: str = ""  # the checkpoint among whose speakers the vector belongs; "": not known

    @property
    def in_context(self) -> bool:
        return self.codes is not None and bool(self.transcript)


@dataclass(frozen=True)
class Design:
    """A voice described in words."""

    instruct: str


@dataclass(frozen=True, eq=False)
class Blend:
    """Voices mixed by their speaker vectors; weights need not sum to one."""

    parts: tuple[tuple[Preset | Clone, float], ...]
    method: Literal["linear", "spherical"] = "linear"


Voice: TypeAlias = Preset | Clone | Design | Blend


class Settings(BaseModel):
    """The base of every group of settings: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    renamed: ClassVar[dict[str, str]] = {}  # old name -> new name
    removed: ClassVar[dict[str, str]] = {}  # name -> why it is gone

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
    """How codes are drawn. `None` means what the checkpoint's generation_config.json says."""

    greedy: bool = False
    temperature: float | None = Field(None, gt=0, le=5)
    top_k: int | None = Field(None, ge=0, le=4096)  # 0: off
    top_p: float | None = Field(None, gt=0, le=1)
    repetition_penalty: float | None = Field(None, ge=1, le=5)
    predictor_greedy: bool | None = None  # None: as `greedy`
    predictor_temperature: float | None = Field(None, gt=0, le=5)
    predictor_top_k: int | None = Field(None, ge=0, le=4096)
    predictor_top_p: float | None = Field(None, gt=0, le=1)


@dataclass(frozen=True)
class SpeechRequest:
    """What a user asked for.

    `text` may be empty when `open_text` is set: then more is appended through the stream
    while it speaks, until the text is closed. `layout` None takes the voice's own default:
    text whole for presets and designs, streamed for clones, blends and open text.
    """

    text: str
    voice: Voice
    language: str = "auto"
    sampling: SamplingParams = field(default_factory=SamplingParams)
    seed: int | None = None  # None: drawn at submission, told by the stream
    max_frames: int | None = None  # of the whole; None: a budget from the length of the text
    live: bool = True  # somebody listens while it is made
    open_text: bool = False
    layout: Literal["whole", "streamed"] | None = None
    ignore_end: bool = False  # never sample the end of speech: for benchmarks
    model: str | None = None  # None: the voice picks the checkpoint


@dataclass(frozen=True, eq=False)
class Chunk:
    """Audio handed to the listener."""

    index: int
    pcm: Pcm
    codes: Codes  # the frames this audio was made of

    @property
    def frames(self) -> int:
        return len(self.codes)

    @property
    def seconds(self) -> float:
        return len(self.pcm) / SAMPLE_RATE


Reason = Literal["finished", "length", "runaway", "incomplete", "cancelled", "error"]


@dataclass(frozen=True)
class End:
    """The one end of a stream.

    `length`: the frame budget was reached. `runaway`: speech that did not end by itself was
    stopped. `incomplete`: speech ended by itself too early to hold its text.
    """

    reason: Reason
    frames: int
    seed: int
    error: Exception | None = None


@dataclass(frozen=True)
class Capabilities:
    """What a checkpoint is and can do; read from its files, never set."""

    name: str
    size: str
    width: int  # of a speaker vector
    speakers: tuple[str, ...]
    languages: tuple[str, ...]
    dialects: dict[str, str]  # speaker -> dialect it speaks when the language is Chinese or Auto
    preset: bool
    clone: bool
    design: bool
    instruct: bool  # presets follow an instruction
    max_letters: int  # spoken well in one run; a longer text is spoken in groups of sentences
