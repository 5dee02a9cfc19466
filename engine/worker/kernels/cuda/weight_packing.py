"""Stores weights in the order in which the blocks of a persistent kernel read them.

A stage holds eight outputs and a slab of inputs of one block, 16 bytes for each lane of a warp at a
time. Norm weights are folded into the weights after them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.model.configs import TransformerConfig
from engine.model.layers import Block
from engine.worker.kernels.cuda.launch_config import POSTED_ROWS, LaunchConfig

LANE_INPUTS = 32  # inputs that the four lanes of a row read


def pack_stages(weight: Tensor, blocks: int, slab: int, parts: int = 1) -> Tensor:
    """weight [outputs, inputs] -> [stages, blocks, 8 * slab], one part of the outputs first."""
    outputs, inputs = weight.shape
    columns = outputs // blocks // 8 // parts
    grid = weight.view(blocks, parts, columns, 8, inputs // slab, slab // LANE_INPUTS, LANE_INPUTS)
    return grid.permute(1, 4, 2, 0, 5, 3, 6).reshape(-1, blocks, 8 * slab)


def fold_norm(weight: Tensor, norm: Tensor) -> Tensor:
    """A linear weight multiplied by the weight of the norm before it."""
    return (weight.float() * norm.float()).to(weight.dtype)


def interleave_gate_up(gate_up: Tensor, parts: int) -> Tensor:
    """Gate rows, then up rows -> for each part its gate rows, then its up rows."""
    gates, ups = (half.unflatten(0, (parts, -1)) for half in gate_up.chunk(2))
    return torch.cat((gates, ups), 1).flatten(0, 1)


def pack_layer(block: Block, launch: LaunchConfig) -> Tensor:
    """One transformer block: [stages, blocks, 8 * slab]."""
    attention, mlp = block.self_attn, block.mlp
    gate_up = fold_norm(mlp.gate_up_proj.weight, block.post_attention_layernorm.weight)
    weights = (
        fold_norm(attention.qkv_proj.weight, block.input_layernorm.weight),
        attention.o_proj.weight,
        interleave_gate_up(gate_up, launch.blocks * launch.parts[2]),
        mlp.down_proj.weight,
    )
    pairs = zip(weights, launch.parts, strict=True)
    packed = (pack_stages(weight, launch.blocks, launch.slab, parts) for weight, parts in pairs)
    return torch.cat(list(packed))


def pack_layers(blocks: Sequence[Block], launch: LaunchConfig) -> Tensor:
    """[layers, stages, blocks, 8 * slab]; packed layer by layer to save memory."""
    first = pack_layer(blocks[0], launch)
    packed = first.new_empty(len(blocks), *first.shape)
    for block, place in zip(blocks, packed, strict=True):
        place.copy_(pack_layer(block, launch))
    return packed


def stack_norms(blocks: Sequence[Block]) -> Tensor:
    """Norm weights of queries and keys: [layers, 2, d]."""
    pairs = [pair for block in blocks if (pair := block.self_attn.norms())]
    each = [(q.weight, k.weight) for q, k in pairs]
    return torch.stack([torch.stack(pair) for pair in each]).float()


def allocate_scratch(
    config: TransformerConfig, rows: int, like: Tensor, partitions: int = 1
) -> dict[str, Tensor]:
    """Buffers for activations between phases, and the barriers, which start at zero."""
    attended = config.heads * config.head_dim
    qkv = attended + 2 * config.kv_heads * config.head_dim
    widths = dict(x=config.hidden_size, qkv=qkv, attended=attended, gated=config.intermediate_size)
    scratch = {name: like.new_empty(rows, width) for name, width in widths.items()}
    barrier = torch.zeros(2 * partitions, dtype=torch.int32, device=like.device)
    return scratch | {"barrier": barrier}


def allocate_posted(
    config: TransformerConfig, passes: int, drawn: int, device: torch.device
) -> dict[str, Tensor]:
    """Memory for what blocks post (grid.cu) in so many passes, `drawn` numbers after each: every
    word says that nothing is there. And the count of launches, and their rows."""
    attended = config.heads * config.head_dim
    qkv = attended + 2 * config.kv_heads * config.head_dim
    layer = 2 * config.hidden_size + qkv + attended + config.intermediate_size
    size = passes * (config.layers * layer + drawn)
    posted = torch.full((2, POSTED_ROWS, size), -1, dtype=torch.int16, device=device)
    launches = torch.zeros(3, dtype=torch.int32, device=device)
    return {"posted": posted, "launches": launches}
