"""The interface between scheduler and worker: the plan of one step, and its results.

The worker sees slots, never requests; the scheduler sees integers, never tensors. Nothing here
imports torch.

Work inside a step is done in the order release, admit, append text, prefill, decode, codec decode,
so a request that passes through all of them in one plan has its first audio after one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from engine.types import (
    Capabilities,
    Clone,
    Codes,
    Design,
    Pcm,
    Preset,
    Rows,
    SamplingParams,
    Vector,
    Waveform,
)


@dataclass(frozen=True)
class ResolvedSampling:
    """Sampling parameters with all gaps filled: one row of the device's sampling tensors."""

    greedy: bool
    temperature: float
    top_k: int
    top_p: float
    repetition_penalty: float
    predictor_greedy: bool
    predictor_temperature: float
    predictor_top_k: int
    predictor_top_p: float


@dataclass(frozen=True, eq=False)
class ReferencePrompt:
    """An in-context reference. Prompts with the same `key` share cached device state."""

    key: str
    text_ids: tuple[int, ...]
    codes: Codes  # [frames, 16]


@dataclass(frozen=True, eq=False)
class Prompt:
    """A slot's prompt: ids and at most one speaker.

    `text_ids` is the user's text alone. With `open_text` more ids follow by AppendText; the layout
    is then always streamed.
    """

    text_ids: tuple[int, ...]
    layout: Literal["whole", "streamed"]
    open_text: bool = False
    instruct_ids: tuple[int, ...] = ()  # wrapped already: <|im_start|>user\n … <|im_end|>\n
    role_ids: tuple[int, ...] = ()  # <|im_start|>assistant\n
    language_id: int | None = None  # None: Auto
    speaker_id: int | None = None  # a preset: a row of the talker's codec embedding
    vector: Vector | None = None  # a clone or a blend
    rows: Rows | None = None  # of a trained voice, after its vector
    reference: ReferencePrompt | None = None

    def __len__(self) -> int:
        """Rows of the prefill."""
        head = len(self.instruct_ids) + len(self.role_ids)
        tags = 3 if self.language_id is None else 4
        speaker = self.speaker_id is not None or self.vector is not None
        learned = 0 if self.rows is None else len(self.rows)
        column = tags + speaker + learned + 1  # …, pad; bos is part of the body
        return head + column + self._body()

    def _body(self) -> int:
        codec = 1 + len(self.reference.codes) if self.reference else 1  # bos, reference frames
        if self.layout == "streamed":
            return codec
        reference_text = len(self.reference.text_ids) if self.reference else 0
        return reference_text + len(self.text_ids) + 1 + codec  # text, tts_eos, then the codes


@dataclass(frozen=True, eq=False)
class Admit:
    """Assign a free slot to a sequence."""

    slot: int
    talker: str
    prompt: Prompt
    sampling: ResolvedSampling
    seed: int
    max_frames: int
    ignore_end: bool = False


@dataclass(frozen=True)
class AppendText:
    """Append text to an open prompt; `closed` adds tts_eos after it."""

    slot: int
    text_ids: tuple[int, ...]
    closed: bool


@dataclass(frozen=True)
class Prefill:
    """Run rows [start, stop) of a slot's prompt; after the last row the first code is sampled."""

    slot: int
    start: int
    stop: int


@dataclass(frozen=True)
class CodecDecode:
    """Decode frames [start, stop) of a slot into audio; a slot's frames are decoded in order.
    `awaited`: its listener has nothing to hear before long, so that a step ends with it even where
    audio is made beside the next one."""

    slot: int
    start: int
    stop: int
    awaited: bool = False


@dataclass(frozen=True)
class StepPlan:
    """The work of one step. Each slot in `decode` generates one frame."""

    number: int
    release: tuple[int, ...] = ()
    admit: tuple[Admit, ...] = ()
    append_text: tuple[AppendText, ...] = ()
    prefill: tuple[Prefill, ...] = ()
    decode: tuple[int, ...] = ()
    codec_decode: tuple[CodecDecode, ...] = ()

    def __bool__(self) -> bool:
        first = self.release or self.admit or self.append_text
        return bool(first or self.prefill or self.decode or self.codec_decode)

    @property
    def awaits_audio(self) -> bool:
        return any(due.awaited for due in self.codec_decode)


@dataclass(frozen=True, eq=False)
class Frame:
    """One frame of one slot. `ended`: end of speech was sampled after it."""

    codes: Codes  # [16]
    ended: bool


@dataclass(frozen=True, eq=False)
class StepResult:
    """The codes of a step by slot. `failed`: slots whose admission failed; they are free.
    `audio_follows`: the worker itself waits for this step's audio before it makes more."""

    number: int
    seconds: float
    frames: Mapping[int, Frame] = field(default_factory=dict)
    failed: Mapping[int, Exception] = field(default_factory=dict)
    audio_follows: bool = False


@dataclass(frozen=True, eq=False)
class FirstAudio:
    """Audio of a step's first chunks, and the codes of its frames, before its results are known."""

    number: int
    codes: Mapping[int, Codes]  # by slot
    audio: Mapping[int, Pcm]


class StepHandle(Protocol):
    """A step in flight: its codes are ready first, its audio may be ready later."""

    @property
    def audio_first(self) -> bool:
        """Whether `first_audio` has something to come."""

    def first_audio(self) -> FirstAudio | None:
        """Once, what listeners wait for, if it is ready before the codes are."""

    def wait_codes(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the codes; whether they are ready."""

    def result(self) -> StepResult:
        """Wait for the codes and return them. Raises the step's error."""

    def audio_ready(self) -> bool:
        """Whether `audio` would return at once."""

    def audio(self) -> Mapping[int, Pcm]:
        """Wait for the audio and return it, by slot. Called after `result`."""

    def audio_seconds(self) -> float:
        """Seconds that it took beside the steps; 0: these took as long with it. After `audio`."""


class Worker(Protocol):
    """The device side as the host sees it. `launch` is called from one thread."""

    def slots(self, talker: str) -> range:
        """The slots of a loaded talker; empty while it is not loaded."""

    def load(self, talker: str) -> range:
        """Load a talker and return its slots. Any thread; may take long."""

    def timings(self, talker: str) -> Mapping[int, float]:
        """Seconds of a decode step by rows if the talker was timed while loading; else empty."""

    def unload(self, talker: str) -> None:
        """Unload a talker that has no running slots, and free its memory."""

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint `out`, which is not loaded."""

    def add(self, name: str, checkpoint: Checkpoint) -> None:
        """Register another checkpoint, which is not loaded."""

    def remove(self, name: str) -> None:
        """Remove a checkpoint that is not loaded; another one may take its slots."""

    def launch(self, plan: StepPlan) -> StepHandle:
        """Start a step without waiting for the device."""

    def encode(self, talker: str, audio: Waveform, transcript: str) -> Clone:
        """Make a clone from checked reference audio. Any thread; results are cached."""

    def reset(self) -> None:
        """Clear every slot, after a step has raised."""

    def memory(self) -> int:
        """Bytes in use on the device."""

    def close(self) -> None: ...


class Checkpoint(Protocol):
    """A checkpoint as the host sees it, without weights."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def max_positions(self) -> int:
        """Positions a slot can hold: prompt and frames together."""

    def text_ids(self, text: str) -> tuple[int, ...]:
        """Ids of a user's text; special tokens spelt in it are ordinary text."""

    def language_id(self, language: str, speaker: str | None) -> int | None:
        """The language's code id, None for Auto. For a speaker with a dialect, Chinese and Auto
        give the dialect's id. Raises UnknownLanguage."""

    def prompt(
        self,
        text_ids: tuple[int, ...],
        voice: Preset | Clone | Design,
        language: str,
        layout: Literal["whole", "streamed"],
        open_text: bool,
    ) -> Prompt:
        """The prompt for a voice. Raises RequestError for a voice that it cannot speak."""

    def resolve_sampling(self, sampling: SamplingParams) -> ResolvedSampling:
        """Sampling parameters with gaps filled from generation_config.json."""

    def speaker_vector(self, name: str) -> Vector:
        """A preset speaker's vector: its row of the codec embedding."""
