"""Weights in the order in which the blocks of a fused kernel use them.

Weights come in stages of eight outputs and a slab of inputs for each block, and within a
stage 16 bytes for each lane of a warp. Norm weights are folded into what follows them.
Knows networks, not kernels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.layers import Block
from engine.worker.kernels.fitting import Fit

LANE = 32  # inputs that four lanes of a row take


def stages(weight: Tensor, blocks: int, slab: int, parts: int = 1) -> Tensor:
    """weight [outputs, inputs] -> [stages, blocks, 8 * slab], a part of the outputs first."""
    outputs, inputs = weight.shape
    columns = outputs // blocks // 8 // parts
    grid = weight.view(blocks, parts, columns, 8, inputs // slab, slab // LANE, LANE)
    return grid.permute(1, 4, 2, 0, 5, 3, 6).reshape(-1, blocks, 8 * slab)


def folded(weight: Tensor, norm: Tensor) -> Tensor:
    """A linear weight that takes what has not met the norm's weight."""
    return (weight.float() * norm.float()).to(weight.dtype)


def paired(gate_up: Tensor, parts: int) -> Tensor:
    """Gate rows, then up rows -> for each part its gates' rows, then its ups'."""
    gates, ups = (half.unflatten(0, (parts, -1)) for half in gate_up.chunk(2))
    return torch.cat((gates, ups), 1).flatten(0, 1)


def layer(block: Block, fit: Fit) -> Tensor:
    """A transformer block: [stages, blocks, 8 * slab]."""
    attention, mlp = block.self_attn, block.mlp
    gate_up = folded(mlp.gate_up_proj.weight, block.post_attention_layernorm.weight)
    weights = (
        folded(attention.qkv_proj.weight, block.input_layernorm.weight),
        attention.o_proj.weight,
        paired(gate_up, fit.blocks * fit.parts[2]),
        mlp.down_proj.weight,
    )
    each = zip(weights, fit.parts, strict=True)
    return torch.cat([stages(weight, fit.blocks, fit.slab, parts) for weight, parts in each])
