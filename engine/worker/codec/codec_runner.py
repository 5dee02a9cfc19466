"""Decodes frames of codes into audio, with a codec stream per slot.

Streams are decoded in one batch, whatever their positions and numbers of frames. The state after a
voice's reference is computed once and cached. On a GPU the codec runs on its own CUDA stream,
concurrently with the talker, and so it does on a CPU in a thread of its own where there are cores
for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from time import perf_counter

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.codec import CodecDecoder, CodecState
from engine.plan import ReferencePrompt
from engine.types import CODEBOOKS
from engine.worker.codec.codec_graphs import (
    CpuStep,
    EagerCodec,
    GraphCodec,
    select_codec,
)
from engine.worker.lru_cache import LRUCache
from engine.worker.state.prompts import to_device
from engine.worker.step_output import Batches, StepAudio

TIMED_FRAMES = 4
LONG = 0.1  # seconds after which nothing is timed again

# slots, the next codes [B, frames, 16] of their streams, and how many frames each advances
Due = tuple[Sequence[int], Tensor, Sequence[int]]


class Decoding:
    """Audio of some slots that a thread makes beside the steps. As an event it says when."""

    def __init__(
        self,
        thread: ThreadPoolExecutor,
        slots: Sequence[int],
        decode: Callable[[], Batches],
        threads: int,
    ) -> None:
        self.slots, self.threads = frozenset(slots), threads
        self.seconds = 0.0  # that it took
        self.batches: list[tuple[Sequence[int], Sequence[int], Tensor]] = []
        self._decode = decode
        self._future: Future[None] = thread.submit(self._run)

    @torch.inference_mode()
    def _run(self) -> None:
        begun = perf_counter()
        self.batches += self._decode()
        self.seconds = perf_counter() - begun

    def query(self) -> bool:
        return self._future.done()

    def synchronize(self) -> None:
        """Wait for it, and raise its error."""
        self._future.result()

    def wait(self) -> None:
        """Wait for it; who is given its audio is given its error."""
        wait([self._future])


class CodecRunner:
    """The codec and a stream for each slot."""

    def __init__(
        self,
        codec: CodecDecoder | CpuStep,
        slots: int,
        cache: LRUCache[str, CodecState],
        dtype: torch.dtype,
    ) -> None:
        self._device, self._cache = codec.device, cache
        # one row more than slots, for references and padding
        self._state = CodecState.allocate(codec.config, slots + 1, self._device, dtype, codec.pasts)
        self._padding_row, self._hop, self._weights = slots, codec.config.hop, codec.bytes
        self._stepper = select_codec(codec, self._state, slots)
        self._stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        self._padding = threading.Lock()  # another talker may be timed while a reference is decoded
        self._thread: ThreadPoolExecutor | None = None  # made when it is needed
        self._decoding: Decoding | None = None  # the last that it was given

    @property
    def bytes(self) -> int:
        return self._weights + _size(self._state) + self._cache.size

    def warm(self) -> None:
        """Capture the graphs before the first request."""
        if isinstance(self._stepper, GraphCodec):
            with self._on_stream():
                self._stepper.warm(self._padding_row)

    def close(self) -> None:
        """End the threads."""
        if self._thread is not None:
            self._thread.shutdown()
        if self._kernel is not None:
            self._kernel.close()

    @property
    def _kernel(self) -> CpuStep | None:
        """The decoder, if it is a kernel on a CPU."""
        step = self._stepper.step if isinstance(self._stepper, EagerCodec) else None
        return step if isinstance(step, CpuStep) else None

    @property
    def threads(self) -> int:
        """Of its kernel, at most; 0: it has none."""
        return self._kernel.decoder.threads if self._kernel else 0

    @property
    def threads_at_work(self) -> int:
        """Beside the steps, now."""
        decoding = self._decoding
        return 0 if decoding is None or decoding.query() else decoding.threads

    def wait(self) -> None:
        """Until nothing is decoded beside the steps."""
        if self._decoding:
            self._decoding.wait()

    def seconds(self) -> float:
        """Seconds of a frame in a small chunk: the better of two runs."""
        seconds: list[float] = []
        self.run_chunk(1, self.threads)  # the first one loads the kernel
        while len(seconds) < 2 and sum(seconds) < LONG:
            begun = perf_counter()
            self.run_chunk(TIMED_FRAMES, self.threads)
            seconds.append(perf_counter() - begun)
        return min(seconds) / TIMED_FRAMES

    def run_chunk(self, frames: int, threads: int) -> None:
        """A chunk that nobody hears, on the padding row and at most so many threads."""
        row = [self._padding_row]
        codes = torch.zeros(1, frames, CODEBOOKS, dtype=torch.int16, device=self._device)
        with self._padding:
            self._limit_threads(threads)
            self._stepper(row, codes, (frames,))
            self._stepper.reset(row)

    def _limit_threads(self, threads: int) -> None:
        if self._kernel is not None:
            self._kernel.decoder.team.most = threads

    def open(self, admitted: Sequence[tuple[int, ReferencePrompt | None]]) -> None:
        """Start streams of slots, from silence or from the state after their references."""
        silent = [slot for slot, reference in admitted if reference is None]
        if self._decoding and not self._decoding.slots.isdisjoint(slot for slot, _ in admitted):
            self.wait()
        with self._on_stream():
            if silent:
                self._stepper.reset(silent)
            for slot, reference in admitted:
                if reference is not None:
                    self._state.restore(
                        to_device([slot], self._device), self._reference_state(reference)
                    )

    def decode(self, work: Sequence[Due], beside: int = 0) -> StepAudio:
        """On a CPU beside the step, on so many threads; 0: the step waits for it."""
        if work:
            self.wait()  # so that no more than one step's audio is due, in order
        if self._kernel is not None and beside:
            return self._decode_beside(work, beside) if work else StepAudio(follows=True)
        if not work:
            return StepAudio()
        self._limit_threads(self.threads)
        for _, codes, _ in work:
            if self._stream is not None:
                codes.record_stream(self._stream)
        with self._on_stream():
            return StepAudio(self._decode(work), self._record_event())

    def _decode_beside(self, work: Sequence[Due], threads: int) -> StepAudio:
        self._thread = self._thread or ThreadPoolExecutor(1, "codec")
        self._limit_threads(threads := min(threads, self.threads))
        slots = [slot for some, _, _ in work for slot in some]
        self._decoding = done = Decoding(self._thread, slots, lambda: self._decode(work), threads)
        return StepAudio(done.batches, done, follows=True, seconds=lambda: done.seconds)

    def _decode(self, work: Sequence[Due]) -> Batches:
        return [
            (slots, [self._hop * frames for frames in counts], sound)
            for slots, counts, sound in self._stepper(*_merge(work))
        ]

    @contextmanager
    def _on_stream(self) -> Iterator[None]:
        """Run on the codec's CUDA stream, after all work launched so far."""
        if self._stream is None:
            yield
            return
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            yield

    def _record_event(self) -> torch.cuda.Event | None:
        if self._stream is None:
            return None
        event = torch.cuda.Event()
        event.record(self._stream)
        return event

    def _reference_state(self, reference: ReferencePrompt) -> CodecState:
        return self._cache.get(reference.key, lambda: self._decode_reference(reference), _size)

    def _decode_reference(self, reference: ReferencePrompt) -> CodecState:
        """The state after a reference, decoded on all threads: no step runs meanwhile."""
        row = to_device([self._padding_row], self._device)
        self.wait()
        with self._padding:
            self._limit_threads(self.threads)
            self._state.reset(row)
            self._stepper.prime(self._padding_row, to_device(reference.codes, self._device))
            return self._state.snapshot(row)


def _merge(work: Sequence[Due]) -> Due:
    """Merge into one batch, the longest rows first."""
    slots = [slot for some, _, _ in work for slot in some]
    counts = [frames for _, _, lengths in work for frames in lengths]
    codes = _concatenate([codes for _, codes, _ in work], max(counts))
    order = sorted(range(len(slots)), key=lambda at: -counts[at])
    if order == list(range(len(slots))):
        return slots, codes, counts
    codes = codes[to_device(order, codes.device)]
    return [slots[at] for at in order], codes, [counts[at] for at in order]


def _concatenate(codes: Sequence[Tensor], longest: int) -> Tensor:
    """Concatenate codes [B, frames, 16], padded to the longest."""
    if len(codes) == 1:
        return codes[0]
    return torch.cat([F.pad(each, (0, 0, 0, longest - each.shape[1])) for each in codes])


def _size(state: CodecState) -> int:
    return sum(tensor.nbytes for tensor in state.tensors)
