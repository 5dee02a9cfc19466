"""One listener of a soak: what came, whether it was whole, and whether it was right.

Right is what can be made again afterwards: the same codes from the same request alone, and the
same sound from the codes, by a codec that was loaded anew.
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
from engine.worker.reference.reference_encoder import LRUCache
from engine.worker.state.prompts import to_device
from engine.worker.worker import TorchWorker

FULL_SCALE = 32767
NEAR = 1e-3  # of full scale that a sample may be off by
QUIET = 30.0  # decibels of the noisiest frame below the sound, where sums are rounded to two bytes
SILENT = 1e-12  # power
REFERENCES = 64 << 20  # bytes


@dataclass(frozen=True)
class Visit:
    """What one asks, and the chunks after which he leaves; None: he stays."""

    request: SpeechRequest
    leaves: int | None = None


@dataclass(frozen=True)
class Heard:
    """All that came of a request."""

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
        """What is wrong with it; empty when it is whole, or was left."""
        frames, samples = sum(c.frames for c in self.chunks), sum(len(c.pcm) for c in self.chunks)
        if [chunk.index for chunk in self.chunks] != [*range(len(self.chunks))]:
            return "chunks out of their order"
        if samples != frames * FRAME_SAMPLES:
            return f"{samples} samples of {frames} frames"
        if self.end.reason == "cancelled":
            return ""
        if self.end.reason != "length":
            return f"ended as {self.end.reason}"
        asked = self.request.max_frames
        told = f"{frames} frames came, {self.end.frames} were told, {asked} asked for"
        return "" if frames == self.end.frames == asked else told


async def listen(engine: Engine, visit: Visit) -> Heard:
    """To the end, which comes to those who leave as well. Raises what the stream raises."""
    return await asyncio.wait_for(_load_encoders(engine, visit), PATIENCE)


async def _load_encoders(engine: Engine, visit: Visit) -> Heard:
    chunks: list[Chunk] = []
    async with engine.submit(visit.request) as stream:
        if visit.leaves == 0:
            stream.cancel()
        async for chunk in stream:
            chunks.append(chunk)
            if len(chunks) == visit.leaves:
                stream.cancel()
    assert stream.end
    return Heard(visit.request, chunks, stream.end)


def parted(one: Codes, two: Codes) -> int | None:
    """The first frame that is not the same; None: there is none."""
    length = min(len(one), len(two))
    others = np.flatnonzero((one[:length] != two[:length]).any(1))
    if len(others):
        return int(others[0])
    return None if len(one) == len(two) else length


class Distance(NamedTuple):
    """Of two sounds."""

    largest: float  # of full scale, by sample
    decibels: float  # the noisiest frame below the whole sound

    def near(self, half: bool) -> bool:
        return self.largest <= NEAR or (half and self.decibels >= QUIET)


def distance(heard: Pcm, wanted: Pcm) -> Distance:
    sound = wanted.astype(np.float64) / FULL_SCALE
    off = heard.astype(np.float64) / FULL_SCALE - sound
    noise = float(np.square(off).reshape(-1, FRAME_SAMPLES).mean(1).max())
    below = 10 * np.log10(max(float(sound.var()), SILENT) / max(noise, SILENT))
    return Distance(float(np.abs(off).max()), float(below))


class Offline:
    """The codec from its files, with one stream: it shares nothing with the engine's."""

    def __init__(self, engine: Engine) -> None:
        worker = worker_of(engine)
        self._engine, self._device = engine, worker.device
        folder = next(iter(engine.checkpoints().values())).folder  # type: ignore[attr-defined]
        codec = load_codec(folder, worker.device, torch.float32)
        dtype = torch.float16 if two_bytes(engine) else torch.float32
        self._codec_runner = CodecRunner(codec, 1, LRUCache(REFERENCES), dtype)

    @torch.inference_mode()
    def sound(self, heard: Heard) -> Pcm:
        """Of its codes, in the pieces that it came in."""
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
        """The recording that the sound goes on from."""
        routed = self._engine.resolve(request.voice, request.model)
        own = self._engine.checkpoints()[routed.checkpoint]
        ids, layout = own.text_ids(request.text), layout_of(request)
        return own.prompt(ids, routed.voice, request.language, layout, False).reference


def worker_of(engine: Engine) -> TorchWorker:
    worker = engine.loop._worker
    assert isinstance(worker, TorchWorker)
    return worker


def two_bytes(engine: Engine) -> bool:
    """Sums are rounded, so that other company can make other draws."""
    return bool(worker_of(engine).dtype.itemsize == 2)


async def again(engine: Engine, heard: Sequence[Heard]) -> list[int | None]:
    """The frames from which on the same requests, alone, have other codes."""
    made = [await listen(engine, Visit(each.request)) for each in heard]
    return [parted(one.codes, two.codes) for one, two in zip(heard, made, strict=True)]


def sounds(engine: Engine, heard: Sequence[Heard]) -> list[Distance]:
    """How far the sound is from what its codes give; for an engine that rests."""
    offline = Offline(engine)
    return [distance(each.pcm, offline.sound(each)) for each in heard]


def judged(
    found: Sequence[int | None], sounds: Sequence[Distance], half: bool
) -> tuple[dict[str, Any], list[str]]:
    """What is told of them, and what must not be."""
    apart = [frame for frame in found if frame is not None]
    told = {
        "compared": len(found),
        "same": len(found) - len(apart),
        "parted_at": sorted(apart),
        "largest_difference": max((each.largest for each in sounds), default=0.0),
        "least_decibels": round(min((each.decibels for each in sounds), default=0.0), 1),
        "within": sum(each.largest <= NEAR for each in sounds),
    }
    return told, list(_wrong(apart, sounds, half))


def _wrong(apart: Sequence[int], sounds: Sequence[Distance], half: bool) -> Iterator[str]:
    if apart and not half:
        yield f"{len(apart)} have other codes when they are alone"
    far = sum(not each.near(half) for each in sounds)
    if far:
        yield f"{far} do not sound like their codes"
    if not sounds:
        yield "nothing was compared"
