"""The talker's attention in Triton: new queries and keys are normed and rotated, new keys and
values are written to the cache, then each row attends over its own positions.

One kernel for one new position per row, two for prompts. Imported only where Triton is installed.
"""

# ruff: noqa: N803 - constants of a kernel are in capitals
from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def norm_rotate(x, norm, cos, sin, DIM: tl.constexpr, eps, there):
    """RMS norm and rotary embedding of heads [N, DIM] at pointers x [N, 1], for one position."""
    d = tl.arange(0, DIM)
    other = (d + DIM // 2) % DIM
    own = tl.load(x + d[None, :], mask=there, other=0.0).to(tl.float32)
    half = tl.load(x + other[None, :], mask=there, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(own * own, 1) / DIM + eps)[:, None]
    own *= scale * tl.load(norm + d).to(tl.float32)[None, :]
    half *= scale * tl.load(norm + other).to(tl.float32)[None, :]
    cosine, sine = tl.load(cos + d).to(tl.float32), tl.load(sin + d).to(tl.float32)
    return own * cosine[None, :] + half * sine[None, :]


@triton.jit
def _attend(
    qkv, q_norm, k_norm, cos, sin, index, position, keys, values, out, parts, finished,
    slot_step, head_step, step, eps, scale,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, DIM: tl.constexpr, GROUP: tl.constexpr,
    QUERIES: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    row, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    slot, at = tl.load(index + row), tl.load(position + row)
    d, g = tl.arange(0, DIM), tl.arange(0, QUERIES)
    base = qkv + row * (HEADS + 2 * KV_HEADS) * DIM
    cos, sin = cos + at * DIM, sin + at * DIM
    kind = keys.dtype.element_ty
    one = tl.zeros((1, 1), tl.int32)
    place = slot * slot_step + head * head_step
    valid = (g < GROUP)[:, None]
    own = base + (head * GROUP + g)[:, None] * DIM
    q = norm_rotate(own, q_norm, cos, sin, DIM, eps, valid).to(kind)  # [QUERIES, DIM]
    best = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    values_sum = tl.zeros((QUERIES, DIM), tl.float32)
    if split == 0:  # the new key and value are stored, and used from registers
        new = norm_rotate(base + (HEADS + head) * DIM + one, k_norm, cos, sin, DIM, eps, one == 0)
        new = new.to(kind)  # [1, DIM]
        value = tl.load(base + (HEADS + KV_HEADS + head) * DIM + d)[None, :]
        tl.store(keys + place + at * step + d[None, :], new)
        tl.store(values + place + at * step + d[None, :], value)
        best = tl.sum(q.to(tl.float32) * new.to(tl.float32), 1) * scale
        total += 1.0
        values_sum += value.to(tl.float32)
    for start in range(split * BLOCK, at, SPLITS * BLOCK):
        n = start + tl.arange(0, BLOCK)
        past = n < at
        k = tl.load(keys + place + n[None, :] * step + d[:, None], mask=past[None, :], other=0.0)
        score = tl.dot(q, k, input_precision="ieee") * scale
        score = tl.where(past[None, :], score, float("-inf"))
        new_best = tl.maximum(best, tl.max(score, 1))
        share, fade = tl.exp(score - new_best[:, None]), tl.exp(best - new_best)
        v = tl.load(values + place + n[:, None] * step + d[None, :], mask=past[:, None], other=0.0)
        values_sum = values_sum * fade[:, None] + tl.dot(share.to(kind), v, input_precision="ieee")
        total = total * fade + tl.sum(share, 1)
        best = new_best
    heads = (row * HEADS + head * GROUP + g)[:, None] * DIM + d[None, :]
    if SPLITS == 1:
        tl.store(out + heads, (values_sum / total[:, None]).to(kind), mask=valid)
    else:
        group = row * KV_HEADS + head
        part = parts + (group * SPLITS + split) * GROUP * (DIM + 2)
        _store_part(part, values_sum, best, total, GROUP, DIM, QUERIES)
        tl.debug_barrier()  # the whole part is written before it is counted
        if (
            tl.atomic_add(finished + group, 1, sem="acq_rel") == SPLITS - 1
        ):  # the last split combines all
            tl.debug_barrier()
            result = _combined(
                parts + group * SPLITS * GROUP * (DIM + 2), GROUP, DIM, QUERIES, SPLITS
            )
            tl.store(out + heads, result.to(kind), mask=valid)
            tl.store(finished + group, 0)


@triton.jit
def _store_part(
    part, values_sum, best, total, GROUP: tl.constexpr, DIM: tl.constexpr, QUERIES: tl.constexpr
):
    d, g = tl.arange(0, DIM), tl.arange(0, QUERIES)
    valid = g < GROUP
    tl.store(part + g[:, None] * DIM + d[None, :], values_sum, mask=valid[:, None])
    tl.store(part + GROUP * DIM + g, best, mask=valid)
    tl.store(part + GROUP * (DIM + 1) + g, total, mask=valid)


@triton.jit
def _combined(
    parts, GROUP: tl.constexpr, DIM: tl.constexpr, QUERIES: tl.constexpr, SPLITS: tl.constexpr
):
    """The attended values [QUERIES, DIM] of all parts, added in a fixed order."""
    d, g = tl.arange(0, DIM), tl.arange(0, QUERIES)
    valid = g < GROUP
    best = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    values_sum = tl.zeros((QUERIES, DIM), tl.float32)
    for split in tl.static_range(SPLITS):
        part = parts + split * GROUP * (DIM + 2)
        part_best = tl.load(part + GROUP * DIM + g, mask=valid, other=0.0, cache_modifier=".cg")
        weight = tl.load(part + GROUP * (DIM + 1) + g, mask=valid, other=1.0, cache_modifier=".cg")
        value = tl.load(
            part + g[:, None] * DIM + d[None, :],
            mask=valid[:, None],
            other=0.0,
            cache_modifier=".cg",
        )
        new_best = tl.maximum(best, part_best)
        fade, share = tl.exp(best - new_best), tl.exp(part_best - new_best)
        values_sum = values_sum * fade[:, None] + value * share[:, None]
        total = total * fade + weight * share
        best = new_best
    return values_sum / total[:, None]


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
    _attend[(rows, kv_heads, tile.splits)](
        qkv, *norms, heads.cos, heads.sin, index, position, keys, values, out, parts,
        heads.finished,
        *keys.stride()[:3], heads.eps, dim**-0.5,
        HEADS=heads.heads, KV_HEADS=kv_heads, DIM=dim, GROUP=group,
        QUERIES=max(16, triton.next_power_of_2(group)), BLOCK=tile.block, SPLITS=tile.splits,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["length"])
def _store_keys(
    qkv, q_norm, k_norm, cos, sin, index, position, queries, keys, values, length,
    slot_step, head_step, step, eps,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    each, head = tl.program_id(0), tl.program_id(1)  # a new position, and a head of q, k or v
    slot, at = tl.load(index + each // length), tl.load(position + each)
    d, one = tl.arange(0, DIM)[None, :], tl.zeros((1, 1), tl.int32)
    own = qkv + (each * (HEADS + 2 * KV_HEADS) + head) * DIM
    cos, sin = cos + at * DIM, sin + at * DIM
    if head < HEADS:
        result = norm_rotate(own + one, q_norm, cos, sin, DIM, eps, one == 0)
        tl.store(queries + (each * HEADS + head) * DIM + d, result.to(queries.dtype.element_ty))
    elif head < HEADS + KV_HEADS:
        result = norm_rotate(own + one, k_norm, cos, sin, DIM, eps, one == 0)
        place = slot * slot_step + (head - HEADS) * head_step + at * step
        tl.store(keys + place + d, result.to(keys.dtype.element_ty))
    else:
        place = slot * slot_step + (head - HEADS - KV_HEADS) * head_step + at * step
        tl.store(values + place + d, tl.load(own + d))


@triton.jit(do_not_specialize=["length"])
def _attend_prompt(
    queries, index, position, keys, values, out, length, slot_step, head_step, step, scale,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, DIM: tl.constexpr, GROUP: tl.constexpr,
    QUERIES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, head, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    slot = tl.load(index + row)
    d, query = tl.arange(0, DIM), tl.arange(0, QUERIES)
    each = QUERIES // GROUP  # new positions per program; a few queries may idle
    new = block * each + query // GROUP
    there = (new < length) & (query < each * GROUP)
    at = tl.load(position + row * length + new, mask=there, other=0)
    place = slot * slot_step + head * head_step
    heads = ((row * length + new) * HEADS + head * GROUP + query % GROUP)[:, None] * DIM + d[
        None, :
    ]
    q = tl.load(queries + heads, mask=there[:, None], other=0.0)
    best = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    values_sum = tl.zeros((QUERIES, DIM), tl.float32)
    last = tl.max(at, 0)
    for start in range(0, last + 1, BLOCK):
        n = start + tl.arange(0, BLOCK)
        valid_keys = n <= last
        k = tl.load(
            keys + place + n[None, :] * step + d[:, None], mask=valid_keys[None, :], other=0.0
        )
        score = tl.dot(q, k, input_precision="ieee") * scale
        score = tl.where(n[None, :] <= at[:, None], score, float("-inf"))
        new_best = tl.maximum(best, tl.max(score, 1))
        share, fade = tl.exp(score - new_best[:, None]), tl.exp(best - new_best)
        v = tl.load(
            values + place + n[:, None] * step + d[None, :], mask=valid_keys[:, None], other=0.0
        )
        values_sum = values_sum * fade[:, None] + tl.dot(
            share.to(v.dtype), v, input_precision="ieee"
        )
        total = total * fade + tl.sum(share, 1)
        best = new_best
    result = (values_sum / total[:, None]).to(out.dtype.element_ty)
    tl.store(out + heads, result, mask=there[:, None])


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
    _store_keys[(rows * length, heads.heads + 2 * kv_heads)](
        qkv, *norms, heads.cos, heads.sin, index, position, queries, keys, values,
        length, *steps, heads.eps, HEADS=heads.heads, KV_HEADS=kv_heads, DIM=dim, num_warps=1,
    )  # fmt: skip
    out, block = torch.empty_like(queries), max(32, triton.next_power_of_2(group))
    _attend_prompt[(rows, kv_heads, triton.cdiv(length, block // group))](
        queries, index, position, keys, values, out, length, *steps, dim**-0.5,
        HEADS=heads.heads, KV_HEADS=kv_heads, DIM=dim, GROUP=group, QUERIES=block, BLOCK=64,
        num_warps=4, num_stages=2,
    )  # fmt: skip
    return out
