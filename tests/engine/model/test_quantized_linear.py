"""Layers in 8 and 4 bits: near the full ones, row by row, and only where the products take them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from engine.model.quantized_linear import GROUP, QuantizedLinear

ERRORS = {8: 0.012, 4: 0.11}  # relative, of weights that are normally distributed


def layers(bits: int, inputs: int = 64, outputs: int = 48) -> tuple[nn.Linear, QuantizedLinear]:
    torch.manual_seed(bits)
    full = nn.Linear(inputs, outputs, bias=False).requires_grad_(False)
    packed = QuantizedLinear(full, bits)
    packed.pack()
    return full, packed


def apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("shape", [(64,), (1, 64), (5, 64), (2, 33, 64)])
def test_products_are_near_the_full_ones(bits: int, shape: tuple[int, ...]) -> None:
    full, packed = layers(bits)
    x = torch.randn(*shape)
    made = packed(x)
    assert made.dtype == x.dtype
    assert made.shape == full(x).shape
    assert apart(made, full(x)) < ERRORS[bits]


@pytest.mark.parametrize("bits", [8, 4])
def test_a_row_is_the_same_alone_and_among_others(bits: int) -> None:
    _, packed = layers(bits, 256, 128)
    x = torch.randn(4, 256)
    together = packed(x)
    for row in range(4):
        assert torch.equal(packed(x[row : row + 1])[0], together[row])


@pytest.mark.parametrize("bits", [8, 4])
def test_a_bias_is_added(bits: int) -> None:
    full = nn.Linear(64, 48).requires_grad_(False)
    packed, x = QuantizedLinear(full, bits), torch.randn(3, 64)
    packed.pack()
    assert apart(packed(x), full(x)) < ERRORS[bits]


def test_only_few_bits_are_kept() -> None:
    full, in_8 = layers(8)
    _, in_4 = layers(4)
    kept = {
        layer.bits: sum(t.nbytes for t in layer.state_dict().values()) for layer in (in_8, in_4)
    }
    assert not list(in_8.parameters())
    assert kept[8] == full.weight.numel() + 2 * full.out_features
    assert kept[4] == full.weight.numel() // 2 + 4 * full.weight.numel() // GROUP


@pytest.mark.parametrize("bits", [8, 4])
def test_weights_that_are_all_zero_stay_so(bits: int) -> None:
    nothing = QuantizedLinear(nn.Linear(64, 48, bias=False).requires_grad_(False), bits)
    nothing.weight.zero_()
    nothing.pack()
    assert torch.equal(nothing(torch.randn(3, 64)), torch.zeros(3, 48))


@pytest.mark.parametrize(("inputs", "outputs"), [(33, 48), (64, 40), (16, 16)])
def test_odd_shapes_stay_full(inputs: int, outputs: int) -> None:
    assert not QuantizedLinear.takes(nn.Linear(inputs, outputs, bias=False))
    assert QuantizedLinear.takes(nn.Linear(64, 48, bias=False))
