"""The talker's kernels in Triton: products of a few rows, norms, gates and attention.

`linear` and `attention` launch them and say what they compute. Imports no torch, as the processes
that compile them have none.
"""

# ruff: noqa: N803 - constants of a kernel are in capitals
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows", "parts"])
def talk_product(
    x, weight, squares, added, norm, out, scaled, sums, rows, columns, parts, eps,
    NORMED: tl.constexpr, GATED: tl.constexpr, ADDED: tl.constexpr, EVEN: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INPUTS: tl.constexpr,
    SPLIT: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    column = block * COLUMNS + tl.arange(0, COLUMNS)
    valid_row, wanted = row < rows, column < columns
    warp, input = tl.arange(0, SPLIT)[:, None, None] * INPUTS, tl.arange(0, INPUTS)
    # each warp has its part of the inputs: [SPLIT, ROWS, INPUTS] by [SPLIT, INPUTS, COLUMNS]
    left = x + row[None, :, None] * WIDTH + warp + input[None, None, :]
    right = weight + column[None, None, :].to(tl.int64) * WIDTH + warp + input[None, :, None]
    total = tl.zeros((SPLIT, ROWS, COLUMNS), tl.float32)
    up_sums = tl.zeros((SPLIT, ROWS, COLUMNS), tl.float32)
    for start in range(0, WIDTH, SPLIT * INPUTS):
        if EVEN:
            a = tl.load(left + start, mask=valid_row[None, :, None], other=0.0)
            b = tl.load(right + start)
        else:
            inside = start + warp + input[None, None, :] < WIDTH
            a = tl.load(left + start, mask=valid_row[None, :, None] & inside, other=0.0)
            inside = (start + warp + input[None, :, None] < WIDTH) & wanted[None, None, :]
            b = tl.load(right + start, mask=inside, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
        if GATED:  # the up columns follow the gate columns
            up = right + columns.to(tl.int64) * WIDTH + start
            b = tl.load(up) if EVEN else tl.load(up, mask=inside, other=0.0)
            up_sums = tl.dot(a, b, up_sums, input_precision="ieee")
    result, up = tl.sum(total, 0), tl.sum(up_sums, 0)  # [ROWS, COLUMNS]
    if NORMED:
        part = tl.arange(0, PARTS)
        valid = (part < parts)[:, None] & valid_row[None, :]
        found = tl.load(squares + part[:, None] * rows + row[None, :], mask=valid, other=0.0)
        scale = tl.rsqrt(tl.sum(found, 0) / WIDTH + eps)[:, None]
        result, up = result * scale, up * scale
    if GATED:
        result = result / (1.0 + tl.exp(-result)) * up
    place = row[:, None] * columns + column[None, :]
    valid = valid_row[:, None] & wanted[None, :]
    if ADDED:
        result += tl.load(added + place, mask=valid, other=0.0).to(tl.float32)
    kind = out.dtype.element_ty
    tl.store(out + place, result.to(kind), mask=valid)
    if ADDED:  # also write the input of the next product
        result = tl.where(valid, result.to(kind).to(tl.float32), 0.0)
        factor = tl.load(norm + column, mask=wanted, other=0.0).to(tl.float32)
        tl.store(scaled + place, (result * factor[None, :]).to(kind), mask=valid)
        tl.store(sums + block * rows + row, tl.sum(result * result, 1), mask=valid_row)


@triton.jit
def talk_add_norm(
    x, added, weight, total, out, width, eps, ADDED: tl.constexpr, BLOCK: tl.constexpr
):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < width
    own = tl.load(x + row * width + at, mask=inside, other=0.0)
    if ADDED:
        own += tl.load(added + row * width + at, mask=inside, other=0.0)
        tl.store(total + row * width + at, own, mask=inside)
    own = own.to(tl.float32)
    own *= tl.rsqrt(tl.sum(own * own, 0) / width + eps)
    own *= tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, own.to(out.dtype.element_ty), mask=inside)


@triton.jit
def talk_gate(x, out, inner, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < inner
    gate = tl.load(x + row * 2 * inner + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * inner + inner + at, mask=inside, other=0.0).to(tl.float32)
    result = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out + row * inner + at, result.to(out.dtype.element_ty), mask=inside)


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
def talk_attend(
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


@triton.jit(do_not_specialize=["length"])
def store_keys(
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
def attend_prompt(
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
