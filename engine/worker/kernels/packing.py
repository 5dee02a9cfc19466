"""Weights in the order in which the blocks of a fused kernel use them.

Weights come in stages of eight outputs and a slab of inputs for each block, and within a
stage 16 bytes for each lane of a warp. Norm weights are folded into what follows them.
Knows networks, not kernels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.layers import Block

LANE = 32  # inputs that four lanes of a row take


def stages(weight: Tensor, blocks: int, slab: int) -> Tensor:
    """weight [outputs, inputs] -> [stages, blocks, 8 * slab]."""
    outputs, inputs = weight.shape
    grid = weight.view(blocks, outputs // blocks // 8, 8, inputs // slab, slab // LANE, LANE)
    return grid.permute(3, 1, 0, 4, 2, 5).reshape(-1, blocks, 8 * slab)


def folded(weight: Tensor, norm: Tensor) -> Tensor:
    """A linear weight that takes what has not met the norm's weight."""
    return (weight.float() * norm.float()).to(weight.dtype)


def paired(gate_up: Tensor, blocks: int) -> Tensor:
    """Gate rows, then up rows -> for each block its gates' rows, then its ups'."""
    gates, ups = (half.unflatten(0, (blocks, -1)) for half in gate_up.chunk(2))
    return torch.cat((gates, ups), 1).flatten(0, 1)


def layer(block: Block, blocks: int, slab: int) -> Tensor:
    """A transformer block: [stages, blocks, 8 * slab]."""
    attention, mlp = block.self_attn, block.mlp
    weights = (
        folded(attention.qkv_proj.weight, block.input_layernorm.weight),
        attention.o_proj.weight,
        paired(folded(mlp.gate_up_proj.weight, block.post_attention_layernorm.weight), blocks),
        mlp.down_proj.weight,
    )
    return torch.cat([stages(weight, blocks, slab) for weight in weights])
