"""The talker's Triton kernels equal plain torch; without a GPU, in Triton's interpreter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.model.configs import TransformerConfig
from engine.model.layers import Transformer, rotary_embedding
from engine.worker.state.kv_cache import KeyValueCache, SlotAttend

HERE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if HERE.type == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
pytest.importorskip("triton")

from engine.worker.kernels.triton.linear import (  # noqa: E402
    Normed,
    Tile,
    add_norm,
    as_normed,
    gate,
    product,
    product_added,
)
from engine.worker.talker import talker_forward  # noqa: E402

SLOTS, POSITIONS, EPS = 6, 200, 1e-6
SHAPES = [
    TransformerConfig(64, 96, 2, 4, 2, 32, 1e6, EPS),
    TransformerConfig(64, 96, 2, 5, 1, 32, 1e6, EPS),
]
CLOSE = {"rtol": 1e-4, "atol": 3e-5}
few = settings(max_examples=6, deadline=None)


@pytest.fixture(autouse=True, scope="module")
def _small_tiles() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(talker_forward, "TILES", dict.fromkeys(talker_forward.TILES, (16, 16, 4, 2)))
        yield


def drawn(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed)).to(HERE)


@few
@given(
    rows=st.integers(1, 40),
    width=st.sampled_from([64, 96, 160]),
    columns=st.sampled_from([16, 48, 80]),
    tile=st.sampled_from([Tile(16, 16, 4, 2), Tile(32, 32, 2, 3)]),
    seed=st.integers(0, 99),
)
@torch.inference_mode()
def test_fused_products_equal_plain_torch(
    rows: int, width: int, columns: int, tile: Tile, seed: int
) -> None:
    x, before = drawn(rows, width, seed=seed), drawn(rows, columns, seed=seed + 1)
    weight = drawn(columns, width, seed=seed + 2) / width**0.5
    wide, norm = drawn(32, columns, seed=seed + 3), 1 + drawn(columns).abs()
    total, normed = product_added(x, weight, tile, before, norm)
    plain = F.linear(x, weight) + before
    torch.testing.assert_close(total, plain, **CLOSE)
    after = F.rms_norm(plain, (columns,), norm, EPS)
    torch.testing.assert_close(product(normed, wide, tile, EPS), F.linear(after, wide), **CLOSE)
    first, second = F.linear(after, wide).chunk(2, -1)
    gated = product(as_normed(plain, norm), wide, tile, EPS, gated=True)
    torch.testing.assert_close(gated, F.silu(first) * second, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(gate(torch.cat((first, second), 1)), F.silu(first) * second, **CLOSE)
    both, ours = add_norm(plain, before, norm, EPS)
    torch.testing.assert_close(both, plain + before, **CLOSE)
    torch.testing.assert_close(ours, F.rms_norm(plain + before, (columns,), norm, EPS), **CLOSE)


@torch.inference_mode()
def test_other_rows_do_not_change_a_row_of_a_product() -> None:
    x, weight = drawn(16, 96), drawn(48, 96)
    tile, squares = Tile(16, 16, 4, 2), drawn(1, 16).abs()
    whole = product(Normed(x, squares), weight, tile, EPS)
    for rows in (1, 3, 16):
        part = product(Normed(x[:rows], squares[:, :rows].contiguous()), weight, tile, EPS)
        assert torch.equal(part, whole[:rows])


@dataclass(frozen=True)
class FakeSlots:
    """The part of the slots' state that the talker's layers read."""

    frame: Tensor
    hidden: Tensor
    cache: KeyValueCache
    padding_row: int = SLOTS - 1
    positions: int = POSITIONS


@pytest.fixture(scope="module", params=SHAPES, ids=["pairs of heads", "five heads"])
def stack(request: pytest.FixtureRequest) -> Transformer:
    made = Transformer(request.param).requires_grad_(False)
    for value in made.parameters():
        draw = torch.Generator().manual_seed(value.numel())
        value.normal_(0, 0.1, generator=draw).add_(float(value.dim() == 1))
    return made.to(HERE)


def rotary(config: TransformerConfig) -> tuple[Tensor, Tensor]:
    """cos and sin [positions, head_dim]."""
    everywhere = torch.arange(POSITIONS, device=HERE)[None]
    cos, sin = rotary_embedding(everywhere, config.head_dim, config.rope_theta)
    return cos[0, 0], sin[0, 0]


def fake_slots(config: TransformerConfig) -> FakeSlots:
    cache = KeyValueCache.allocate(config, SLOTS, POSITIONS, HERE, torch.float32)
    for number, kept in enumerate(cache.tensors):
        kept.copy_(drawn(*kept.shape, seed=number))
    return FakeSlots(torch.zeros(SLOTS), torch.zeros(SLOTS, config.hidden_size, device=HERE), cache)


@torch.inference_mode()
def test_the_comparison_with_the_plain_form_finds_wrong_kernels(stack: Transformer) -> None:
    slots, cos, sin = fake_slots(stack.config), *rotary(stack.config)
    talk = talker_forward.TalkerForward(stack, slots, cos, sin)  # type: ignore[arg-type]

    def plain(x: Tensor, index: Tensor, positions: Tensor) -> Tensor:
        attend = SlotAttend(slots.cache, index, index, positions, POSITIONS)
        return stack.run(x, (cos[positions][:, None], sin[positions][:, None]), attend)

    assert talker_forward.talker_difference(talk, plain, slots) < 1e-4  # type: ignore[arg-type]
    wrong = talker_forward.TalkerForward(stack, slots, cos, -sin)  # type: ignore[arg-type]
    assert talker_forward.talker_difference(wrong, plain, slots) > talker_forward.TOLERANCES[4]  # type: ignore[arg-type]


@few
@given(
    starts=st.lists(st.integers(0, POSITIONS - 40), min_size=1, max_size=SLOTS),
    length=st.integers(1, 40),
    small=st.booleans(),
)
@torch.inference_mode()
def test_layers_and_their_cache_equal_plain_torch(
    stack: Transformer, starts: list[int], length: int, small: bool
) -> None:
    """One new position a row, by both paths, and many; and the keys and values in the cache."""
    plain, fused = fake_slots(stack.config), fake_slots(stack.config)
    cos, sin = rotary(stack.config)
    index = torch.arange(SLOTS, device=HERE).flip(0)[: len(starts)]
    positions = torch.tensor(starts, device=HERE)[:, None] + torch.arange(length, device=HERE)
    x = drawn(len(starts), length, stack.config.hidden_size, seed=length)
    attend = SlotAttend(plain.cache, index, index, positions, POSITIONS)
    wanted = stack.run(x, (cos[positions][:, None], sin[positions][:, None]), attend)
    talk = talker_forward.TalkerForward(stack, fused, cos, sin)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(talker_forward, "FUSED_ROWS", 16 if small else 0)
        if length > 1:
            made = talk.prefill(x, index, positions)
        else:
            made = talk(x[:, 0], index, positions[:, 0])[:, None]
            again = talk(x[:, 0], index, positions[:, 0])[:, None]
            assert torch.equal(made, again)
    torch.testing.assert_close(made, wanted, rtol=1e-3, atol=1e-4)
    for each, other in zip(fused.cache.tensors, plain.cache.tensors, strict=True):
        torch.testing.assert_close(each, other, rtol=1e-3, atol=1e-4)
