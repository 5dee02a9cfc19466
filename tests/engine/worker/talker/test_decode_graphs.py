"""Replayed steps make the codes of plain ones, whatever the bucket, the padding and the order.

Recordings are played on the CPU here. Graphs themselves are tested where there is a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import engine.worker.codec.codec_graphs as sounding_module
import engine.worker.model_runner as runner_module
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.errors import StepFailed
from engine.plan import Admit, CodecDecode, Prefill, ResolvedSampling
from engine.worker.cuda_graphs import GraphRunner
from engine.worker.loading.model_loader import load_talker
from engine.worker.model_runner import ModelRunner
from engine.worker.state.row_metadata import BatchBounds, RowMetadata
from engine.worker.state.sampling import candidates
from engine.worker.talker.decode_graphs import BUCKETS, EagerDecoder, GraphDecoder
from engine.worker.talker.prefill import GraphPrefiller
from engine.worker.worker import TorchWorker
from tests.engine.worker.driver import (
    DRAWN,
    GREEDY,
    Voice,
    admission,
    advance,
    begin,
    running,
    speak,
    step,
    synchronize,
)
from tests.engine.worker.fake_graphs import fake_capture
from tests.support.golden_cases import Case, speech_cases

CASE = speech_cases()[0]
CASES = [case for case in speech_cases() if case.folder == CASE.folder]
SLOTS, POSITIONS = 7, 300
quick = settings(max_examples=8, deadline=None)


@pytest.fixture(scope="module")
def runners() -> Iterator[tuple[ModelRunner, ModelRunner]]:
    """A runner of plain steps and one of replayed steps."""
    checkpoint = LocalCheckpoint(CASE.folder)
    talker = load_talker(CASE.folder, torch.device("cpu"), torch.float64)
    device = torch.device("cpu")
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        plain = ModelRunner(talker, checkpoint.ids, SLOTS, POSITIONS, device, torch.float64)
        patch.setattr(runner_module, "graph_capture", lambda device: fake_capture)
        replayed = ModelRunner(talker, checkpoint.ids, SLOTS, POSITIONS, device, torch.float64)
        assert isinstance(plain.decoder, EagerDecoder)
        assert isinstance(replayed.prefiller, GraphPrefiller)
        yield plain, replayed


def admit(
    runner: ModelRunner, row: int, draw: ResolvedSampling, seed: int, case: Case = CASE
) -> Prefill:
    """Admit a prompt to a slot; returns all of it, to be filled in."""
    prompt = case.prompt(LocalCheckpoint(case.folder))
    runner.release(row)
    runner.admit([(row, Admit(row, case.folder.name, prompt, draw, seed, 150))])
    return Prefill(row, 0, len(prompt))


def fill(runner: ModelRunner, row: int, draw: ResolvedSampling, seed: int) -> None:
    runner.prefill([(row, admit(runner, row, draw, seed))])


def assert_same(
    runners: tuple[ModelRunner, ModelRunner], rows: Sequence[int] = range(SLOTS)
) -> None:
    """Both runners remember the same of these rows."""
    plain, replayed = (runner.slots for runner in runners)
    for name in ("hidden", "code", "position", "frame", "seen", "codes"):
        eager, other = (getattr(slots, name)[list(rows)] for slots in (plain, replayed))
        torch.testing.assert_close(other, eager, rtol=0, atol=1e-9)
    for row in rows:
        upto = int(plain.position[row])
        for eager, other in zip(plain.cache.tensors, replayed.cache.tensors, strict=True):
            torch.testing.assert_close(other[:, row, :, :upto], eager[:, row, :, :upto])


@quick
@given(
    cases=st.lists(st.sampled_from(CASES), min_size=1, max_size=SLOTS),
    cut=st.sampled_from([0, 5]),
)
def test_prompts_filled_by_replay(
    runners: tuple[ModelRunner, ModelRunner], cases: list[Case], cut: int
) -> None:
    """Any company of prompts, whole or in two pieces."""
    with torch.inference_mode():
        for runner in runners:
            due = [admit(runner, row, DRAWN, row, case) for row, case in enumerate(cases)]
            if cut:
                runner.prefill((piece.slot, replace(piece, stop=cut)) for piece in due)
            runner.prefill((piece.slot, replace(piece, start=cut)) for piece in due)
        assert_same(runners, range(len(cases)))


@quick
@given(
    groups=st.lists(st.sets(st.integers(0, SLOTS - 1), min_size=1), min_size=1, max_size=8),
    drawn=st.lists(st.booleans(), min_size=SLOTS, max_size=SLOTS),
    seed=st.integers(0, 9),
)
def test_replayed_is_plain(
    runners: tuple[ModelRunner, ModelRunner], groups: list[set[int]], drawn: list[bool], seed: int
) -> None:
    with torch.inference_mode():
        for runner in runners:
            for row in range(SLOTS):
                fill(runner, row, DRAWN if drawn[row] else GREEDY, seed + row)
        for rows in groups:
            plain, replayed = (runner.frames(list(rows)).codes.clone() for runner in runners)
            torch.testing.assert_close(replayed, plain, rtol=0, atol=0)
        assert_same(runners)


def test_timing_leaves_no_trace(runners: tuple[ModelRunner, ModelRunner]) -> None:
    _, runner = runners
    assert isinstance(runner.decoder, GraphDecoder)
    with torch.inference_mode():
        for row in range(3):
            fill(runner, row, DRAWN, row)
        before = [kept.clone() for kept in (runner.slots.hidden[:3], runner.slots.position[:3])]
        timings = runner.decoder.timings(BatchBounds(1, None, None))
    assert set(timings) == {1, runner.slots.padding_row}
    assert min(timings.values()) > 0
    for kept, was in zip((runner.slots.hidden[:3], runner.slots.position[:3]), before, strict=True):
        assert torch.equal(kept, was)


def test_the_spare_row_stays_where_it_is(runners: tuple[ModelRunner, ModelRunner]) -> None:
    _, runner = runners
    with torch.inference_mode():
        for row in range(5):
            fill(runner, row, DRAWN, row)
        for _ in range(5):
            runner.frames([0, 1, 2, 3, 4])  # six rows in the bucket
        assert runner.slots.frame[runner.slots.padding_row] == 0
        assert runner.slots.position[runner.slots.padding_row] == 0


def test_what_is_warm_is_recorded_before_anybody_speaks(
    runners: tuple[ModelRunner, ModelRunner],
) -> None:
    _, runner = runners
    with torch.inference_mode():
        runner.warm()
        makers = runner.decoder, runner.prefiller, runner._open, runner._append
        graphs = [maker._graphs for maker in makers]  # type: ignore[union-attr]
        known = [len(each) for each in graphs]
        for row in range(SLOTS):
            fill(runner, row, DRAWN, row)
        for rows in range(1, SLOTS + 1):
            runner.frames(range(rows))
        assert [len(each) for each in graphs] == known


def test_every_count_of_rows_has_a_bucket(runners: tuple[ModelRunner, ModelRunner]) -> None:
    steps = GraphDecoder(runners[1].step, fake_capture)
    sizes = list(steps.sizes)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == SLOTS
    assert set(sizes) - {SLOTS} <= set(BUCKETS)
    for rows in range(1, SLOTS + 1):
        assert rows <= steps._graphs.bucket(rows) in sizes


def test_work_is_recorded_once_a_key() -> None:
    log: list[str] = []

    def noted(work: Callable[[], int]) -> Callable[[], int]:
        log.append("recorded")
        return lambda: 2 * work()

    graphs = GraphRunner(noted)
    assert [graphs.run("a", lambda: 3), graphs.run("a", lambda: 3)] == [3, 6]
    assert [graphs.run("b", lambda: 5), graphs.run("a", lambda: 3)] == [5, 6]
    assert log == ["recorded"] * 2
    assert len(graphs) == 2


@quick
@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0, 1, 20, 64, 200])), min_size=1))
def test_the_ledger_ranks_for_the_most_demanding_row(choices: list[tuple[bool, int]]) -> None:
    row_metadata = RowMetadata(len(choices))
    for row, (greedy, top_k) in enumerate(choices):
        row_metadata.open(row, 3 * row + 1, replace(DRAWN, greedy=greedy, top_k=top_k))
    rows = list(range(len(choices)))
    bounds = row_metadata.bounds(rows)
    assert bounds.first == candidates(choices)
    assert bounds.positions == 3 * len(choices) - 1
    row_metadata.step(rows)
    assert row_metadata.bounds(rows).positions == bounds.positions + 1
    row_metadata.close(rows[-1])
    with pytest.raises(StepFailed):
        row_metadata.bounds(rows)


def test_a_worker_that_replays_speaks_the_same(exact: TorchWorker) -> None:
    """Prompts, frames and sound by recordings, in company that comes and goes."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (runner_module, sounding_module):
            patch.setattr(module, "graph_capture", lambda device: fake_capture)
        with running(CASE.folder, dtype=torch.float64) as replayed:
            for worker in (replayed, exact):
                prompts = [case.prompt(worker._checkpoints[CASE.folder.name]) for case in CASES[:3]]
                voices = [
                    Voice(admission(worker, prompt, DRAWN, slot, slot, 9, CASE.folder.name))
                    for slot, prompt in enumerate(prompts)
                ]
                begin(worker, voices[0])
                advance(worker, voices[:1])
                for voice in voices[1:]:
                    begin(worker, voice)
                spoken = synchronize(worker, voices)
                if worker is replayed:
                    wanted = spoken
    for each, other in zip(spoken, wanted, strict=True):
        assert np.array_equal(each.codes, other.codes)
        assert np.abs(each.pcm.astype(int) - other.pcm).max() <= 1


def test_a_frame_becomes_sound_before_the_talker_goes_on(
    exact: TorchWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its codes are there after the step's first half: the codec works beside the second."""
    name = CASE.folder.name
    runner, codec = exact._runners[name], exact._codec()
    prompt = CASE.prompt(exact._checkpoints[name])
    voice = Voice(admission(exact, prompt, DRAWN, talker=name), chunks=(1,))
    begin(exact, voice)
    seen: list[str] = []
    for owner, half in ((codec, "decode"), (runner.step, "run_talker")):
        work = getattr(owner, half)

        def noted(*given: Any, half: str = half, work: Any = work) -> Any:
            seen.append(half)
            return work(*given)

        monkeypatch.setattr(owner, half, noted)
    voice.take(step(exact, decode=(voice.slot,), codec_decode=(CodecDecode(voice.slot, 0, 1),)))
    assert seen == ["decode", "run_talker"]
    monkeypatch.undo()
    heard = synchronize(exact, [voice])[0].pcm
    np.testing.assert_array_equal(heard, speak(exact, prompt, draw=DRAWN, talker=name).pcm)
