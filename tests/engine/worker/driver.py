"""Drives a worker by written plans for one or several prompts, as an engine would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.plan import (
    Admit,
    AppendText,
    CodecDecode,
    Frame,
    Prefill,
    Prompt,
    ResolvedSampling,
    StepHandle,
    StepPlan,
)
from engine.types import Codes, Pcm
from engine.worker.worker import TorchWorker
from engine.worker.worker_settings import WorkerSettings

GREEDY = ResolvedSampling(True, 0.9, 50, 1.0, 1.05, True, 0.9, 50, 1.0)
DRAWN = replace(GREEDY, greedy=False, predictor_greedy=False)
MAX_FRAMES = 100


@dataclass(frozen=True, eq=False)
class Speech:
    """What one prompt became."""

    codes: Codes  # [frames, 16]
    pcm: Pcm
    ended: bool  # by itself, not by its budget


@dataclass(eq=False)
class Voice:
    """A prompt in a slot: its request, and its output."""

    admit: Admit
    pieces: Sequence[int] = ()  # rows of each prefill piece; the rest in one
    chunks: Sequence[int] = (1,)  # frames of each piece of sound; the last repeats
    frames: list[Codes] = field(default_factory=list)
    sound: list[Pcm] = field(default_factory=list)
    heard: int = 0
    ended: bool = False

    @property
    def slot(self) -> int:
        return self.admit.slot

    @property
    def done(self) -> bool:
        return self.ended or len(self.frames) >= self.admit.max_frames

    def prefills(self) -> Iterator[Prefill]:
        start, length = 0, len(self.admit.prompt)
        for rows in (*self.pieces, length):
            stop = min(start + rows, length)
            if stop > start:
                yield Prefill(self.slot, start, stop)
            start = stop

    def due(self) -> CodecDecode | None:
        """The next piece of sound, when its frames are there; all that is left at the end."""
        chunk = self.chunks[min(len(self.sound), len(self.chunks) - 1)]
        there = len(self.frames) - self.heard
        if there == 0 or (there < chunk and not self.done):
            return None
        return CodecDecode(self.slot, self.heard, self.heard + min(chunk, there))

    def take(self, result: Landed) -> None:
        if self.slot in result.frames:
            self.frames.append(result.frames[self.slot].codes)
            self.ended = result.frames[self.slot].ended
        if self.slot in result.audio:
            self.sound.append(result.audio[self.slot])
            self.heard += len(result.audio[self.slot]) // 1920

    def speech(self) -> Speech:
        return Speech(np.stack(self.frames), np.concatenate(self.sound), self.ended)


def admission(
    worker: TorchWorker,
    prompt: Prompt,
    draw: ResolvedSampling = GREEDY,
    slot: int = 0,
    seed: int = 0,
    max_frames: int = MAX_FRAMES,
    talker: str | None = None,
) -> Admit:
    """An admission to a slot of a talker, by default the first one."""
    name = talker or next(iter(worker._checkpoints))
    return Admit(worker.slots(name)[slot], name, prompt, draw, seed, max_frames)


@dataclass(frozen=True)
class Landed:
    """All output of a step."""

    number: int
    frames: Mapping[int, Frame]
    audio: Mapping[int, Pcm]
    failed: Mapping[int, Exception]


def land(pending: StepHandle) -> Landed:
    """The output of a step, once it is there."""
    made = pending.result()
    return Landed(made.number, made.frames, pending.audio(), made.failed)


def step(worker: TorchWorker, **work: object) -> Landed:
    """Run one step to its end; a slot that could not be filled is an error here."""
    result = land(worker.launch(StepPlan(0, **work)))  # type: ignore[arg-type]
    for error in result.failed.values():
        raise error
    return result


def begin(worker: TorchWorker, voice: Voice, feeds: Sequence[AppendText] = ()) -> None:
    """Admission, text and the whole prompt, piece by piece."""
    pieces = list(voice.prefills())
    step(worker, admit=(voice.admit,), append_text=tuple(feeds), prefill=tuple(pieces[:1]))
    for piece in pieces[1:]:
        step(worker, prefill=(piece,))


def advance(worker: TorchWorker, voices: Sequence[Voice]) -> None:
    """One frame of each voice that is not done, and whatever sound is due."""
    speaking = [voice for voice in voices if not voice.done]
    due = tuple(piece for voice in voices if (piece := voice.due()))
    result = step(worker, decode=tuple(voice.slot for voice in speaking), codec_decode=due)
    for voice in voices:
        voice.take(result)


def synchronize(worker: TorchWorker, voices: Sequence[Voice]) -> list[Speech]:
    """Run voices that have begun to their ends, and free their slots."""
    while not all(voice.done and voice.heard == len(voice.frames) for voice in voices):
        advance(worker, voices)
    step(worker, release=tuple(voice.slot for voice in voices))
    return [voice.speech() for voice in voices]


def speak(worker: TorchWorker, prompt: Prompt, **wishes: object) -> Speech:
    """Run one prompt alone to its end. `wishes` are those of `admission`."""
    voice = Voice(admission(worker, prompt, **wishes))  # type: ignore[arg-type]
    begin(worker, voice)
    return synchronize(worker, [voice])[0]


@contextmanager
def running(
    *folders: Path, slots: int = 4, positions: int = 512, dtype: torch.dtype = torch.float32
) -> Iterator[TorchWorker]:
    """A worker on the CPU with these checkpoints loaded; in float32 exactly as the reference."""
    checkpoints = {folder.name: LocalCheckpoint(folder) for folder in folders}
    settings = WorkerSettings(
        slots, positions, "cpu", dtype=dtype, codec_dtype=dtype, reference_silence=0.0
    )
    worker = TorchWorker(checkpoints, settings)
    try:
        for name in checkpoints:
            worker.load(name)
        yield worker
    finally:
        worker.close()
