"""A talker's attention on a GPU: what is new is normed, turned and kept, then all is read.

Triton kernels and their plain callers, for one new position a row and for prompts. Every
row reads as far as it goes itself. Needs Triton and a GPU, so it is imported only where both
are.
"""

# ruff: noqa: N803 - constants of a kernel are in capitals
from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def turned(x, norm, cos, sin, DIM: tl.constexpr, eps, there):
    """Heads [N, DIM] at pointers x [N, 1], normed and turned; `cos` and `sin` of one position."""
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
    qkv, q_norm, k_norm, cos, sin, index, position, keys, values, out, parts, done,
    slot_step, head_step, step, eps, scale,
    HEADS: tl.constexpr, KEPT: tl.constexpr, DIM: tl.constexpr, GROUP: tl.constexpr,
    QUERIES: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    row, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    slot, at = tl.load(index + row), tl.load(position + row)
    d, g = tl.arange(0, DIM), tl.arange(0, QUERIES)
    base = qkv + row * (HEADS + 2 * KEPT) * DIM
    cos, sin = cos + at * DIM, sin + at * DIM
    kind = keys.dtype.element_ty
    one = tl.zeros((1, 1), tl.int32)
    place = slot * slot_step + head * head_step
    mine = (g < GROUP)[:, None]
    own = base + (head * GROUP + g)[:, None] * DIM
    q = turned(own, q_norm, cos, sin, DIM, eps, mine).to(kind)  # [QUERIES, DIM]
    best = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    mixed = tl.zeros((QUERIES, DIM), tl.float32)
    if split == 0:  # the new key and value: kept, and used from here
        new = turned(base + (HEADS + head) * DIM + one, k_norm, cos, sin, DIM, eps, one == 0)
        new = new.to(kind)  # [1, DIM]
        value = tl.load(base + (HEADS + KEPT + head) * DIM + d)[None, :]
        tl.store(keys + place + at * step + d[None, :], new)
        tl.store(values + place + at * step + d[None, :], value)
        best = tl.sum(q.to(tl.float32) * new.to(tl.float32), 1) * scale
        total += 1.0
        mixed += value.to(tl.float32)
    for start in range(split * BLOCK, at, SPLITS * BLOCK):
        n = start + tl.arange(0, BLOCK)
        past = n < at
        k = tl.load(keys + place + n[None, :] * step + d[:, None], mask=past[None, :], other=0.0)
        score = tl.dot(q, k, input_precision="ieee") * scale
        score = tl.where(past[None, :], score, float("-inf"))
        higher = tl.maximum(best, tl.max(score, 1))
        share, fade = tl.exp(score - higher[:, None]), tl.exp(best - higher)
        v = tl.load(values + place + n[:, None] * step + d[None, :], mask=past[:, None], other=0.0)
        mixed = mixed * fade[:, None] + tl.dot(share.to(kind), v, input_precision="ieee")
        total = total * fade + tl.sum(share, 1)
        best = higher
    heads = (row * HEADS + head * GROUP + g)[:, None] * DIM + d[None, :]
    if SPLITS == 1:
        tl.store(out + heads, (mixed / total[:, None]).to(kind), mask=mine)
    else:
        group = row * KEPT + head
        part = parts + (group * SPLITS + split) * GROUP * (DIM + 2)
        _put(part, mixed, best, total, GROUP, DIM, QUERIES)
        tl.debug_barrier()  # all of the part is there before it is counted
        if tl.atomic_add(done + group, 1, sem="acq_rel") == SPLITS - 1:  # the last one joins all
            tl.debug_barrier()
            made = _joined(parts + group * SPLITS * GROUP * (DIM + 2), GROUP, DIM, QUERIES, SPLITS)
            tl.store(out + heads, made.to(kind), mask=mine)
            tl.store(done + group, 0)


@triton.jit
def _put(part, mixed, best, total, GROUP: tl.constexpr, DIM: tl.constexpr, QUERIES: tl.constexpr):
    d, g = tl.arange(0, DIM), tl.arange(0, QUERIES)
    mine = g < GROUP
    tl.store(part + g[:, None] * DIM + d[None, :], mixed, mask=mine[:, None])
    tl.store(part + GROUP * DIM + g, best, mask=mine)
    tl.store(part + GROUP * (DIM + 1) + g, total, mask=mine)


@triton.jit
def _joined(
    parts, GROUP: tl.constexpr, DIM: tl.constexpr, QUERIES: tl.constexpr, SPLITS: tl.constexpr
):
    """The parts' mixed values [QUERIES, DIM], always in the same order."""
    d, g = tl.arange(0, DIM), tl.arange(0, QUERIES)
    mine = g < GROUP
    best = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    mixed = tl.zeros((QUERIES, DIM), tl.float32)
    for split in tl.static_range(SPLITS):
        part = parts + split * GROUP * (DIM + 2)
        theirs = tl.load(part + GROUP * DIM + g, mask=mine, other=0.0, cache_modifier=".cg")
        weight = tl.load(part + GROUP * (DIM + 1) + g, mask=mine, other=1.0, cache_modifier=".cg")
        value = tl.load(
            part + g[:, None] * DIM + d[None, :],
            mask=mine[:, None],
            other=0.0,
            cache_modifier=".cg",
        )
        higher = tl.maximum(best, theirs)
        fade, share = tl.exp(best - higher), tl.exp(theirs - higher)
        mixed = mixed * fade[:, None] + value * share[:, None]
        total = total * fade + weight * share
        best = higher
    return mixed / total[:, None]


@dataclass(frozen=True)
class Cut:
    """How attention over a row is cut: positions at a time, warps, loads ahead, splits."""

    block: int
    warps: int
    stages: int
    splits: int


CUT = Cut(64, 4, 3, 1)


@dataclass(frozen=True)
class Turn:
    """What attention needs to know of a talker's heads."""

    heads: int
    kept: int  # heads of keys and values
    eps: float
    cos: Tensor  # [positions, head_dim]
    sin: Tensor  # signed
    done: Tensor  # [rows * kept] int32 zeros: parts of a group that are there


def attend(
    qkv: Tensor,
    norms: tuple[Tensor, Tensor],
    turn: Turn,
    index: Tensor,
    position: Tensor,
    keys: Tensor,
    values: Tensor,
    cut: Cut = CUT,
) -> Tensor:
    """New queries, keys and values [R, (heads + 2 kept) * d] of rows at their positions [R].

    keys and values [slots, kept, positions, d], which lie alike in any order of slots, heads and
    positions, keep what is new -> mixed values [R, heads * d].
    """
    rows, (_, kept, _, dim) = len(qkv), keys.shape
    out = qkv.new_empty(rows, turn.heads * dim)
    group = turn.heads // kept
    parts = qkv.new_empty(rows * turn.heads * cut.splits * (dim + 2), dtype=torch.float32)
    _attend[(rows, kept, cut.splits)](
        qkv, *norms, turn.cos, turn.sin, index, position, keys, values, out, parts, turn.done,
        *keys.stride()[:3], turn.eps, dim**-0.5,
        HEADS=turn.heads, KEPT=kept, DIM=dim, GROUP=group,
        QUERIES=max(16, triton.next_power_of_2(group)), BLOCK=cut.block, SPLITS=cut.splits,
        num_warps=cut.warps, num_stages=cut.stages,
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["length"])
def _keep(
    qkv, q_norm, k_norm, cos, sin, index, position, queries, keys, values, length,
    slot_step, head_step, step, eps,
    HEADS: tl.constexpr, KEPT: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    each, head = tl.program_id(0), tl.program_id(1)  # of the new positions, and of all heads
    slot, at = tl.load(index + each // length), tl.load(position + each)
    d, one = tl.arange(0, DIM)[None, :], tl.zeros((1, 1), tl.int32)
    own = qkv + (each * (HEADS + 2 * KEPT) + head) * DIM
    cos, sin = cos + at * DIM, sin + at * DIM
    if head < HEADS:
        made = turned(own + one, q_norm, cos, sin, DIM, eps, one == 0)
        tl.store(queries + (each * HEADS + head) * DIM + d, made.to(queries.dtype.element_ty))
    elif head < HEADS + KEPT:
        made = turned(own + one, k_norm, cos, sin, DIM, eps, one == 0)
        place = slot * slot_step + (head - HEADS) * head_step + at * step
        tl.store(keys + place + d, made.to(keys.dtype.element_ty))
    else:
        place = slot * slot_step + (head - HEADS - KEPT) * head_step + at * step
        tl.store(values + place + d, tl.load(own + d))


@triton.jit(do_not_specialize=["length"])
def _attend_prompt(
    queries, index, position, keys, values, out, length, slot_step, head_step, step, scale,
    HEADS: tl.constexpr, KEPT: tl.constexpr, DIM: tl.constexpr, GROUP: tl.constexpr,
    QUERIES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, head, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    slot = tl.load(index + row)
    d, query = tl.arange(0, DIM), tl.arange(0, QUERIES)
    each = QUERIES // GROUP  # of the row's new positions: this many, and perhaps a few queries idle
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
    mixed = tl.zeros((QUERIES, DIM), tl.float32)
    last = tl.max(at, 0)
    for start in range(0, last + 1, BLOCK):
        n = start + tl.arange(0, BLOCK)
        held = n <= last
        k = tl.load(keys + place + n[None, :] * step + d[:, None], mask=held[None, :], other=0.0)
        score = tl.dot(q, k, input_precision="ieee") * scale
        score = tl.where(n[None, :] <= at[:, None], score, float("-inf"))
        higher = tl.maximum(best, tl.max(score, 1))
        share, fade = tl.exp(score - higher[:, None]), tl.exp(best - higher)
        v = tl.load(values + place + n[:, None] * step + d[None, :], mask=held[:, None], other=0.0)
        mixed = mixed * fade[:, None] + tl.dot(share.to(v.dtype), v, input_precision="ieee")
        total = total * fade + tl.sum(share, 1)
        best = higher
    made = (mixed / total[:, None]).to(out.dtype.element_ty)
    tl.store(out + heads, made, mask=there[:, None])


def attend_prompt(
    qkv: Tensor,
    norms: tuple[Tensor, Tensor],
    turn: Turn,
    index: Tensor,
    position: Tensor,
    keys: Tensor,
    values: Tensor,
) -> Tensor:
    """As `attend` for T new positions a row: qkv [R * T, ...] at positions [R, T]."""
    (rows, length), (_, kept, _, dim), steps = position.shape, keys.shape, keys.stride()[:3]
    queries = qkv.new_empty(rows * length, turn.heads * dim)
    group = turn.heads // kept
    _keep[(rows * length, turn.heads + 2 * kept)](
        qkv, *norms, turn.cos, turn.sin, index, position, queries, keys, values,
        length, *steps, turn.eps, HEADS=turn.heads, KEPT=kept, DIM=dim, num_warps=1,
    )  # fmt: skip
    out, block = torch.empty_like(queries), max(32, triton.next_power_of_2(group))
    _attend_prompt[(rows, kept, triton.cdiv(length, block // group))](
        queries, index, position, keys, values, out, length, *steps, dim**-0.5,
        HEADS=turn.heads, KEPT=kept, DIM=dim, GROUP=group, QUERIES=block, BLOCK=64,
        num_warps=4, num_stages=2,
    )  # fmt: skip
    return out
