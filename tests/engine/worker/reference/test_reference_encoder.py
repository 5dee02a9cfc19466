"""The shelf: what is kept, and that it stays within its bounds. Listeners: each recording is
listened to once, behind the steps, and what is known waits for nobody."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.types import Waveform
from engine.worker.reference import reference_encoder
from engine.worker.reference.reference_encoder import LRUCache, ReferenceEncoder
from tests.conftest import golden_folders
from tests.engine.worker.conftest import Workers

PATIENCE = 60  # seconds


@given(keys=st.lists(st.integers(0, 6), max_size=40), room=st.integers(1, 5))
def test_a_shelf_keeps_the_latest_within_its_bounds(keys: list[int], room: int) -> None:
    """Against a plain model: the last `room` different keys are there, the others are made."""
    shelf: LRUCache[int, str] = LRUCache(10 * room)
    recent: list[int] = []
    for key in keys:
        made: list[int] = []
        value = shelf.get(
            key, lambda key=key, made=made: made.append(key) or f"v{key}", lambda _: 10
        )
        assert value == f"v{key}"
        assert made == ([] if key in recent else [key])
        recent = [*(other for other in recent if other != key), key][-room:]
        assert shelf.bytes == 10 * len(recent)


def test_what_is_larger_than_the_shelf_is_still_given() -> None:
    shelf: LRUCache[str, str] = LRUCache(5)
    assert shelf.get("a", lambda: "big", lambda _: 50) == "big"
    assert shelf.get("b", lambda: "small", lambda _: 1) == "small"
    assert shelf.bytes == 1


def test_listening_to_silence_leaves_nothing_behind(workers: Workers) -> None:
    folder = next(folder for folder in golden_folders() if folder.name.startswith("base"))
    worker = workers(folder)
    listener, speaker = worker._load_encoders(next(iter(worker._checkpoints)))
    before = listener._codes.bytes, listener._vectors.bytes
    listener.warm(speaker)
    assert (listener._codes.bytes, listener._vectors.bytes) == before


class Ears:
    """Ears that only count, and wait when they are told to."""

    def __init__(self) -> None:
        self.heard: list[int] = []  # samples of each recording that was encoded
        self.together: list[int] = []
        self.niceness: list[int] = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, audios: Sequence[Waveform]) -> list[torch.Tensor]:
        self.heard += [len(audio) for audio in audios]
        self.together.append(len(audios))
        self.niceness.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        assert self.go.wait(PATIENCE)
        if any(len(audio) == 13 for audio in audios):
            raise RuntimeError("unlucky")
        return [torch.full((1, 16), len(audio)) for audio in audios]

    def warm(self) -> None:
        raise AssertionError("nobody asked for it")


class Deaf:
    def __call__(self, audios: Sequence[Waveform]) -> list[torch.Tensor]:
        return [torch.zeros(1)] * len(audios)

    def warm(self) -> None: ...


def listening() -> tuple[Ears, ReferenceEncoder]:
    ears = Ears()
    return ears, ReferenceEncoder(ears, 1 << 20, 0.0)


def codes(listener: ReferenceEncoder, audio: Waveform) -> int:
    made = listener.clone("talker", Deaf(), audio, "words").codes
    assert made is not None
    return int(made[0, 0])


@settings(deadline=None)  # a dozen threads, one of them behind the others
@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=12))
def test_many_at_once_are_each_listened_to_once(lengths: list[int]) -> None:
    ears, listener = listening()
    waves = [np.ones(length, np.float32) for length in lengths]
    with ThreadPoolExecutor(len(waves)) as callers:
        made = list(callers.map(lambda wave: codes(listener, wave), waves))
    assert made == lengths
    assert sorted(ears.heard) == sorted(set(lengths))


def test_what_is_known_waits_for_nobody() -> None:
    ears, listener = listening()
    known, fresh = np.ones(5, np.float32), np.ones(6, np.float32)
    codes(listener, known)
    ears.go.clear()
    with ThreadPoolExecutor(2) as callers:
        slow = callers.submit(codes, listener, fresh)
        assert callers.submit(codes, listener, known).result(PATIENCE) == 5
        assert not slow.done()
        ears.go.set()
        assert slow.result(PATIENCE) == 6


def test_on_a_gpu_those_that_wait_are_listened_to_together() -> None:
    """One that fails is told so alone; who asks for what is under way already waits for that."""
    ears, listener = listening()
    listener._stream = SideBySide()  # type: ignore[assignment]
    lengths = [1, 2, 13, 4, 5, 2, 7]

    def code(length: int) -> int:
        audio = np.ones(length, np.float32)
        told = partial(reference_encoder._codes, 1)
        return int(listener._once(listener._codes, str(length), ears, audio, told)[0, 0])

    ears.go.clear()
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(lengths) + 1) as callers:
        patch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
        first = callers.submit(code, 9)
        until(lambda: ears.heard == [9])
        asked = [callers.submit(code, length) for length in lengths]
        until(lambda: len(listener._asks) == len({*lengths, 9}))
        ears.go.set()
        assert first.result(PATIENCE) == 9
        for length, each in zip(lengths, asked, strict=True):
            if length == 13:
                assert "unlucky" in str(each.exception(PATIENCE))
            else:
                assert each.result(PATIENCE) == length
    assert ears.together == [1, 6, *[1] * 6]  # the six fail together, then each is heard alone


class SideBySide:
    """Stands for a stream of a GPU."""


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_recording_that_fails_is_its_caller_s_own() -> None:
    _, listener = listening()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="unlucky"):
            codes(listener, np.ones(13, np.float32))
    assert codes(listener, np.ones(4, np.float32)) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_recordings_stand_behind_the_steps() -> None:
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    if own == 19:
        pytest.skip("nothing is further behind")
    ears, listener = listening()
    codes(listener, np.ones(4, np.float32))
    assert ears.niceness[0] > own
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


def test_a_listener_that_is_given_up_takes_its_thread_along() -> None:
    _, listener = listening()
    codes(listener, np.ones(4, np.float32))
    (thread,) = listener._thread._threads
    del listener
    gc.collect()
    thread.join(PATIENCE)
    assert not thread.is_alive()
