"""One listener of a soak test: what it received, and whether that was complete and correct.

Correct means reproducible: the same codes from the same request alone, and the same audio from the
codes by a newly loaded codec.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from bench.load_generator import PATIENCE
from engine import FRAME_SAMPLES, Chunk, Codes, End, Engine, Pcm, SpeechRequest
from engine.plan import ReferencePrompt
from engine.requests.input_processor import layout_of
from engine.worker.codec.codec_runner import CodecRunner
from engine.worker.loading.model_loader import load_codec
from engine.worker.lru_cache import LRUCache
from engine.worker.state.prompts import to_device
from engine.worker.worker import TorchWorker

FULL_SCALE = 32767
NEAR = 1e-3  # allowed error of a sample, of full scale
QUIET = 30.0  # required dB between the audio and the error of the worst frame, in 16 bits
SILENT = 1e-12  # power
REFERENCES = 64 << 20  # bytes


@dataclass(frozen=True)
class Visit:
    """A request, and the chunks after which the listener leaves; None: it stays."""

    request: SpeechRequest
    leaves: int | None = None


@dataclass(frozen=True)
class Received:
    """Everything received for a request."""

    request: SpeechRequest
    chunks: Sequence[Chunk]
    end: End

    @property
    def codes(self) -> Codes:
        return np.concatenate([chunk.codes for chunk in self.chunks])

    @property
    def pcm(self) -> Pcm:
        return np.concatenate([chunk.pcm for chunk in self.chunks])

    @property
    def fault(self) -> str:
        """What is wrong with it; empty if it is complete or was left."""
        frames, samples = sum(c.frames for c in self.chunks), sum(len(c.pcm) for c in self.chunks)
        if [chunk.index for chunk in self.chunks] != [*range(len(self.chunks))]:
            return "chunks out of order"
        if samples != frames * FRAME_SAMPLES:
            return f"{samples} samples of {frames} frames"
        if self.end.reason == "cancelled":
            return ""
        if self.end.reason != "length":
            return f"ended as {self.end.reason}"
        most = self.request.max_frames
        counts = f"{frames} frames came, {self.end.frames} were told, {most} asked for"
        return "" if frames == self.end.frames == most else counts


async def listen(engine: Engine, visit: Visit) -> Received:
    """Read to the end, also after leaving. Raises the stream's error."""
    return await asyncio.wait_for(_load_encoders(engine, visit), PATIENCE)


async def _load_encoders(engine: Engine, visit: Visit) -> Received:
    chunks: list[Chunk] = []
    async with engine.submit(visit.request) as stream:
        if visit.leaves == 0:
            stream.cancel()
        async for chunk in stream:
            chunks.append(chunk)
            if len(chunks) == visit.leaves:
                stream.cancel()
    assert stream.end
    return Received(visit.request, chunks, stream.end)


def first_difference(one: Codes, two: Codes) -> int | None:
    """The first frame that differs; None: no frame differs."""
    length = min(len(one), len(two))
    others = np.flatnonzero((one[:length] != two[:length]).any(1))
    if len(others):
        return int(others[0])
    return None if len(one) == len(two) else length


class Distance(NamedTuple):
    """The difference of two waves."""

    largest: float  # of full scale, by sample
    decibels: float  # between the audio and the error of the worst frame

    def near(self, half: bool) -> bool:
        return self.largest <= NEAR or (half and self.decibels >= QUIET)


def distance(heard: Pcm, wanted: Pcm) -> Distance:
    sound = wanted.astype(np.float64) / FULL_SCALE
    off = heard.astype(np.float64) / FULL_SCALE - sound
    noise = float(np.square(off).reshape(-1, FRAME_SAMPLES).mean(1).max())
    below = 10 * np.log10(max(float(sound.var()), SILENT) / max(noise, SILENT))
    return Distance(float(np.abs(off).max()), float(below))


class Offline:
    """The codec, loaded from its files again, with one stream."""

    def __init__(self, engine: Engine) -> None:
        worker = worker_of(engine)
        self._engine, self._device = engine, worker.device
        folder = next(iter(engine.checkpoints().values())).folder  # type: ignore[attr-defined]
        codec = load_codec(folder, worker.device, torch.float32)
        dtype = torch.float16 if is_half_precision(engine) else torch.float32
        self._codec_runner = CodecRunner(codec, 1, LRUCache(REFERENCES), dtype)

    @torch.inference_mode()
    def sound(self, heard: Received) -> Pcm:
        """Decode its codes in the pieces in which they came."""
        self._codec_runner.open([(0, self._reference(heard.request))])
        return np.concatenate([self._piece(chunk.codes) for chunk in heard.chunks])

    def _piece(self, codes: Codes) -> Pcm:
        made = self._codec_runner.decode(
            [([0], to_device(codes, self._device)[None], [len(codes)])]
        )
        if made.done is not None:
            made.done.synchronize()
        _, lengths, batch = made.batches[0]
        piece: Pcm = batch[0, : lengths[0]].numpy().copy()
        return piece

    def _reference(self, request: SpeechRequest) -> ReferencePrompt | None:
        """The reference that the audio continues."""
        routed = self._engine.resolve(request.voice, request.model)
        checkpoint = self._engine.checkpoints()[routed.checkpoint]
        ids, layout = checkpoint.text_ids(request.text), layout_of(request)
        return checkpoint.prompt(ids, routed.voice, request.language, layout, False).reference


def worker_of(engine: Engine) -> TorchWorker:
    worker = engine.loop._worker
    assert isinstance(worker, TorchWorker)
    return worker


def is_half_precision(engine: Engine) -> bool:
    """Whether sums are rounded to 16 bits, so that other batches can change samples."""
    return bool(worker_of(engine).dtype.itemsize == 2)


async def rerun_alone(engine: Engine, heard: Sequence[Received]) -> list[int | None]:
    """The first frames at which the same requests, alone, have other codes."""
    made = [await listen(engine, Visit(each.request)) for each in heard]
    return [first_difference(one.codes, two.codes) for one, two in zip(heard, made, strict=True)]


def sounds(engine: Engine, heard: Sequence[Received]) -> list[Distance]:
    """Differences between the audio and that of its codes; the engine must be idle."""
    offline = Offline(engine)
    return [distance(each.pcm, offline.sound(each)) for each in heard]


def compare(
    found: Sequence[int | None], sounds: Sequence[Distance], half: bool
) -> tuple[dict[str, Any], list[str]]:
    """A report of the comparison, and its errors."""
    apart = [frame for frame in found if frame is not None]
    report = {
        "compared": len(found),
        "same": len(found) - len(apart),
        "parted_at": sorted(apart),
        "largest_difference": max((each.largest for each in sounds), default=0.0),
        "least_decibels": round(min((each.decibels for each in sounds), default=0.0), 1),
        "within": sum(each.largest <= NEAR for each in sounds),
    }
    return report, list(_wrong(apart, sounds, half))


def _wrong(apart: Sequence[int], sounds: Sequence[Distance], half: bool) -> Iterator[str]:
    if apart and not half:
        yield f"{len(apart)} have other codes when they are alone"
    far = sum(not each.near(half) for each in sounds)
    if far:
        yield f"{far} do not sound like their codes"
    if not sounds:
        yield "no answer was compared"
