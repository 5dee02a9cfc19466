"""The talker's attention in Triton: new queries and keys are normed and rotated, new keys and
values are written to the cache, then each row attends over its own positions.

One kernel for one new position per row, two for prompts. Imported only where Triton is installed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from engine.worker.kernels.triton import talker_kernels as kernels
from engine.worker.kernels.triton.launch import launch


@dataclass(frozen=True)
class AttentionTile:
    """How attention over a row is tiled."""

    block: int  # positions at a time
    warps: int
    stages: int  # of loads ahead
    splits: int  # programs that share a row's positions


DEFAULT_TILE = AttentionTile(64, 4, 3, 1)


@dataclass(frozen=True)
class HeadConfig:
    """A talker's heads and their rotary embedding."""

    heads: int
    kv_heads: int
    eps: float
    cos: Tensor  # [positions, head_dim]
    sin: Tensor  # signed, as `rotary_embedding` gives it
    finished: Tensor  # [rows * kv_heads] int32 zeros: finished parts of each group


def attend(
    qkv: Tensor,
    norms: tuple[Tensor, Tensor],
    heads: HeadConfig,
    index: Tensor,
    position: Tensor,
    keys: Tensor,
    values: Tensor,
    tile: AttentionTile = DEFAULT_TILE,
) -> Tensor:
    """New queries, keys and values [R, (heads + 2 kv_heads) * d] of rows at their positions [R].

    The new ones are written to keys and values [slots, kv_heads, positions, d], whose strides are
    equal -> attended values [R, heads * d].
    """
    rows, (_, kv_heads, _, dim) = len(qkv), keys.shape
    out = qkv.new_empty(rows, heads.heads * dim)
    group = heads.heads // kv_heads
    parts = qkv.new_empty(rows * heads.heads * tile.splits * (dim + 2), dtype=torch.float32)
    launch(
        kernels.talk_attend, (rows, kv_heads, tile.splits),
        qkv, *norms, heads.cos, heads.sin, index, position, keys, values, out, parts,
        heads.finished,
        *keys.stride()[:3], heads.eps, dim**-0.5,
        HEADS=heads.heads, KV_HEADS=kv_heads, DIM=dim, GROUP=group,
        QUERIES=max(16, triton.next_power_of_2(group)), BLOCK=tile.block, SPLITS=tile.splits,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return out


def attend_prompt(
    qkv: Tensor,
    norms: tuple[Tensor, Tensor],
    heads: HeadConfig,
    index: Tensor,
    position: Tensor,
    keys: Tensor,
    values: Tensor,
) -> Tensor:
    """As `attend` for T new positions a row: qkv [R * T, ...] at positions [R, T]."""
    (rows, length), (_, kv_heads, _, dim), steps = position.shape, keys.shape, keys.stride()[:3]
    queries = qkv.new_empty(rows * length, heads.heads * dim)
    group = heads.heads // kv_heads
    launch(
        kernels.store_keys, (rows * length, heads.heads + 2 * kv_heads),
        qkv, *norms, heads.cos, heads.sin, index, position, queries, keys, values,
        length, *steps, heads.eps, HEADS=heads.heads, KV_HEADS=kv_heads, DIM=dim, num_warps=1,
    )  # fmt: skip
    out, block = torch.empty_like(queries), max(32, triton.next_power_of_2(group))
    launch(
        kernels.attend_prompt, (rows, kv_heads, triton.cdiv(length, block // group)),
        queries, index, position, keys, values, out, length, *steps, dim**-0.5,
        HEADS=heads.heads, KV_HEADS=kv_heads, DIM=dim, GROUP=group, QUERIES=block, BLOCK=64,
        num_warps=4, num_stages=2,
    )  # fmt: skip
    return out
