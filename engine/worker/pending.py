"""A step under way: its results travel to the host while the device goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.errors import OutOfMemory, StepFailed, TimbreError
from engine.plan import Frame, StepResult


@dataclass(frozen=True)
class Made:
    """What a step makes, still on the device."""

    frames: Sequence[tuple[Sequence[int], Tensor, Tensor]]  # slots, codes [R, 16], ended [R]
    sound: Mapping[int, Tensor]  # int16 samples by slot
    failed: Mapping[int, Exception]


class Stopwatch:
    """Time of a step on the device."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._begun, self._seconds = time.perf_counter(), 0.0
        if self._cuda:
            self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._start.record()

    def stop(self) -> None:
        self._seconds = time.perf_counter() - self._begun
        if self._cuda:
            self._end.record()

    def wait(self) -> float:
        """Until everything before `stop` is done; how long that took."""
        if not self._cuda:
            return self._seconds
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) / 1000


class PendingStep:
    def __init__(self, number: int, made: Made, watch: Stopwatch) -> None:
        self._number, self._watch, self._failed = number, watch, made.failed
        self._frames = [
            (slots, to_host(codes), to_host(ended)) for slots, codes, ended in made.frames
        ]
        self._sound = {slot: to_host(samples) for slot, samples in made.sound.items()}
        watch.stop()

    def read(self) -> StepResult:
        try:
            seconds = self._watch.wait()
        except Exception as error:
            raise explain(error) from error
        frames = {
            slot: Frame(codes, bool(ended))
            for slots, batch, ends in self._frames
            for slot, codes, ended in zip(slots, batch.numpy(), ends.tolist(), strict=True)
        }
        audio = {slot: samples.numpy() for slot, samples in self._sound.items()}
        return StepResult(self._number, seconds, frames, audio, self._failed)


@dataclass(frozen=True)
class FailedStep:
    """A step that could not even be started."""

    error: Exception

    def read(self) -> StepResult:
        raise self.error


def to_host(tensor: Tensor) -> Tensor:
    """A copy on its way to the host: to be read after the stopwatch has been waited for."""
    if tensor.device.type != "cuda":
        return tensor.cpu()
    target = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return target.copy_(tensor, non_blocking=True)


def explain(error: Exception) -> TimbreError:
    """A fault of the device as one of ours."""
    if isinstance(error, TimbreError):
        return error
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or "allocate memory" in str(error):
        return OutOfMemory("The device has no memory left for this. Use fewer slots or positions.")
    return StepFailed(f"A step failed: {type(error).__name__}: {error}")
