"""Copies a step's results to the host while the device continues.

Audio is decoded concurrently with the next step and may be ready after it, so codes and audio are
awaited separately.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.errors import OutOfMemory, StepFailed, TimbreError
from engine.plan import FirstAudio, Frame, StepResult
from engine.types import Codes, Pcm

# slots, samples of each, int16 [B, longest], undefined past a row's samples
Batches = Sequence[tuple[Sequence[int], Sequence[int], Tensor]]


class Done(Protocol):
    """Says when audio is on the host, as an event of CUDA does."""

    def query(self) -> bool: ...

    def synchronize(self) -> None: ...


@dataclass(frozen=True)
class StepAudio:
    """Audio of a step, being made or copied to the host."""

    batches: Batches = ()
    done: Done | None = None  # when they are complete; None: at once
    follows: bool = False  # it is made beside further steps; none is begun before it is done
    seconds: Callable[[], float] = float  # that it took beside these, once it is done


# slots, and [R, 17]: codes, end of speech
Frames = Sequence[tuple[Sequence[int], Tensor]]


class FirstCodes:
    """Codes of a step on their way to the host before the talker runs, which alone knows where
    speech ends."""

    def __init__(self, frames: Frames) -> None:
        self._frames = [(slots, to_host(batch)) for slots, batch in frames]
        self.done = torch.cuda.Event()
        self.done.record()

    def by_slot(self) -> dict[int, Codes]:
        """Once they are done."""
        return {slot: codes[:-1] for slot, codes in _by_slot(self._frames)}


@dataclass(frozen=True)
class StepOutput:
    """The results of a step on the device."""

    frames: Frames
    audio: StepAudio
    failed: Mapping[int, Exception]
    first: FirstCodes | None = None  # of a step with first chunks


class StepTimer:
    """Measures the time of a step on the device."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._first_half, self._seconds = time.perf_counter(), 0.0
        if self._cuda:
            self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._start.record()

    def stop(self) -> None:
        self._seconds = time.perf_counter() - self._first_half
        if self._cuda:
            self._end.record()

    def stopped(self) -> bool:
        """Whether all work before `stop` is done."""
        return not self._cuda or self._end.query()

    def wait(self) -> float:
        """Wait for that; the seconds since the start."""
        if not self._cuda:
            return self._seconds
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) / 1000


class PendingStep:
    def __init__(self, number: int, made: StepOutput, watch: StepTimer) -> None:
        self._number, self._watch, self._failed = number, watch, made.failed
        self._frames = [(slots, to_host(batch)) for slots, batch in made.frames]
        self._audio, self._first = made.audio, made.first
        watch.stop()

    @property
    def audio_first(self) -> bool:
        return self._first is not None

    def first_audio(self) -> FirstAudio | None:
        with explained():
            if self._first is None or not (self._first.done.query() and self.audio_ready()):
                return None
        first, self._first = self._first, None
        return FirstAudio(self._number, first.by_slot(), self.audio())

    def wait_codes(self, seconds: float) -> bool:
        with explained():
            if not self._watch.stopped():
                time.sleep(seconds)
            return self._watch.stopped()

    def result(self) -> StepResult:
        with explained():
            seconds = self._watch.wait()
        frames = {
            slot: Frame(codes[:-1], bool(codes[-1])) for slot, codes in _by_slot(self._frames)
        }
        return StepResult(self._number, seconds, frames, self._failed, self._audio.follows)

    def audio_ready(self) -> bool:
        done = self._audio.done
        with explained():
            return done is None or done.query()

    def audio(self) -> Mapping[int, Pcm]:
        with explained():
            if self._audio.done is not None:
                self._audio.done.synchronize()
        # copies, so that a kept chunk does not keep the batch's pinned memory
        return {
            slot: samples[:length].copy()
            for slots, lengths, batch in self._audio.batches
            for slot, length, samples in zip(slots, lengths, batch.numpy(), strict=True)
        }

    def audio_seconds(self) -> float:
        return self._audio.seconds()


@dataclass(frozen=True)
class FailedStep:
    """A step that could not be launched."""

    error: Exception
    audio_first = False

    def first_audio(self) -> None:
        return None

    def wait_codes(self, seconds: float) -> bool:
        return True

    def result(self) -> StepResult:
        raise self.error

    def audio_ready(self) -> bool:
        return True

    def audio(self) -> Mapping[int, Pcm]:
        raise self.error

    def audio_seconds(self) -> float:
        raise self.error


def _by_slot(frames: Frames) -> Iterator[tuple[int, Codes]]:
    """Rows [17] of what is on the host, in memory of their own."""
    for slots, batch in frames:
        yield from zip(slots, batch.numpy().copy(), strict=True)


def to_host(tensor: Tensor) -> Tensor:
    """An asynchronous copy to the host, valid when the work launched so far is done."""
    if tensor.device.type != "cuda":
        return tensor.cpu()
    target = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return target.copy_(tensor, non_blocking=True)


@contextmanager
def explained() -> Iterator[None]:
    """Convert errors of the device to engine errors."""
    try:
        yield
    except Exception as error:
        raise explain(error) from error


def explain(error: Exception) -> TimbreError:
    """An error of the device as an engine error."""
    if isinstance(error, TimbreError):
        return error
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or "allocate memory" in str(error):
        return OutOfMemory("The device has no memory left for this. Use fewer slots or positions.")
    return StepFailed(
        "A step failed ({name}: {error}). Try again.", name=type(error).__name__, error=error
    )
