"""Numba's kernels for CPUs: the plain form's codes and states, whatever else runs with them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numba import config, njit
from numba.core.caching import IndexDataCacheFile
from torch import Tensor, nn

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.model.quantized_linear import QuantizedLinear
from engine.worker.kernels.cpu import integers, nibbles, panels
from engine.worker.kernels.cpu.compiler import VERSION, compiled, is_kept, version_of
from engine.worker.kernels.cpu.layers import Rounded, pack
from engine.worker.kernels.cpu.llvm import LANES
from engine.worker.kernels.cpu.threads import ThreadTeam, barrier, fastest, new_sync
from engine.worker.kernels.frame_glue import PlainFrameGlue
from engine.worker.loading.model_loader import load_talker
from engine.worker.model_runner import ModelRunner
from engine.worker.state.sampling import CANDIDATES, SamplingTensors
from engine.worker.talker.code_predictor import CodePredictor
from engine.worker.talker.cpu_kernels import (
    CpuKernels,
    _build,
    _choose_threads,
)
from engine.worker.talker.decode_step import FrameStep
from studio.cli.app_context import MINI

ROWS, THREADS, CPU = 3, 3, torch.device("cpu")
# Relative, of hidden states, by bits of the weights; eight layers that each round their inputs.
ERRORS = {32: 1e-5, 8: 0.03, 4: 0.045}
Frames = tuple[Tensor, Tensor, SamplingTensors, Tensor]


FOUR_BITS = pytest.mark.skipif(not integers.AVAILABLE, reason="this processor has no such products")


@pytest.fixture(scope="module", params=["full", "8bit", pytest.param("4bit", marks=FOUR_BITS)])
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
    this = slice(row, row + 1)
    hidden, first, sampling, uniforms = given
    alone = SamplingTensors(*(column[this].contiguous() for column in sampling.tensors))
    return hidden[this], first[this], alone, uniforms[this]


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
            this = slice(row, row + 1)
            assert torch.equal(kernels.talk(alone[0], rows[this], at[this])[0], hidden[row])


@torch.inference_mode()
def test_hidden_states_are_those_of_the_plain_form(pair: tuple[FrameStep, CpuKernels]) -> None:
    step, kernels = pair
    random = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, 9, step.slots.hidden.shape[1], generator=random)
    rows, at = torch.arange(ROWS), torch.arange(9).expand(ROWS, -1)
    bits = getattr(step.talker.model.layers[0].mlp.down_proj, "bits", 32)
    plain = step.run(x, rows, rows, at, 9)
    for place in range(9):  # one by one, over keys and values of their own
        ours = kernels.talk(x[:, place].contiguous(), rows, at[:, place].contiguous())
        error = (ours - plain[:, place]).norm() / plain[:, place].norm()
        assert error < ERRORS[bits]


@torch.inference_mode()
@pytest.mark.parametrize("count", [CANDIDATES, 1, None])
def test_first_codes_are_those_of_the_plain_form(
    pair: tuple[FrameStep, CpuKernels], count: int | None
) -> None:
    """Greedy, with few and with many ids, penalties, an end that may not come yet; also of rows
    that are not adjacent, and alone."""
    step, kernels = pair
    slots, random = step.slots, torch.Generator().manual_seed(3)
    table = step.talker.model.codec_embedding.weight.detach()
    plain, index = PlainFrameGlue(slots, step.ids, table, step.pad), torch.tensor([0, 2])
    most = float("inf") if count is None else 40.0
    slots.sampling[:ROWS, :4] = torch.tensor([0.9, most, 0.95, 1.0])
    if count == 1:
        slots.sampling[:ROWS, 3] = 0.0
    slots.sampling[:, 8] = 1.3
    ended = 0
    for trial in range(24):
        logits = 2 * torch.randn(2, slots.seen.shape[1], generator=random)
        logits[:, step.ids.codec_eos] += 9
        slots.frame[:ROWS] = trial // 6
        slots.endless[0] = trial % 2 == 0
        slots.keys[:ROWS] = torch.randint(1 << 32, (ROWS, 2), generator=random)
        slots.seen[:ROWS] = torch.rand(slots.seen[:ROWS].shape, generator=random) < 0.3
        wanted = plain.draw(index, index, logits, count)
        assert torch.equal(kernels.glue.draw(index, index, logits, count), wanted)
        alone = kernels.glue.draw(index[1:], index[1:], logits[1:], count)
        assert torch.equal(alone, wanted[1:])
        ended += int((wanted == step.ids.codec_eos).sum())
    assert 0 < ended < 48


@torch.inference_mode()
def test_a_first_code_is_the_same_beside_one_that_may_be_any(
    pair: tuple[FrameStep, CpuKernels],
) -> None:
    """Ties stand for sums that differ in their last bits: rows are drawn by one rule."""
    step, kernels = pair
    slots, random = step.slots, torch.Generator().manual_seed(3)
    index = torch.tensor([0, 2])
    slots.sampling[:ROWS, :4] = torch.tensor([0.9, 40.0, 0.95, 1.0])
    slots.sampling[2, 1] = float("inf")
    slots.frame[:ROWS], slots.endless[:ROWS] = 5, False
    for trial in range(24):
        slots.sampling[0, 3] = float(trial % 4 > 0)
        logits = (4 * torch.randn(2, slots.seen.shape[1], generator=random)).round() / 4
        slots.keys[:ROWS] = torch.randint(1 << 32, (ROWS, 2), generator=random)
        alone = kernels.glue.draw(index[:1], index[:1], logits[:1], CANDIDATES)
        together = kernels.glue.draw(index, index, logits, None)
        assert together[0] == alone[0]


@torch.inference_mode()
def test_logits_are_those_of_the_plain_form(pair: tuple[FrameStep, CpuKernels]) -> None:
    step, kernels = pair
    hidden = frames(step)[0]
    ours, plain = kernels.talk.logits(hidden), step.talker.logits(hidden)
    assert (ours - plain).norm() < 0.01 * plain.norm()
    for row in range(ROWS):
        assert torch.equal(kernels.talk.logits(hidden[row : row + 1])[0], ours[row])


@torch.inference_mode()
def test_logits_of_a_frame_are_made_with_its_layers(
    pair: tuple[FrameStep, CpuKernels], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its threads wake once, and the logits are those that its hidden states give apart."""
    step, kernels = pair
    given, rows, calls, run = frames(step)[0], torch.arange(ROWS), [0], ThreadTeam.run

    def counted(team: ThreadTeam, kernel: Callable[[int, int], object], threads: int) -> None:
        calls[0] += 1
        run(team, kernel, threads)

    monkeypatch.setattr(ThreadTeam, "run", counted)
    hidden = kernels.talk(given, rows, torch.zeros_like(rows))
    logits = kernels.talk.logits(hidden)
    assert calls == [1]
    assert torch.equal(logits, kernels.talk.logits(hidden.clone()))
    kernels.talk(given.flip(0), rows, torch.zeros_like(rows))
    assert torch.equal(logits, kernels.talk.logits(hidden)), "those of another frame"


@torch.inference_mode()
def test_bfloat16_changes_no_bit_of_what_the_same_weights_give_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoint = LocalCheckpoint(MINI, 64, "mini")
    talker = load_talker(MINI, CPU, torch.float32)
    random = torch.Generator().manual_seed(0)
    for weight in talker.parameters():  # all of them count, and none is from training
        if weight.dim() > 1:
            numbers = torch.randn(weight.shape, generator=random) * weight.shape[1] ** -0.5
            weight.copy_(numbers.bfloat16())
    step = ModelRunner(talker, checkpoint.ids, ROWS, 64, CPU, torch.float32).step
    found = []
    for kind in (np.int32, np.float32):
        if kind == np.float32:
            monkeypatch.setattr(f"{pack.__module__}._narrow", lambda layers: None)
        kernels = _build(step, 1)
        assert kernels is not None
        assert {each.dtype for each in matrices(kernels)} == {np.dtype(kind)}
        given = frames(step)
        hidden = kernels.talk(given[0], torch.arange(ROWS), torch.zeros(ROWS, dtype=torch.long))
        codes, total = kernels.predict(*given, None)
        found.append((hidden, kernels.talk.logits(hidden), codes, total, inner(kernels)))
        kernels.team.close()
    for narrow, wide in zip(*found, strict=True):
        assert torch.equal(narrow, wide)


def matrices(kernels: CpuKernels) -> list[Any]:
    """All that the kernels multiply by."""
    shared, books = (each.whole for each in kernels.predict._fixed[:2])
    packed = [books.heads, books.projection, kernels.talk._head[0]]
    for weights in (shared, kernels.talk.weights):
        packed += [weights.qkv, weights.out, weights.gate_up, weights.down]
    return packed


def inner(kernels: CpuKernels) -> Tensor:
    """The last hidden states of the predictor."""
    return torch.from_numpy(kernels.predict._memory[-1].whole.normed.copy())


@torch.inference_mode()
def test_weights_that_bfloat16_does_not_hold_stay_float32() -> None:
    layer = nn.Linear(64, 48, bias=False)
    layer.weight.copy_(layer.weight.bfloat16())
    assert pack([layer])[0].dtype == np.int32  # two in each
    layer.weight[3, 5] = 1 + 2**-8
    weights = pack([layer])[0]
    assert weights.dtype == np.float32
    assert sorted(weights.flatten()) == sorted(layer.weight.flatten().tolist())


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 13])
def test_products_of_full_weights_are_sums_over_even_and_over_odd_inputs(
    narrow: bool, rows: int
) -> None:
    """Of panels 1 to 5, as a thread takes them; inputs and weights are such that products are
    exact."""
    random = np.random.default_rng(rows)
    weights = torch.from_numpy(random.normal(size=(1, 6 * LANES, 64))).bfloat16()
    x = torch.from_numpy(random.normal(size=(rows + 1, 64))).bfloat16().float().numpy()
    packed = panels.pack(weights.view(torch.int16) if narrow else weights.float())
    out = np.full((rows, 7 * LANES), np.nan, np.float32)
    panels.multiply(packed[0], x, 1, rows + 1, LANES, 6 * LANES, out, LANES)
    products = x[1:, None] * weights.float().numpy()[0]
    halves = (np.cumsum(products[..., which::2], -1)[..., -1] for which in (0, 1))
    assert (out[:, LANES : 6 * LANES] == np.add(*halves)[:, LANES:]).all()
    assert np.isnan(out[:, :LANES]).all()
    assert np.isnan(out[:, 6 * LANES :]).all()


def in_4_bits() -> ModelRunner:
    talker = load_talker(MINI, CPU, torch.float32, "4bit")
    checkpoint = LocalCheckpoint(MINI, 64, "mini")
    return ModelRunner(talker, checkpoint.ids, 1, 64, CPU, torch.float32)


def layers_of(runner: ModelRunner) -> list[QuantizedLinear]:
    modules = runner.step.talker.modules()
    return [each for each in modules if isinstance(each, QuantizedLinear) and each.bits == 4]


@torch.inference_mode()
def test_4_bits_are_left_to_torch_on_other_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integers, "AVAILABLE", False)
    runner = in_4_bits()
    assert not runner.use_cpu_kernels(1)
    assert runner.step.talk_one is None
    assert all(each.levels is each.panels is None for each in layers_of(runner))


@FOUR_BITS
@torch.inference_mode()
def test_weights_of_4_bits_are_kept_once() -> None:
    runner = in_4_bits()
    layers = layers_of(runner)
    weights = sum(each.in_features * each.out_features for each in layers)
    assert runner.use_cpu_kernels(1)
    kept = sum(each.weight.nbytes + each.scales.nbytes for each in layers)
    assert kept < 0.66 * weights  # half a byte, and four bytes of each group of 32
    assert all(each.levels is each.panels is None for each in layers)
    runner.close()


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


@pytest.mark.parametrize(
    ("disturbed", "found"),
    [
        (lambda count, trial: False, 1),
        (lambda count, trial: trial < 4, 1),  # it becomes quiet
        (lambda count, trial: count > 1, 2),  # others use a core all the time
    ],
)
def test_a_busy_machine_decides_nothing(
    monkeypatch: pytest.MonkeyPatch, disturbed: Callable[[int, int], bool], found: int
) -> None:
    """One thread is taken where it was fastest undisturbed; all are where that cannot be told."""
    lost, trials = [0], [0, 0, 0]

    def seconds(run: Callable[[int], object], count: int) -> float:
        lost[0] += 200 * disturbed(count, trials[count])
        trials[count] += 1
        return 0.01 * count

    monkeypatch.setattr("engine.worker.kernels.cpu.threads._seconds", seconds)
    monkeypatch.setattr("engine.worker.kernels.cpu.threads._lost_cores", lambda: lost[0])
    assert fastest(lambda count: None, 2) == found


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


def add_one() -> Any:
    """A kernel, as another process finds it."""

    def add(x):  # type: ignore[no-untyped-def]
        return x + 1

    return compiled()(add)


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [0, 100])
def test_a_kept_kernel_that_is_damaged_is_compiled_again(
    ending: str, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    assert add_one()(1) == 2
    (file,) = tmp_path.rglob(f"*.{ending}")
    file.write_bytes(file.read_bytes()[:left])
    is_kept(add_one())  # no error
    assert add_one()(1) == 2
    assert is_kept(again := add_one())
    assert again(1) == 2
    assert again.stats.cache_hits


def test_a_kernel_runs_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", full)
    assert add_one()(1) == 2


def test_a_kernel_is_compiled_again_when_another_that_it_calls_has_changed(tmp_path: Path) -> None:
    """Numba finds a compiled function by its name and its file alone."""
    for name in ("caller.py", "called.py"):
        (tmp_path / name).write_text("one", encoding="utf-8")
    before = version_of(tmp_path)
    assert version_of(tmp_path) == before
    (tmp_path / "called.py").write_text("two", encoding="utf-8")
    assert version_of(tmp_path) != before
    assert barrier.py_func.__qualname__.endswith(VERSION)


@FOUR_BITS
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 19])
def test_products_with_4_bits_are_those_of_levels_and_rounded_inputs(rows: int) -> None:
    torch.manual_seed(rows)
    outputs, inputs = 48, 96
    groups = inputs // nibbles.GROUP
    levels = torch.randint(16, (outputs, inputs), dtype=torch.uint8)
    steps = (torch.rand(groups, outputs, 2) - 0.5).bfloat16()
    x = torch.randn(rows, inputs) * torch.tensor([1e-3, 1.0, 300.0]).repeat_interleave(32)
    x[0, :32] = 0
    given = Rounded.allocate(1, rows, inputs)
    firsts = [each[0] for each in given]
    nibbles.round_inputs(x.numpy(), rows, inputs, *firsts)
    found = np.zeros((rows, outputs), np.float32)
    nibbles.multiply_panels(nibbles.pack(levels, steps), rows, 16, outputs, *firsts, found, 16)
    rounded = torch.from_numpy(firsts[0]) * torch.from_numpy(firsts[1]).repeat_interleave(32, 1)
    most = x.unflatten(1, (groups, -1)).abs().amax(2).repeat_interleave(32, 1)
    assert ((rounded - x).abs() <= most / 127 * 0.501).all()
    scales, zeros = steps.double().repeat_interleave(32, 0).unbind(2)  # [inputs, outputs]
    wanted = rounded.double() @ ((levels.T.double() - 8) * scales + zeros)
    assert not found[:, :16].any()
    difference = torch.from_numpy(found[:, 16:]) - wanted[:, 16:]
    assert difference.norm() < 1e-6 * wanted.norm()


@FOUR_BITS
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_sums_with_4_bits_are_whole(sign: int) -> None:
    levels = torch.full((LANES, nibbles.GROUP), 15, dtype=torch.uint8)
    steps = torch.tensor([1.0, 0.0]).expand(1, LANES, 2).bfloat16()
    given = [each[0] for each in Rounded.allocate(1, 1, nibbles.GROUP)]
    nibbles.round_inputs(np.full((1, nibbles.GROUP), sign, np.float32), 1, nibbles.GROUP, *given)
    assert (given[0] == sign * 127).all()
    out = np.zeros((1, LANES), np.float32)
    nibbles.multiply_panels(nibbles.pack(levels, steps), 1, 0, LANES, *given, out, 0)
    np.testing.assert_allclose(out, sign * 7.0 * nibbles.GROUP, rtol=1e-6)
