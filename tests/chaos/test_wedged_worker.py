"""A stuck real worker is replaced by one from the same files, with the same speech."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import Codes, Engine, EngineClosed, Preset, SpeechRequest, open_engine
from engine.plan import StepHandle, StepPlan
from tests.conftest import GOLDEN

FOLDER: Path = GOLDEN / "custom_voice-1b7"


def codes(engine: Engine, request: SpeechRequest) -> Codes:
    """All frames of an answer; its sound depends by a bit on the pieces it was decoded in."""
    return np.concatenate([chunk.codes for chunk in engine.submit(request)])


@pytest.mark.slow
def test_a_worker_built_anew_speaks_the_same_codes() -> None:
    free = threading.Event()
    with open_engine([FOLDER], "cpu", max_num_seqs=2, max_seq_len=256, step_timeout=3.0) as engine:
        speaker = next(iter(engine.capabilities().values())).speakers[0]
        request = SpeechRequest("Hello there.", Preset(speaker), seed=5, max_frames=12)
        right = codes(engine, request)
        old = engine._worker
        launch = old.launch

        def wedged(plan: StepPlan) -> StepHandle:
            free.wait(60)
            return launch(plan)

        old.launch = wedged  # type: ignore[method-assign]
        with pytest.raises(EngineClosed, match="got stuck"):
            engine.submit(request).collect()
        deadline = time.monotonic() + 60
        while not (engine.alive and engine.stats().talkers):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert engine._worker is not old
        np.testing.assert_array_equal(codes(engine, request), right)
        free.set()


@pytest.mark.slow
@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("x")])
def test_a_step_that_raises_costs_only_those_who_spoke(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with open_engine([FOLDER], "cpu", max_num_seqs=2, max_seq_len=256) as engine:
        speaker = next(iter(engine.capabilities().values())).speakers[0]
        request = SpeechRequest("Hello there.", Preset(speaker), seed=5, max_frames=12)
        right = codes(engine, request)
        worker = engine._worker
        step, left = worker._step, [1]  # type: ignore[attr-defined]

        def failing(plan: StepPlan) -> object:
            left[0] -= 1
            if left[0] >= 0:
                raise error
            return step(plan)

        monkeypatch.setattr(worker, "_step", failing)
        with pytest.raises(Exception, match=r"memory|Try again"):
            engine.submit(request).collect()
        np.testing.assert_array_equal(codes(engine, request), right)
        assert engine.stats().failed_steps == 1
