"""The codec's blocks stream as they run whole, and products equal convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from engine.model.conv_matmul import conv_product, upsample_product
from engine.model.convs import (
    CausalConv,
    CausalUpsample,
    ConvCache,
    ConvNeXtBlock,
    DecoderBlock,
    ResidualUnit,
    conv_cache_size,
)

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SIZES = st.integers(1, 6)

Make: TypeAlias = Callable[[], nn.Module]
CHANNELS = 12  # some pieces are shorter than this, and go by a product, some are longer
PARTS: dict[str, Make] = {
    "conv": lambda: CausalConv(CHANNELS, 3, 7, dilation=3),
    "pointwise": lambda: CausalConv(CHANNELS, 3, 1),
    "strided": lambda: CausalConv(CHANNELS, 3, 6, stride=2),
    "upsample k=r": lambda: CausalUpsample(CHANNELS, 3, 2, 2),
    "upsample k=2r": lambda: CausalUpsample(CHANNELS, 3, 6, 3),
    "upsample k=3r": lambda: CausalUpsample(CHANNELS, 3, 6, 2),
    "convnext": lambda: ConvNeXtBlock(CHANNELS),
    "residual unit": lambda: ResidualUnit(CHANNELS, 9),
    "decoder block": lambda: DecoderBlock(CHANNELS, 6, 5),
}


def drawn(make: Make) -> nn.Module:
    """A block with random weights."""
    torch.manual_seed(0)
    part = make()
    for weight in part.parameters():
        nn.init.normal_(weight, std=0.3)
    return part


@pytest.mark.parametrize("kind", PARTS)
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
@torch.no_grad()
def test_a_block_streams_as_it_runs_whole(kind: str, pieces: list[int]) -> None:
    part = drawn(PARTS[kind])
    pieces = [2 * piece for piece in pieces]  # a multiple of every stride
    x = torch.randn(2, CHANNELS, sum(pieces))
    flat, outs = torch.zeros(2, conv_cache_size(part)), []
    for piece in x.split(pieces, -1):
        cache = ConvCache(flat)
        outs.append(part(piece, cache))
        flat = cache.collect() if conv_cache_size(part) else flat
    torch.testing.assert_close(torch.cat(outs, -1), part(x), **CLOSE)


@settings(max_examples=40, deadline=None)
@given(SIZES, SIZES, SIZES, st.integers(1, 9), SIZES, st.booleans())
@torch.no_grad()
def test_a_product_equals_a_convolution(
    channels: int, out: int, kernel: int, dilation: int, length: int, bias: bool
) -> None:
    conv = nn.Conv1d(channels, out, kernel, dilation=dilation, bias=bias)
    x = torch.randn(2, channels, (kernel - 1) * dilation + length)
    torch.testing.assert_close(conv_product(conv, x), conv(x), **CLOSE)


@settings(max_examples=40, deadline=None)
@given(SIZES, SIZES, SIZES, st.integers(1, 3), SIZES, st.booleans())
@torch.no_grad()
def test_a_product_equals_a_transposed_convolution(
    channels: int, out: int, rate: int, taps: int, length: int, bias: bool
) -> None:
    conv = nn.ConvTranspose1d(channels, out, taps * rate, rate, bias=bias)
    x = torch.randn(2, channels, taps - 1 + length)
    full = conv(x)
    inner: Tensor = full[..., (taps - 1) * rate :][..., : length * rate]
    torch.testing.assert_close(upsample_product(conv, x), inner, **CLOSE)
