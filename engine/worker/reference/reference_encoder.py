"""Encodes reference audio into voices, and caches the results.

Encoding runs in one thread beside the engine's steps, with lower priority where it shares cores
with them. Equal recordings are encoded once; the cache drops the least recently used. On a GPU
waiting recordings are encoded in one batch; on CPUs that was no gain (docs/experiments).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.threads import lower_thread_priority
from engine.types import FRAME_SAMPLES, SAMPLE_RATE, Clone, Codes, Vector, Waveform
from engine.worker.lru_cache import Key, LRUCache, Value
from engine.worker.reference.encoder_graphs import ROWS, EncoderRunner


@dataclass(eq=False)
class Job:
    """A recording that waits for a network."""

    network: EncoderRunner
    audio: Waveform
    store: Callable[[Tensor], Any]  # stores the network's output in a cache
    cached: Callable[[], Any]  # the cached result, or None
    result: Future[Any] = field(default_factory=Future)
    started: bool = False


class ReferenceEncoder:
    """Makes clones from recordings.

    `stream`: a GPU's, where the thread only launches, at full priority, since launches of steps
    would have to wait for it.
    """

    def __init__(
        self,
        encoder: EncoderRunner,
        limit: int,
        silence: float,
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        self._encoder, self._stream = encoder, stream
        self._silence = round(silence * SAMPLE_RATE)
        self._codes: LRUCache[str, Codes] = LRUCache(limit)
        self._vectors: LRUCache[tuple[str, str], Vector] = LRUCache(limit)
        priority = None if stream else lower_thread_priority
        self._thread = ThreadPoolExecutor(1, "reference-encoder", priority)
        self._jobs: dict[Hashable, Job] = {}  # pending or running
        self._lock = threading.Lock()

    def clone(self, talker: str, speaker: EncoderRunner, audio: Waveform, transcript: str) -> Clone:
        """The voice of a checked recording; codes only with a transcript."""
        digest = hashlib.sha256(np.ascontiguousarray(audio, np.float32).tobytes()).hexdigest()
        vector = self._encode_once(self._vectors, (talker, digest), speaker, audio, _vector)
        if not transcript:
            return Clone(vector)
        padded = self._with_silence(audio)
        convert = partial(_codes, -(-len(padded) // FRAME_SAMPLES))
        codes = self._encode_once(self._codes, digest, self._encoder, padded, convert)
        return Clone(vector, transcript, codes)

    def _with_silence(self, audio: Waveform) -> Waveform:
        """The recording, silence, and the rest of the last frame.

        Without silence its last word is repeated at the start of what is said; of a last frame that
        is not whole the encoder makes a sound, and the talker goes on with that.
        """
        if not self._silence:
            return audio
        silence = self._silence + -(len(audio) + self._silence) % FRAME_SAMPLES
        return np.pad(audio, (0, silence))

    def warm(self, speaker: EncoderRunner) -> None:
        """Warm the networks up before the first recording."""
        for network in (speaker, self._encoder):
            self._thread.submit(self._warm, network).result()

    def _encode_once(
        self,
        cache: LRUCache[Key, Value],
        key: Key,
        network: EncoderRunner,
        audio: Waveform,
        convert: Callable[[Tensor], Value],
    ) -> Value:
        """A cached result is returned at once; equal recordings wait for the same job."""
        size = attrgetter("nbytes")

        def store(output: Tensor) -> Value:
            return cache.get(key, lambda: convert(output), size)

        job = Job(network, audio, store, partial(cache.peek, key))
        return cache.get(key, lambda: self._submit((id(cache), key), job).result(), size)

    def _submit(self, key: Hashable, job: Job) -> Future[Any]:
        with self._lock:
            known = self._jobs.setdefault(key, job)
            if known is job:
                try:
                    self._thread.submit(self._run_next)
                except RuntimeError:  # the interpreter is shutting down
                    del self._jobs[key]
                    raise
        return known.result

    def _run_next(self) -> None:
        """Run the oldest job, on a GPU together with others for the same network."""
        if jobs := self._next_batch():
            try:
                if missing := [job for job in jobs.values() if not _finish_if_cached(job)]:
                    self._finish(missing)
            finally:
                with self._lock:
                    for key in jobs:
                        del self._jobs[key]
                for job in jobs.values():
                    if not job.result.done():
                        job.result.set_exception(RuntimeError("The encoder was closed."))

    def _next_batch(self) -> dict[Hashable, Job]:
        with self._lock:
            waiting = {key: job for key, job in self._jobs.items() if not job.started}
            networks = [job.network for job in waiting.values()]
            alike = ((key, job) for key, job in waiting.items() if job.network is networks[0])
            batch = dict(islice(alike, ROWS[-1] if self._stream else 1))
            for job in batch.values():
                job.started = True
        return batch

    def _finish(self, jobs: Sequence[Job]) -> None:
        """Set the jobs' results. If a batch fails, its jobs run one by one."""
        try:
            for job, result in zip(jobs, self._encode(jobs), strict=True):
                job.result.set_result(result)
            return
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].result.set_exception(error)
                return
        for job in jobs:
            self._finish([job])

    def _encode(self, jobs: Sequence[Job]) -> list[Any]:
        with self._on_stream():
            outputs = jobs[0].network([job.audio for job in jobs])
            return [job.store(output) for job, output in zip(jobs, outputs, strict=True)]

    def _warm(self, network: EncoderRunner) -> None:
        with self._on_stream():
            network.warm()

    @contextmanager
    def _on_stream(self) -> Iterator[None]:
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            yield


def _finish_if_cached(job: Job) -> bool:
    """Another job may have stored the result since this one was submitted."""
    result = job.cached()
    if result is not None:
        job.result.set_result(result)
    return result is not None


def _vector(output: Tensor) -> Vector:
    return output.float().cpu().numpy()


def _codes(frames: int, output: Tensor) -> Codes:
    return output[:frames].cpu().numpy().astype(np.int64)
