"""The contract between scheduler and worker: a plan of one step, and its results.

This is the wall between host and device. The worker sees slots, never requests; the scheduler
sees integers, never tensors. Nothing here imports torch.

The order of work inside one step is release, admit, append text, prefill, decode, codec decode, so
a request that one plan takes through all of them has its first audio after one step.
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
    SamplingParams,
    Vector,
    Waveform,
)


@dataclass(frozen=True)
class ResolvedSampling:
    """Sampling parameters with every number known: one row of the device's sampling tensors."""

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
    """An in-context reference. Two prompts with the same `key` share cached device state."""

    key: str
    text_ids: tuple[int, ...]
    codes: Codes  # [frames, 16]


@dataclass(frozen=True, eq=False)
class Prompt:
    """What a slot is filled with: ids and at most one speaker, as MODEL.md lays them out.

    `text_ids` is the user's text alone. With `open_text` more ids follow by Feed; the layout
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
    reference: ReferencePrompt | None = None

    def __len__(self) -> int:
        """Rows of the prefill."""
        head = len(self.instruct_ids) + len(self.role_ids)
        tags = 3 if self.language_id is None else 4
        speaker = self.speaker_id is not None or self.vector is not None
        column = tags + speaker + 1  # …, pad; bos belongs to the body
        return head + column + self._body()

    def _body(self) -> int:
        codec = 1 + len(self.reference.codes) if self.reference else 1  # bos, reference frames
        if self.layout == "streamed":
            return codec
        reference_text = len(self.reference.text_ids) if self.reference else 0
        return reference_text + len(self.text_ids) + 1 + codec  # text, tts_eos, then the codes


@dataclass(frozen=True, eq=False)
class Admit:
    """Give a free slot to a sequence. `salt` names the sequence's own random stream."""

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
    """Run rows [start, stop) of a slot's prompt; the last piece samples the first code."""

    slot: int
    start: int
    stop: int


@dataclass(frozen=True)
class CodecDecode:
    """Turn frames [start, stop) of a slot into audio; a slot is decoded strictly in order."""

    slot: int
    start: int
    stop: int


@dataclass(frozen=True)
class StepPlan:
    """All work of one step. Slots in `decode` generate one frame each."""

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


@dataclass(frozen=True, eq=False)
class Frame:
    """One frame of one slot. `ended`: the end of speech follows it."""

    codes: Codes  # [16]
    ended: bool


@dataclass(frozen=True, eq=False)
class StepResult:
    """The codes of a step, by slot. `failed`: slots whose admission failed; they are free."""

    number: int
    seconds: float
    frames: Mapping[int, Frame] = field(default_factory=dict)
    failed: Mapping[int, Exception] = field(default_factory=dict)


class StepHandle(Protocol):
    """A step that runs on the device: its codes are ready first, its audio may come later."""

    def wait_codes(self, timeout: float) -> bool:
        """Wait for the codes, `timeout` seconds at most; whether they are ready."""

    def result(self) -> StepResult:
        """Wait for the codes and return them. Raises what the step raised."""

    def audio_ready(self) -> bool:
        """Whether `audio` would return at once."""

    def audio(self) -> Mapping[int, Pcm]:
        """Wait for the audio and return it, by slot. Called after `result`."""


class Worker(Protocol):
    """The device side as the host sees it. `launch` is called from one thread only."""

    def slots(self, talker: str) -> range:
        """The slots of a loaded talker; empty while it is not loaded."""

    def load(self, talker: str) -> range:
        """Load a talker (any thread, may take long) and return its slots."""

    def timings(self, talker: str) -> Mapping[int, float]:
        """Seconds of a decode step by rows, where a loaded talker was timed; else empty."""

    def unload(self, talker: str) -> None:
        """Drop a talker without running slots, and free its memory."""

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> None:
        """Replace a checkpoint that is not loaded."""

    def add(self, name: str, checkpoint: Checkpoint) -> None:
        """Know one more checkpoint, which is not loaded yet."""

    def remove(self, name: str) -> None:
        """Forget the checkpoint that was added last and is not loaded."""

    def launch(self, plan: StepPlan) -> StepHandle:
        """Start a step without waiting for the device."""

    def encode(self, talker: str, audio: Waveform, transcript: str) -> Clone:
        """Make a clone from checked reference audio (any thread); each is encoded once."""

    def reset(self) -> None:
        """Clear every slot; called after a step has raised."""

    def memory(self) -> int:
        """Bytes in use on the device."""

    def close(self) -> None: ...


class Checkpoint(Protocol):
    """What the host knows of a model folder without loading its weights.

    `LocalCheckpoint` reads one from disk; the fake engine has its own.
    """

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def max_positions(self) -> int:
        """Positions a slot can hold: prompt and frames together."""

    def text_ids(self, text: str) -> tuple[int, ...]:
        """Ids of a user's text; special tokens typed in it are ordinary text."""

    def language_id(self, language: str, speaker: str | None) -> int | None:
        """The language's code id, None for Auto; a dialect speaker turns Chinese and Auto into
        its dialect. Raises UnknownLanguage."""

    def prompt(
        self,
        text_ids: tuple[int, ...],
        voice: Preset | Clone | Design,
        language: str,
        layout: Literal["whole", "streamed"],
        open_text: bool,
    ) -> Prompt:
        """The prompt of a voice this checkpoint can speak. Raises RequestError."""

    def resolve_sampling(self, sampling: SamplingParams) -> ResolvedSampling:
        """Sampling with every gap filled from generation_config.json."""

    def speaker_vector(self, name: str) -> Vector:
        """A preset speaker's vector: its row of the codec embedding."""
