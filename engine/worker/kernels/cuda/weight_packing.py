"""Weights in the order in which the blocks of a fused kernel use them.

Weights come in stages of eight outputs and a slab of inputs for each block, and within a
stage 16 bytes for each lane of a warp. Norm weights are folded into what follows them.
Knows networks, not kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.model.configs import TransformerConfig
from engine.model.layers import Block
from engine.worker.kernels.cuda.launch_config import Fit

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


def layers(blocks: Sequence[Block], fit: Fit) -> Tensor:
    """All of them, [layers, stages, blocks, 8 * slab], never twice at a time."""
    first = layer(blocks[0], fit)
    whole = first.new_empty(len(blocks), *first.shape)
    for block, place in zip(blocks, whole, strict=True):
        place.copy_(layer(block, fit))
    return whole


def norms(blocks: Sequence[Block]) -> Tensor:
    """Of queries and keys, [layers, 2, d]."""
    each = [(block.self_attn.q_norm.weight, block.self_attn.k_norm.weight) for block in blocks]
    return torch.stack([torch.stack(pair) for pair in each]).float()


def between(
    config: TransformerConfig, rows: int, like: Tensor, crews: int = 1
) -> dict[str, Tensor]:
    """What lies between a layer's phases, and the crews' barriers, which start at zero."""
    mixed = config.heads * config.head_dim
    qkv = mixed + 2 * config.kv_heads * config.head_dim
    widths = dict(x=config.hidden_size, qkv=qkv, mixed=mixed, gated=config.intermediate_size)
    made = {name: like.new_empty(rows, width) for name, width in widths.items()}
    return made | {"barrier": torch.zeros(2 * crews, dtype=torch.int32, device=like.device)}


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
