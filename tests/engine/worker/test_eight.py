"""Weights in 8 bits: rounded within bounds, the same in every form, and never without asking."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine import open_engine
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.config import EngineSettings
from engine.model.layers import Causal
from engine.model.talker import Talker
from engine.worker import eight
from engine.worker.loading.model_loader import load_talker
from engine.worker.talker.block_forward import walk
from engine.worker.worker import TorchWorker, WorkerSettings
from tests.engine.worker.kernels.small import distance

CPU = torch.device("cpu")
MINI = Path(__file__).parents[3] / "presets" / "mini"
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
ROUNDED = ("qkv_proj", "gate_up_proj", "down_proj")


def drawn(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=20, deadline=None)
@given(power=st.integers(-30, 30), seed=st.integers(0, 99), outlier=st.floats(1, 1e3))
def test_a_number_is_off_by_a_sixteenth_at_most(power: int, seed: int, outlier: float) -> None:
    """Or, where it is tiny beside its row's largest, by a tiny part of that."""
    weight = drawn(8, 64, seed=seed) * 2.0**power
    weight[:, 3] *= outlier
    found = eight.rounded(weight)
    apart = (eight.spread(found, torch.float32) - weight).abs()
    most = weight.abs().amax(1, keepdim=True)
    assert (apart <= torch.maximum(weight.abs() / 16, most * 2.0**-17)).all()
    assert found.numbers.float().abs().max() <= eight.LARGEST


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_rounded_numbers_are_exact_in_two_bytes_and_rounding_again_keeps_them(
    dtype: torch.dtype,
) -> None:
    weight = drawn(64, 48).to(dtype)
    weight[3], weight[4] = 0, 448.0
    found = eight.rounded(weight)
    once = eight.spread(found, dtype)
    assert torch.equal(once.float(), eight.spread(found, torch.float32))
    assert torch.equal(eight.spread(eight.rounded(once), dtype), once)
    assert not once[3].any()
    assert torch.equal(once[4], weight[4])


@pytest.fixture(scope="module")
def whole() -> Talker:
    return load_talker(MINI, CPU, torch.float32)


@pytest.fixture(scope="module")
def rounded() -> Talker:
    return load_talker(MINI, CPU, torch.float32, eight_bits=True)


def test_weights_of_the_blocks_are_rounded_and_no_others(whole: Talker, rounded: Talker) -> None:
    there = dict(rounded.named_parameters())
    for name, weight in whole.named_parameters():
        if name.startswith("model.layers.") and name.split(".")[-2] in ROUNDED:
            weight = eight.spread(eight.rounded(weight), torch.float32)
            assert not torch.equal(weight, dict(whole.named_parameters())[name])
        assert torch.equal(there[name], weight), name


def test_without_asking_nothing_is_rounded(whole: Talker) -> None:
    assert EngineSettings().eight_bits is False
    again = load_talker(MINI, CPU, torch.float32, eight_bits=False)
    for own, other in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(own, other)
    assert eight.products(whole.model) is None


@torch.inference_mode()
def test_what_is_heard_drifts_a_little(whole: Talker, rounded: Talker) -> None:
    x, at = drawn(2, 40, whole.config.transformer.hidden_size), torch.arange(40).expand(2, 40)
    own, other = (each(x, at, Causal()) for each in (whole, rounded))
    assert 0 < (own - other).norm() / own.norm() < 0.25


def test_the_log_says_where_nothing_is_quicker(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "timbre"):
        load_talker(MINI, CPU, torch.float32, eight_bits=True)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "8 bits" in caplog.text


@pytest.mark.parametrize("asked", [True, False])
def test_the_setting_reaches_the_weights(
    asked: bool, whole: Talker, rounded: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Talker] = []
    lane = TorchWorker._load_lane

    def load_lane(self: TorchWorker, talker: str) -> object:
        loaded.append(made := lane(self, talker))  # type: ignore[arg-type]
        return made

    monkeypatch.setattr(TorchWorker, "_load_lane", load_lane)
    wanted = rounded if asked else whole
    with open_engine([MINI], "cpu", max_num_seqs=1, max_seq_len=256, eight_bits=asked):
        own = loaded[0].talker.model.layers[0].mlp.down_proj.weight  # type: ignore[attr-defined]
        assert torch.equal(own, wanted.model.layers[0].mlp.down_proj.weight)  # type: ignore


@on_gpu
@torch.inference_mode()
@pytest.mark.parametrize("rows", [17, 64, 300])
def test_norms_and_gates_are_rounded_row_by_row(rows: int) -> None:
    from engine.worker import eight_kernels

    x, added, norm = (drawn(rows, 320, seed=seed).cuda().bfloat16() for seed in range(3))
    total, numbers, scale = eight_kernels.add_norm(x, added, norm[0], 1e-6)
    assert torch.equal(total, x + added)
    plain = F.rms_norm(total.float(), (320,), norm[0].float(), 1e-6)
    assert distance(numbers.float() * scale, plain) < 0.04
    numbers, scale = eight_kernels.gate(torch.cat((x, added), 1))
    assert distance(numbers.float() * scale, F.silu(x.float()) * added.float()) < 0.04
    assert numbers.float().abs().amax(1).eq(eight.LARGEST).all()


@on_gpu
def test_a_served_talker_makes_its_products_in_8_bits() -> None:
    held = WorkerSettings(20, 256, "cuda", eight_bits=True)
    worker = TorchWorker({"mini": LocalCheckpoint(MINI)}, held)
    try:
        worker.load("mini")
        step = worker._lanes["mini"].step
        if not hasattr(step.talker.model.layers[0].mlp.down_proj, "eight"):
            pytest.skip("this GPU makes no products in 8 bits")
        assert step.talk is not None
        assert step.talk.eight is not None
    finally:
        worker.close()


@on_gpu
@torch.inference_mode()
@pytest.mark.parametrize("rows", [17, 64, 300])
def test_layers_in_8_bits_are_near_the_plain_ones_and_replayed_the_same(rows: int) -> None:
    talker = load_talker(MINI, torch.device("cuda"), torch.bfloat16, eight_bits=True)
    stack = talker.model
    products = eight.products(stack)
    if products is None:
        pytest.skip("this GPU makes no products in 8 bits")
    x = drawn(rows, stack.config.hidden_size).cuda().bfloat16()
    at = torch.zeros(rows, 1, dtype=torch.long, device="cuda")
    width = stack.config.heads * stack.config.head_dim
    shared, group = stack.config.kv_heads, stack.config.heads // stack.config.kv_heads

    def alone(layer: int, own: object, qkv: Tensor) -> Tensor:
        """Each row sees itself only: attention gives its value."""
        value = qkv[:, -shared * stack.config.head_dim :]
        heads = value.unflatten(1, (shared, 1, -1)).expand(-1, -1, group, -1)
        return heads.reshape(len(qkv), width)

    def last() -> Tensor:
        rows, added = walk(stack, products, x, alone)
        return F.rms_norm(rows + added, x.shape[1:], stack.norm.weight, stack.norm.eps)

    made = last()
    assert distance(made, stack(x[:, None], at, Causal())[:, 0].float()) < 0.2
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        again = last()
    graph.replay()
    assert torch.equal(again, made)
