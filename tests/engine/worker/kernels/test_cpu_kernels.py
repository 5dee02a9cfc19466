"""Numba's kernels for CPUs: the plain form's codes and states, whatever else runs with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numba import njit
from torch import Tensor, nn

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.model.quantized_linear import QuantizedLinear
from engine.worker.device import multiplies_bfloat16
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.prompts import RowProducts
from engine.worker.kernels.cpu.threads import ThreadTeam, barrier, fastest, new_sync
from engine.worker.loading.model_loader import load_talker
from engine.worker.model_runner import ModelRunner
from engine.worker.state.sampling import CANDIDATES, SamplingTensors
from engine.worker.talker.code_predictor import CodePredictor
from engine.worker.talker.cpu_kernels import CpuKernels, _build, _choose_threads
from engine.worker.talker.decode_step import FrameStep
from studio.cli.app_context import MINI

ROWS, THREADS, CPU = 3, 3, torch.device("cpu")
Frames = tuple[Tensor, Tensor, SamplingTensors, Tensor]


@pytest.fixture(scope="module", params=["full", "8bit"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[FrameStep, CpuKernels]]:
    with torch.inference_mode():
        checkpoint = LocalCheckpoint(MINI, 64, "mini")
        talker = load_talker(MINI, CPU, torch.float32, request.param)
        step = ModelRunner(talker, checkpoint.ids, ROWS, 64, CPU, torch.float32).step
        kernels = _build(step, THREADS)
    assert kernels is not None
    yield step, kernels
    kernels.team.close()


def frames(step: FrameStep, seed: int = 0) -> Frames:
    """Random inputs: a greedy row, one that ranks some ids, one that ranks all."""
    random = torch.Generator().manual_seed(seed)
    hidden, first = torch.randn(2, ROWS, step.slots.hidden.shape[1], generator=random)
    top_k = torch.tensor([[1.0], [40.0], [torch.inf]])
    sampling = SamplingTensors(
        torch.full((ROWS, 1), 1.1), top_k, torch.tensor([[1.0], [0.8], [0.95]]),
        torch.tensor([[0.0], [1.0], [1.0]]),
    )  # fmt: skip
    return hidden, first, sampling, torch.rand(ROWS, 15, generator=random)


def row_of(given: Frames, row: int) -> Frames:
    own = slice(row, row + 1)
    hidden, first, sampling, uniforms = given
    alone = SamplingTensors(*(column[own].contiguous() for column in sampling.tensors))
    return hidden[own], first[own], alone, uniforms[own]


@torch.inference_mode()
def test_codes_are_those_of_the_plain_form(pair: tuple[FrameStep, CpuKernels]) -> None:
    step, kernels = pair
    if step.talker.code_predictor.lm_head[0].weight.dtype != torch.float32:
        return  # torch rounds inputs to bfloat16 there, and a rounding is a matter of other codes
    plain = CodePredictor(step.talker.code_predictor)
    for seed in range(3):
        given = frames(step, seed)
        wanted, codes = plain(*given, None), kernels.predict(*given, None)
        torch.testing.assert_close(codes, wanted)


@torch.inference_mode()
def test_a_row_does_not_depend_on_the_others_nor_on_the_threads(
    pair: tuple[FrameStep, CpuKernels],
) -> None:
    step, kernels = pair
    given = frames(step)
    rows, at = torch.arange(ROWS), torch.tensor([0, 5, 63])
    codes, total = kernels.predict(*given, CANDIDATES)
    hidden = kernels.talk(given[0], rows, at)
    for threads in (1, THREADS):
        kernels.predict.threads = kernels.talk.threads = threads
        for row in range(ROWS):
            alone = row_of(given, row)
            found = kernels.predict(*alone, CANDIDATES)
            assert torch.equal(found[0][0], codes[row])
            assert torch.equal(found[1][0], total[row])
            own = slice(row, row + 1)
            assert torch.equal(kernels.talk(alone[0], rows[own], at[own])[0], hidden[row])


@torch.inference_mode()
def test_hidden_states_are_those_of_the_plain_form(pair: tuple[FrameStep, CpuKernels]) -> None:
    step, kernels = pair
    random = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, 9, step.slots.hidden.shape[1], generator=random)
    rows, at = torch.arange(ROWS), torch.arange(9).expand(ROWS, -1)
    plain = step.run(x, rows, rows, at, 9)
    for place in range(9):  # one by one, over keys and values of their own
        own = kernels.talk(x[:, place].contiguous(), rows, at[:, place].contiguous())
        error = (own - plain[:, place]).norm() / plain[:, place].norm()
        assert error < (1e-5 if step.talker.model.layers[0].mlp.down_proj.weight.is_floating_point()
                        else 0.03)  # fmt: skip


@torch.inference_mode()
def test_logits_are_those_of_the_plain_form(pair: tuple[FrameStep, CpuKernels]) -> None:
    step, kernels = pair
    hidden = frames(step)[0]
    own, plain = kernels.talk.logits(hidden), step.talker.logits(hidden)
    assert (own - plain).norm() < 0.01 * plain.norm()
    for row in range(ROWS):
        assert torch.equal(kernels.talk.logits(hidden[row : row + 1])[0], own[row])


@torch.inference_mode()
def test_4_bits_are_left_to_torch() -> None:
    checkpoint = LocalCheckpoint(MINI, 64, "mini")
    talker = load_talker(MINI, CPU, torch.float32, "4bit")
    runner = ModelRunner(talker, checkpoint.ids, 1, 64, CPU, torch.float32)
    assert not runner.use_cpu_kernels(1)
    assert runner.step.talk_one is None


@torch.inference_mode()
def test_each_kernel_gets_a_number_of_threads_that_there_is(
    pair: tuple[FrameStep, CpuKernels],
) -> None:
    step, kernels = pair
    _choose_threads(step, kernels)
    assert 1 <= kernels.predict.threads <= THREADS
    assert 1 <= kernels.talk.threads <= THREADS


def test_the_fastest_number_of_threads_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {1: 3.0, 2: 2.0, 4: 1.0, 6: 1.5, 7: 9.0}
    monkeypatch.setattr(
        "engine.worker.kernels.cpu.threads._seconds", lambda run, count: seconds[count]
    )
    assert fastest(lambda count: None, 7) == 4


def test_a_closed_team_runs_on_the_calling_thread_alone() -> None:
    team, seen = ThreadTeam(3), []
    team.close()
    team.run(lambda number, threads: seen.append((number, threads)), 3)
    assert seen == [(0, 1)]


@compiled()
def _meet(number, threads, rounds, sync, times, failures):  # type: ignore[no-untyped-def]
    """Count each round, and what others have not counted when the barrier lets a thread go on."""
    for done in range(1, rounds + 1):
        times[number] = done
        barrier(sync, threads)
        for other in range(threads):
            failures[number] += times[other] < done
        barrier(sync, threads)


def test_a_barrier_waits_for_all_whatever_their_number_was_before() -> None:
    most = 5
    team, sync, failures = ThreadTeam(most), new_sync(), np.zeros(most, np.int64)
    for threads in [*range(1, most + 1), *range(most, 0, -1), 2, 5, 3, 4]:
        times = np.zeros(most, np.int64)
        team.run(
            lambda number, count, times=times: _meet(number, count, 20, sync, times, failures),  # type: ignore[misc]
            threads,
        )
        assert times[:threads].tolist() == [20] * threads
    assert not failures.any()
    team.close()


def test_kernels_are_compiled_where_no_folder_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(**options: object) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr("engine.worker.kernels.cpu.compiler.njit", refuse)
    assert compiled()(lambda x: x + 1)(1) == 2


@pytest.mark.skipif(not multiplies_bfloat16(), reason="this processor does not multiply bfloat16")
@pytest.mark.parametrize("sizes", [(64, 48), (96, 64)])
@torch.inference_mode()
def test_products_of_a_prompt_depend_on_no_other_row_nor_on_the_threads(
    sizes: tuple[int, int],
) -> None:
    torch.manual_seed(0)
    layer = QuantizedLinear(nn.Linear(*sizes, bias=True), 8)
    layer.pack()
    x = torch.randn(2, 41, sizes[0])
    plain, whole = layer(x), []
    for threads in (1, THREADS):
        team = ThreadTeam(threads)
        layer.multiply = RowProducts(team)
        whole.append(layer(x))
        mixed = torch.randperm(82)
        assert torch.equal(layer(x.flatten(0, 1)[mixed]), whole[-1].flatten(0, 1)[mixed])
        assert torch.equal(layer(x[:1, :3]), whole[-1][:1, :3])
        team.close()
    assert torch.equal(*whole)
    assert (whole[0] - plain).norm() < 0.01 * plain.norm()
