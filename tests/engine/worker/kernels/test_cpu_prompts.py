"""Prompts on numba's kernel for CPUs: the plain form's results, whatever else runs with them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.model.quantized_linear import QuantizedLinear
from engine.worker.kernels.cpu import amx, nibbles
from engine.worker.kernels.cpu.layers import pack
from engine.worker.kernels.cpu.prompts import CpuPrompts
from engine.worker.kernels.cpu.row_products import AT_ONCE, RowProducts
from engine.worker.kernels.cpu.threads import ThreadTeam
from engine.worker.loading.model_loader import load_talker
from engine.worker.model_runner import ModelRunner
from engine.worker.talker.cpu_kernels import _build, _build_prompts
from engine.worker.talker.decode_step import FrameStep
from studio.cli.app_context import MINI
from tests.engine.worker.kernels.test_cpu_kernels import CPU, ERRORS, FOUR_BITS, ROWS, THREADS

LONG = 320  # positions of slots that take a long prompt
AMX = pytest.mark.skipif(not amx.permitted(), reason="this processor has no tile registers")
# of a prompt's products: bits of the weights, and whether the system refuses tile registers
FORMS = (
    pytest.param((8, False), id="8bit"),
    pytest.param((4, False), id="4bit", marks=FOUR_BITS),
    pytest.param((8, True), id="8bit-refused", marks=AMX),
    pytest.param((4, True), id="4bit-refused", marks=AMX),
)


def refuse_registers(patch: pytest.MonkeyPatch, refused: bool) -> None:
    if refused:
        patch.setattr(amx, "permitted", lambda: False)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [(64, 48), (96, 64)])
@torch.inference_mode()
def test_products_of_a_prompt_depend_on_no_other_row_nor_on_the_threads(
    sizes: tuple[int, int], form: tuple[int, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    bits, refused = form
    refuse_registers(monkeypatch, refused)
    torch.manual_seed(0)
    layer = QuantizedLinear(nn.Linear(*sizes, bias=True), bits)
    layer.pack()
    x = torch.randn(2, AT_ONCE // 2 + 3, sizes[0])
    plain, whole = layer(x), []
    for threads in (1, THREADS):
        team = ThreadTeam(threads)
        layer.multiply = RowProducts(team)
        if layer.levels is not None:
            pack([layer])
            layer.take_panels(layer.multiply)
            layer.levels = None
        whole.append(layer(x))
        mixed = torch.randperm(2 * x.shape[1])
        assert torch.equal(layer(x.flatten(0, 1)[mixed]), whole[-1].flatten(0, 1)[mixed])
        assert torch.equal(layer(x[:1, :3]), whole[-1][:1, :3])
        team.close()
    assert torch.equal(*whole)
    assert (whole[0] - plain).norm() < 0.01 * plain.norm()


@pytest.mark.parametrize("refused", [False, pytest.param(True, marks=AMX)])
@torch.inference_mode()
def test_products_of_a_prompt_keep_what_8_bits_hold(
    refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs are rounded a hundred times more finely than the weights are."""
    refuse_registers(monkeypatch, refused)
    torch.manual_seed(0)
    layer = QuantizedLinear(nn.Linear(96, 64, bias=False), 8)
    layer.pack()
    x, team = torch.randn(29, 96), ThreadTeam(1)
    found = RowProducts(team)(x, layer.weight, layer.scales)
    wanted = x.double() @ layer.weight.double().T * layer.scales.double()
    assert (found - wanted).norm() < 1e-4 * wanted.norm()
    team.close()


@AMX
@pytest.mark.parametrize("outputs", [48, 64])
def test_weights_of_4_bits_become_the_nearest_in_bfloat16(outputs: int) -> None:
    torch.manual_seed(0)
    inputs = 96
    levels = torch.randint(16, (outputs, inputs), dtype=torch.uint8)
    steps = (torch.rand(inputs // nibbles.GROUP, outputs, 2) - 0.5).bfloat16()
    team = ThreadTeam(1)
    packed = torch.from_numpy(nibbles.pack(levels, steps))
    found = RowProducts(team)(torch.eye(inputs), packed, torch.ones(outputs)).T
    scales, zeros = steps.double().repeat_interleave(nibbles.GROUP, 0).unbind(2)
    wanted = (levels.T.double() - 8) * scales + zeros
    assert ((found.T - wanted).abs() <= wanted.abs() * 2**-8 + 1e-6).all()
    team.close()


@pytest.fixture(scope="module", params=[pytest.param((32, False), id="full"), *FORMS])
def prompted(request: pytest.FixtureRequest) -> Iterator[tuple[FrameStep, CpuPrompts]]:
    bits, refused = request.param
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        refuse_registers(patch, refused)
        weights = "full" if bits == 32 else f"{bits}bit"
        talker = load_talker(MINI, CPU, torch.float32, weights)
        ids = LocalCheckpoint(MINI, LONG, "mini").ids
        step = ModelRunner(talker, ids, ROWS, LONG, CPU, torch.float32).step
        kernels = _build(step, THREADS)
        assert kernels is not None
        prompts = _build_prompts(step, kernels)
    if prompts is None:
        pytest.skip("this processor does not multiply these weights")
    yield step, prompts
    kernels.team.close()


def inputs_of(step: FrameStep, count: int) -> Tensor:
    random = torch.Generator().manual_seed(2)
    return torch.randn(count, step.slots.hidden.shape[1], generator=random)


def kept(step: FrameStep, slot: int, count: int) -> Tensor:
    """Keys and values of a slot's first positions."""
    cache = step.slots.cache
    return torch.stack((cache.keys[:, slot, :, :count], cache.values[:, slot, :, :count])).clone()


@torch.inference_mode()
def test_prompts_are_those_of_the_plain_form(prompted: tuple[FrameStep, CpuPrompts]) -> None:
    step, prompts = prompted
    count = AT_ONCE + 31
    x, row, at = inputs_of(step, count), torch.tensor([1]), torch.arange(count)[None]
    plain = step.run(x[None], row, row, at, count)[0]
    wanted = kept(step, 1, count)
    alone = prompts(x, [(2, 0, count)])
    bits = getattr(step.talker.model.layers[0].mlp.down_proj, "bits", 32)
    assert (alone - plain).norm() < ERRORS[bits] * plain.norm()
    assert (kept(step, 2, count) - wanted).norm() < ERRORS[bits] * wanted.norm()


@torch.inference_mode()
def test_prompts_depend_neither_on_others_nor_on_where_they_are_cut_nor_on_the_threads(
    prompted: tuple[FrameStep, CpuPrompts],
) -> None:
    step, prompts = prompted
    x, count = inputs_of(step, 150), 83
    wanted = prompts(x[:count], [(0, 0, count)])
    keys = kept(step, 0, count)
    together = prompts(
        torch.cat((x[:41], x[7:], x[41:count])), [(1, 0, 41), (2, 0, 143), (1, 41, count - 41)]
    )
    assert torch.equal(torch.cat((together[:41], together[41 + 143 :])), wanted)
    assert torch.equal(kept(step, 1, count), keys)
    cuts = [(0, 1), (1, 18), (18, 50), (50, count)]
    pieces = [prompts(x[start:stop], [(2, start, stop - start)]) for start, stop in cuts]
    assert torch.equal(torch.cat(pieces), wanted)
    assert torch.equal(kept(step, 2, count), keys)
    prompts.threads = 1
    assert torch.equal(prompts(x[:count], [(2, 0, count)]), wanted)
    prompts.threads = THREADS
