"""Who has left is counted no more, although a step still holds their ends up."""

from __future__ import annotations

import threading

import pytest

from engine import Busy, EngineSettings, Preset, SpeechRequest
from engine.plan import StepPlan
from engine.testing import FakeEngine

ASKED = SpeechRequest("Hello there, all of you.", Preset("ryan"))


def test_who_has_left_is_ahead_of_nobody() -> None:
    held, free = threading.Event(), threading.Event()

    def hold(plan: StepPlan) -> None:
        held.set()
        free.wait(60)

    with FakeEngine(settings=EngineSettings(max_num_seqs=1, max_waiting=2)) as engine:
        engine.submit(ASKED).collect()  # the model is loaded
        engine.worker.fault = hold
        streams = [engine.submit(ASKED)]
        assert held.wait(60)
        streams += [engine.submit(ASKED) for _ in range(2)]
        with pytest.raises(Busy):
            engine.submit(ASKED)
        for each in streams:
            each.cancel()
        late = engine.submit(ASKED)  # the step has not returned
        free.set()
        assert len(late.collect())
