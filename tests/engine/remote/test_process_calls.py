"""Calls into the engine's process while the engine drains."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np
import pytest

from engine import Clone, EngineClosed, Preset, SpeechRequest, Waveform
from engine.plan import Checkpoint
from engine.remote.process import EngineProcess, process_engine
from engine.testing import Costs, FakeCheckpoint, FakeEngine, fake_capabilities
from tests.support.serving import wait_until

if sys.platform == "win32":
    pytest.skip("a process gets its socket by number, as on POSIX", allow_module_level=True)


def slow_to_clone(checkpoints: Mapping[str, Checkpoint]) -> FakeEngine:
    engine = FakeEngine([FakeCheckpoint(fake_capabilities(clone=True))], costs=Costs(step=0.01))
    encode = engine.worker.encode

    def encode_slowly(talker: str, audio: Waveform, transcript: str) -> Clone:
        time.sleep(1.0)
        return encode(talker, audio, transcript)

    engine.worker.encode = encode_slowly  # type: ignore[method-assign]
    return engine


def test_a_clone_that_is_being_made_is_answered_while_requests_end() -> None:
    audio = np.ones(24_000, np.float32)
    with process_engine(slow_to_clone) as engine, ThreadPoolExecutor(2) as threads:
        stream = engine.submit(SpeechRequest("x" * 300, Preset("ryan")))
        next(stream)
        made = threads.submit(engine.clone, audio)
        wait_until(lambda: cast(EngineProcess, engine.transport)._calls)  # it is being sent
        drained = threads.submit(engine.drain, 60.0)
        assert len(made.result().vector)
        with pytest.raises(EngineClosed):
            engine.clone(audio)
        stream.cancel()
        assert drained.result()
