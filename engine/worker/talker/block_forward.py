"""The way of many rows through a network's blocks, whoever makes the products on it.

Knows the order of things, no kernels but those of two and four bytes, and no attention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.layers import Attention, Block, RMSNorm, Transformer

AttendLayer: TypeAlias = Callable[[int, Attention, Tensor], Tensor]  # qkv -> mixed values


class Plain:
    """Products are the library's, of weights as they are; the rest is `fused`."""

    def __init__(self) -> None:
        from engine.worker.kernels.triton import linear as fused  # it needs Triton

        self._fused = fused

    def normed(self, x: Tensor, added: Tensor | None, norm: RMSNorm) -> tuple[Tensor, Tensor]:
        pair: tuple[Tensor, Tensor] = self._fused.add_norm(x, added, norm.weight, norm.eps)
        return pair

    def product(self, rows: Tensor, linear: nn.Linear) -> Tensor:
        return F.linear(rows, linear.weight)

    def gated(self, gates: Tensor) -> Tensor:
        inner: Tensor = self._fused.gate(gates)
        return inner


def walk(
    stack: Transformer, products: Plain, x: Tensor, attend: AttendLayer
) -> tuple[Tensor, Tensor]:
    """Inputs [R, width] behind all blocks: rows, and what the last one adds to them."""
    added = None
    for layer, block in enumerate(blocks(stack)):
        x, normed = products.normed(x, added, block.input_layernorm)
        mixed = attend(layer, block.self_attn, products.product(normed, block.self_attn.qkv_proj))
        added = F.linear(mixed, block.self_attn.o_proj.weight)
        x, normed = products.normed(x, added, block.post_attention_layernorm)
        inner = products.gated(products.product(normed, block.mlp.gate_up_proj))
        added = products.product(inner, block.mlp.down_proj)
    assert added is not None
    return x, added


def blocks(stack: Transformer) -> list[Block]:
    return list(stack.layers)  # type: ignore[arg-type]
