"""The LRU cache keeps the latest values within its limit. The reference encoder encodes each
recording once, at a lower priority than the steps, and returns cached results at once."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.types import Waveform
from engine.worker.lru_cache import LRUCache
from engine.worker.reference import reference_encoder
from engine.worker.reference.reference_encoder import ReferenceEncoder
from tests.conftest import golden_folders
from tests.engine.worker.conftest import Workers
from tests.support.serving import wait_until

PATIENCE = 60  # seconds


@given(keys=st.lists(st.integers(0, 6), max_size=40), room=st.integers(1, 5))
def test_a_cache_keeps_the_latest_within_its_limit(keys: list[int], room: int) -> None:
    """A simple model says which: the last `room` keys are cached, others are computed."""
    cache: LRUCache[int, str] = LRUCache(10 * room)
    recent: list[int] = []
    for key in keys:
        made: list[int] = []
        value = cache.get(
            key, lambda key=key, made=made: made.append(key) or f"v{key}", lambda _: 10
        )
        assert value == f"v{key}"
        assert made == ([] if key in recent else [key])
        recent = [*(other for other in recent if other != key), key][-room:]
        assert cache.size == 10 * len(recent)


def test_a_value_larger_than_the_cache_is_still_returned() -> None:
    cache: LRUCache[str, str] = LRUCache(5)
    assert cache.get("a", lambda: "big", lambda _: 50) == "big"
    assert cache.get("b", lambda: "small", lambda _: 1) == "small"
    assert cache.size == 1


def test_warming_up_caches_nothing(workers: Workers) -> None:
    folder = next(folder for folder in golden_folders() if folder.name.startswith("base"))
    worker = workers(folder)
    references, speaker = worker._load_encoders(next(iter(worker._checkpoints)))
    before = references._codes.size, references._vectors.size
    references.warm(speaker)
    assert (references._codes.size, references._vectors.size) == before


class FakeEncoder:
    """Counts the recordings, and waits until `go` is set."""

    def __init__(self) -> None:
        self.encoded: list[int] = []  # samples of each recording that was encoded
        self.batches: list[int] = []
        self.niceness: list[int] = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, audios: Sequence[Waveform]) -> list[torch.Tensor]:
        self.encoded += [len(audio) for audio in audios]
        self.batches.append(len(audios))
        self.niceness.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        assert self.go.wait(PATIENCE)
        if any(len(audio) == 13 for audio in audios):
            raise RuntimeError("unlucky")
        return [torch.full((1, 16), len(audio)) for audio in audios]

    def warm(self) -> None:
        raise AssertionError("not warmed")


class FakeSpeaker:
    def __call__(self, audios: Sequence[Waveform]) -> list[torch.Tensor]:
        return [torch.zeros(1)] * len(audios)

    def warm(self) -> None: ...


def fake_encoders() -> tuple[FakeEncoder, ReferenceEncoder]:
    encoder = FakeEncoder()
    return encoder, ReferenceEncoder(encoder, 1 << 20, 0.0)


def codes(references: ReferenceEncoder, audio: Waveform) -> int:
    made = references.clone("talker", FakeSpeaker(), audio, "words").codes
    assert made is not None
    return int(made[0, 0])


@settings(deadline=None)  # a dozen threads, one of them behind the others
@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=12))
def test_concurrent_recordings_are_each_encoded_once(lengths: list[int]) -> None:
    encoder, references = fake_encoders()
    waves = [np.ones(length, np.float32) for length in lengths]
    with ThreadPoolExecutor(len(waves)) as callers:
        made = list(callers.map(lambda wave: codes(references, wave), waves))
    assert made == lengths
    assert sorted(encoder.encoded) == sorted(set(lengths))


def test_a_cached_result_does_not_wait() -> None:
    encoder, references = fake_encoders()
    known, fresh = np.ones(5, np.float32), np.ones(6, np.float32)
    codes(references, known)
    encoder.go.clear()
    with ThreadPoolExecutor(2) as callers:
        slow = callers.submit(codes, references, fresh)
        assert callers.submit(codes, references, known).result(PATIENCE) == 5
        assert not slow.done()
        encoder.go.set()
        assert slow.result(PATIENCE) == 6


def test_on_a_gpu_waiting_recordings_are_encoded_in_one_batch() -> None:
    """A failure reaches its caller alone; equal recordings share a job."""
    encoder, references = fake_encoders()
    references._stream = FakeStream()  # type: ignore[assignment]
    lengths = [1, 2, 13, 4, 5, 2, 7]

    def code(length: int) -> int:
        audio = np.ones(length, np.float32)
        convert = partial(reference_encoder._codes, 1)
        return int(
            references._encode_once(references._codes, str(length), encoder, audio, convert)[0, 0]
        )

    encoder.go.clear()
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(lengths) + 1) as callers:
        patch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
        first = callers.submit(code, 9)
        wait_until(lambda: encoder.encoded == [9], PATIENCE)
        submitted = [callers.submit(code, length) for length in lengths]
        wait_until(lambda: len(references._jobs) == len({*lengths, 9}), PATIENCE)
        encoder.go.set()
        assert first.result(PATIENCE) == 9
        for length, each in zip(lengths, submitted, strict=True):
            if length == 13:
                assert "unlucky" in str(each.exception(PATIENCE))
            else:
                assert each.result(PATIENCE) == length
    assert encoder.batches == [1, 6, *[1] * 6]  # the six fail in one batch, then run alone


class FakeStream:
    """Stands for a CUDA stream."""


def test_a_failed_recording_fails_for_its_caller_alone() -> None:
    _, references = fake_encoders()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="unlucky"):
            codes(references, np.ones(13, np.float32))
    assert codes(references, np.ones(4, np.float32)) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority")
def test_encoding_has_a_lower_priority_than_the_steps() -> None:
    priority = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    if priority == 19:
        pytest.skip("the priority is the lowest")
    encoder, references = fake_encoders()
    codes(references, np.ones(4, np.float32))
    assert encoder.niceness[0] > priority
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == priority


def test_a_deleted_encoder_ends_its_thread() -> None:
    _, references = fake_encoders()
    codes(references, np.ones(4, np.float32))
    (thread,) = references._thread._threads
    del references
    gc.collect()
    thread.join(PATIENCE)
    assert not thread.is_alive()
