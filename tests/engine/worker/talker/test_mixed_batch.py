"""Mixed batches give the same results as prefill and decode one after the other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import engine.worker.model_runner as runner_module
import engine.worker.talker.mixed_batch as mixed_batch_module
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.plan import Admit, Prefill
from engine.worker.loading.model_loader import load_talker
from engine.worker.model_runner import ModelRunner
from engine.worker.talker.decode_step import FrameStep
from engine.worker.talker.mixed_batch import MixedBatch
from engine.worker.talker.talker_forward import RowInputs
from tests.engine.worker.driver import DRAWN, GREEDY
from tests.engine.worker.fake_graphs import fake_capture
from tests.support.golden_cases import speech_cases

CASES = [case for case in speech_cases() if case.folder == speech_cases()[0].folder]
SLOTS, POSITIONS, FRAMES = 6, 300, 12
CPU = torch.device("cpu")


@dataclass
class PlainTalk:
    """The interface of the kernels, in plain operations."""

    step: FrameStep
    passes: int = 0

    def __call__(self, x: Tensor, index: Tensor, position: Tensor) -> Tensor:
        return self.prefill(x[:, None], index, position[:, None])[:, 0]

    def prefill(self, x: Tensor, index: Tensor, positions: Tensor) -> Tensor:
        self.step.talk = None
        try:
            return self.step._alone(x, index, positions)
        finally:
            self.step.talk = self  # type: ignore[assignment]

    def mixed(self, frames: RowInputs, prompts: RowInputs) -> tuple[Tensor, Tensor]:
        self.passes += 1
        return self(*frames), self.prefill(*prompts)


@pytest.fixture
def runners() -> Iterator[tuple[ModelRunner, ModelRunner, PlainTalk]]:
    """A runner that prefills and decodes in turn, and one that does both in one pass."""
    checkpoint = LocalCheckpoint(CASES[0].folder)
    talker = load_talker(checkpoint.folder, CPU, torch.float64)
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        plain = ModelRunner(talker, checkpoint.ids, SLOTS, POSITIONS, CPU, torch.float64)
        patch.setattr(runner_module, "graph_capture", lambda device: fake_capture)
        patch.setattr(mixed_batch_module, "FUSED_ROWS", 1)
        beside = ModelRunner(talker, checkpoint.ids, SLOTS, POSITIONS, CPU, torch.float64)
        beside.step.talk = talk = PlainTalk(beside.step)  # type: ignore[assignment]
        beside._mixed = MixedBatch(beside.step, beside.decoder, beside.prefiller, fake_capture)  # type: ignore[arg-type]
        yield plain, beside, talk


def admit(runner: ModelRunner, row: int, number: int) -> Prefill:
    case = CASES[number % len(CASES)]
    prompt, draw = case.prompt(LocalCheckpoint(case.folder)), (DRAWN, GREEDY)[number % 2]
    runner.release(row)
    runner.admit([(row, Admit(row, case.folder.name, prompt, draw, number, 150))])
    return Prefill(row, 0, len(prompt))


def spoken(runner: ModelRunner, plan: list[list[int]]) -> list[Tensor]:
    """Every step makes a frame of all that are filled, and fills some more."""
    made, filled, number = [], [], 0
    for rows in plan:
        due = []
        for row in rows:
            due.append((row, admit(runner, row, number)))
            number += 1
        running = [row for row in filled if row not in rows]
        step = runner.start_step(due, running)
        made += [step.advance().codes.clone()] if step else []
        filled = sorted({*running, *rows})
    return made


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(plan=st.lists(st.lists(st.integers(0, SLOTS - 1), max_size=2, unique=True), max_size=FRAMES))
@torch.inference_mode()
def test_side_by_side_is_one_after_the_other(
    runners: tuple[ModelRunner, ModelRunner, PlainTalk], plan: list[list[int]]
) -> None:
    plain, beside, talk = runners
    before, plan = talk.passes, [[0, 1], [2], [], [3], *plan]
    for runner in (plain, beside):
        runner.clear()
    for one, other in zip(spoken(plain, plan), spoken(beside, plan), strict=True):
        assert torch.equal(one, other)
    assert talk.passes - before >= 2
    for name in ("hidden", "code", "position", "frame", "seen"):
        apart, other = (getattr(runner.slots, name)[:4] for runner in (plain, beside))
        torch.testing.assert_close(other, apart, rtol=0, atol=1e-9)


@torch.inference_mode()
def test_what_is_warm_is_recorded_before_anybody_speaks(
    runners: tuple[ModelRunner, ModelRunner, PlainTalk], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, beside, talk = runners
    together = beside._mixed
    assert together is not None
    monkeypatch.setattr(beside.decoder, "timings", lambda usual: {})
    monkeypatch.setattr(sys.modules[__name__], "GREEDY", DRAWN)
    beside.clear()
    beside.warm()
    passes = talk.passes
    known = len(together._graphs)
    spoken(beside, [[0, 1], [2], [3], [4, 5], []])
    assert len(together._graphs) == known
    assert talk.passes > passes
    monkeypatch.undo()
    passes = talk.passes
    spoken(beside, [[0], [1], []])  # the second is greedy: one after the other
    assert talk.passes == passes
    assert len(together._graphs) == known


@torch.inference_mode()
def test_what_is_filled_is_not_stepped_beside_itself(
    runners: tuple[ModelRunner, ModelRunner, PlainTalk],
) -> None:
    _, beside, talk = runners
    beside.clear()
    beside.start_step([(row, admit(beside, row, row)) for row in range(4)], [])
    before = talk.passes
    for row in (4, 5):
        step = beside.start_step([(row, admit(beside, row, row))], [0, 1, 2, 3, 4])
        assert step is not None
        step.advance()
        assert talk.passes == before + (row == 5)
