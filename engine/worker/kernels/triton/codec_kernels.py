"""The codec's Triton kernels: audio is channels last, [B, T, C].

Past samples are read in place from the streams' state rows, so nothing is concatenated before a
product. Bias, residual and activation are fused into it. The layers are in fused_decoder.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

# Arguments whose values kernels are not specialised for.
SIZES = ("total", "length", "history")


@triton.jit
def squared_sine(z):
    """sin² of any z: reduced to one period of π, then a short series."""
    turn = z - tl.floor(z * 0.3183098861837907 + 0.5) * 3.141592653589793
    square = turn * turn
    series = 2.7557319e-6 * square - 1.9841270e-4
    series = series * square + 8.3333333e-3
    series = series * square - 0.16666667
    sine = turn * (series * square + 1.0)
    return sine * sine


@triton.jit
def snake(x, alpha, scale, exact: tl.constexpr):
    """x + scale * sin²(alpha x). The GPU's fast cosine takes a third of the time and is exact
    enough for two-byte numbers."""
    if exact:
        return x + scale * squared_sine(alpha * x)
    half = 0.5 * scale
    return x + half - half * libdevice.fast_cosf(2.0 * alpha * x)


@triton.jit
def saturate(x, kind: tl.constexpr):
    """Convert x to this dtype; float16 saturates, since an infinity would stay in the state."""
    if kind == tl.float16:
        x = tl.minimum(tl.maximum(x, -65504.0), 65504.0)
    return x.to(kind)


@triton.jit
def sample_pointers(x, past, row, place, at, history, channels, row_size):
    """The address of a stream's sample `at`: in x, or in its past if negative."""
    new = x + (place + at).to(tl.int64) * channels
    old = past + row * row_size + (at + history) * channels
    return tl.where(at >= 0, new, old)


@triton.jit(do_not_specialize=(*SIZES, "taps", "dilation", "has_residual", "stores_raw"))
def convolve(
    x,  # [B, T, C]
    past,  # of this convolution: [rows, row_size]; it takes history * C of each row
    rows,  # [B]
    weight,  # [taps * C, N]
    bias,  # [period], like alpha and scale
    alpha,
    scale,
    residual,  # [B, T, N]; read with `has_residual`
    raw,  # the sums before the activation; written with `stores_raw`
    active,
    has_residual,
    stores_raw,
    total,  # B * T
    length,
    channels,
    width,  # N
    period,
    taps,
    dilation,
    history,
    row_size,
    has_past: tl.constexpr,
    activation: tl.constexpr,  # "", "snake" or "gelu"
    exact: tl.constexpr,
    tile_m: tl.constexpr,
    tile_n: tl.constexpr,
    tile_k: tl.constexpr,
):
    columns = tl.cdiv(width, tile_n)
    m = tl.program_id(0) // columns * tile_m + tl.arange(0, tile_m)
    n = tl.program_id(0) % columns * tile_n + tl.arange(0, tile_n)
    k = tl.arange(0, tile_k)
    inside, wide = m < total, n < width
    at = m % length
    row = tl.load(rows + m // length, mask=inside, other=0)
    own = x + m.to(tl.int64) * channels
    weights = weight + k[:, None] * width + n[None, :]
    sums = tl.zeros((tile_m, tile_n), tl.float32)
    for step in range(taps * channels // tile_k):
        tap = step * tile_k // channels
        channel = step * tile_k - tap * channels
        if has_past:
            first = sample_pointers(x, past, row, m - at, at + tap * dilation - history, history,
                           channels, row_size)  # fmt: skip
        else:
            first = own
        signal = tl.load(first[:, None] + (channel + k)[None, :], mask=inside[:, None], other=0.0)
        factor = tl.load(weights, mask=wide[None, :], other=0.0)
        sums = tl.dot(signal, factor, sums, input_precision="ieee")
        weights += tile_k * width
    sums += tl.load(bias + n % period, mask=wide, other=0.0)[None, :]
    out = m.to(tl.int64)[:, None] * width + n[None, :]
    here = inside[:, None] & wide[None, :]
    sums += tl.load(residual + out, mask=here & (has_residual > 0), other=0.0).to(tl.float32)
    tl.store(raw + out, saturate(sums, raw.dtype.element_ty), mask=here & (stores_raw > 0))
    if activation == "snake":
        frequency = tl.load(alpha + n % period, mask=wide, other=0.0)[None, :]
        size = tl.load(scale + n % period, mask=wide, other=0.0)[None, :]
        sums = snake(sums, frequency, size, exact)
    if activation == "gelu":
        sums = 0.5 * sums * (1.0 + tl.erf(sums * 0.7071067811865476))
    if activation != "":
        tl.store(active + out, saturate(sums, active.dtype.element_ty), mask=here)


@triton.jit(do_not_specialize=(*SIZES, "rate"))
def update_past(
    x, past, rows, counts, length, rate, channels, history, row_size,
    tile_p: tl.constexpr, tile_c: tl.constexpr,
):  # fmt: skip
    """The last `history` samples of past and x become the past. x ends with its stream's frames,
    `rate` samples each."""
    stream = tl.program_id(0)
    row, advanced = tl.load(rows + stream), tl.load(counts + stream) * rate
    step, c = tl.arange(0, tile_p), tl.program_id(1) * tile_c + tl.arange(0, tile_c)
    at = advanced - history + step
    first = sample_pointers(x, past, row, stream * length, at, history, channels, row_size)
    here = (step < history)[:, None] & (c < channels)[None, :]
    kept = tl.load(first[:, None] + c[None, :], mask=here, other=0.0)
    tl.debug_barrier()  # all is read before any is overwritten
    tl.store(past + row * row_size + step[:, None] * channels + c[None, :], kept, mask=here)


@triton.jit(do_not_specialize=SIZES)
def depthwise_norm(
    x, past, rows, weight, bias, norm, shift, out, length, channels, row_size, eps,
    taps: tl.constexpr, tile_c: tl.constexpr,
):  # fmt: skip
    """A depthwise convolution, weight [taps, C], then a LayerNorm."""
    m, c = tl.program_id(0), tl.arange(0, tile_c)
    at, here = m % length, c < channels
    row = tl.load(rows + m // length)
    sums = tl.load(bias + c, mask=here, other=0.0).to(tl.float32)
    for tap in tl.static_range(taps):
        first = sample_pointers(
            x, past, row, m - at, at + tap - (taps - 1), taps - 1, channels, row_size
        )
        factor = tl.load(weight + tap * channels + c, mask=here, other=0.0).to(tl.float32)
        sums += tl.load(first + c, mask=here, other=0.0).to(tl.float32) * factor
    centred = tl.where(here, sums - tl.sum(sums, 0) / channels, 0.0)
    spread = tl.sum(centred * centred, 0) / channels
    result = centred * tl.rsqrt(spread + eps) * tl.load(norm + c, mask=here, other=0.0)
    result += tl.load(shift + c, mask=here, other=0.0)
    tl.store(out + m.to(tl.int64) * channels + c, saturate(result, out.dtype.element_ty), mask=here)


@triton.jit(do_not_specialize=SIZES)
def output_conv(
    x, past, rows, weight, bias, out, total, length, channels, row_size,
    taps: tl.constexpr, tile_m: tl.constexpr, tile_c: tl.constexpr,
):  # fmt: skip
    """The last convolution, to one channel clamped to [-1, 1]; int16 output is scaled."""
    m, c = tl.program_id(0) * tile_m + tl.arange(0, tile_m), tl.arange(0, tile_c)
    inside, here = m < total, c < channels
    at = m % length
    row = tl.load(rows + m // length, mask=inside, other=0)
    sums = tl.zeros((tile_m, tile_c), tl.float32)
    for tap in tl.static_range(taps):
        first = sample_pointers(
            x, past, row, m - at, at + tap - (taps - 1), taps - 1, channels, row_size
        )
        signal = tl.load(
            first[:, None] + c[None, :], mask=inside[:, None] & here[None, :], other=0.0
        )
        factor = tl.load(weight + tap * channels + c, mask=here, other=0.0).to(tl.float32)
        sums += signal.to(tl.float32) * factor[None, :]
    wave = tl.sum(sums, 1) + tl.load(bias)
    wave = tl.minimum(tl.maximum(wave, -1.0), 1.0)
    if out.dtype.element_ty == tl.int16:
        wave = tl.floor(wave * 32767.0 + 0.5)
    tl.store(out + m, wave.to(out.dtype.element_ty), mask=inside)


@triton.jit
def rotated_halves(x, here, cos, sin, half: tl.constexpr):
    """Both halves of rows [T, 2 * half] after rotation; x points at their first halves."""
    left = tl.load(x, mask=here, other=0.0).to(tl.float32)
    right = tl.load(x + half, mask=here, other=0.0).to(tl.float32)
    return left * cos - right * sin, right * cos + left * sin


@triton.jit(do_not_specialize=SIZES)
def attend(
    qkv,  # [B, T, 3, heads, 2 * half]
    ring,  # one layer of [rows, window, layers, 2, heads, 2 * half]
    frames,  # [rows] frames before these
    rows,  # [B]
    counts,  # [B] new frames that go into the ring
    frequency,  # [half] radians per frame
    out,  # [B, T, heads, 2 * half]
    length,
    heads,
    window,  # frames in the ring
    row_size,
    step_size,  # from frame to frame
    tile_t: tl.constexpr,
    tile_p: tl.constexpr,
    half: tl.constexpr,
):
    """Queries over the ring and the new frames, which are then written to the ring."""
    stream, head = tl.program_id(0), tl.program_id(1)
    row, count = tl.load(rows + stream), tl.load(counts + stream)
    first_frame = tl.load(frames + row)
    t, d, j = tl.arange(0, tile_t), tl.arange(0, half), tl.arange(0, tile_p)
    new, kept = (t < length)[:, None], (j < window)[:, None]
    angle = (first_frame + t)[:, None].to(tl.float32) * tl.load(frequency + d)[None, :]
    cos, sin = tl.cos(angle), tl.sin(angle)
    size = heads * 2 * half
    mine = qkv + (stream * length + t)[:, None] * (3 * size) + head * 2 * half + d[None, :]
    q1, q2 = rotated_halves(mine, new, cos, sin, half)
    k1, k2 = rotated_halves(mine + size, new, cos, sin, half)
    v1 = tl.load(mine + 2 * size, mask=new, other=0.0)
    v2 = tl.load(mine + 2 * size + half, mask=new, other=0.0)
    kind = v1.dtype
    q1, q2, k1, k2 = q1.to(kind), q2.to(kind), k1.to(kind), k2.to(kind)
    own = ring + row * row_size + head * 2 * half + d[None, :]
    old = own + j[:, None] * step_size
    o1, o2 = tl.load(old, mask=kept, other=0.0), tl.load(old + half, mask=kept, other=0.0)
    u1 = tl.load(old + size, mask=kept, other=0.0)
    u2 = tl.load(old + size + half, mask=kept, other=0.0)

    first_frame = first_frame.to(tl.int32)
    at = (
        first_frame - 1 - (first_frame - 1 - j + window) % window
    )  # the frame in each place; negative: none
    seen = (j < window)[None, :] & (at >= 0)[None, :]
    seen = seen & ((first_frame + t)[:, None] - at[None, :] <= window)
    past = tl.dot(q1, tl.trans(o1), input_precision="ieee")
    past += tl.dot(q2, tl.trans(o2), input_precision="ieee")
    now = tl.dot(q1, tl.trans(k1), input_precision="ieee")
    now += tl.dot(q2, tl.trans(k2), input_precision="ieee")
    root = 1.0 / tl.sqrt(2.0 * half)
    past = tl.where(seen, past * root, float("-inf"))
    ahead = (t[None, :] > t[:, None]) | (t >= length)[None, :]
    now = tl.where(ahead & (t[None, :] != t[:, None]), float("-inf"), now * root)
    top = tl.maximum(tl.max(past, 1), tl.max(now, 1))[:, None]
    past, now = tl.exp(past - top), tl.exp(now - top)
    share = 1.0 / (tl.sum(past, 1) + tl.sum(now, 1))[:, None]
    past, now = (past * share).to(kind), (now * share).to(kind)
    left = tl.dot(past, u1, input_precision="ieee") + tl.dot(now, v1, input_precision="ieee")
    right = tl.dot(past, u2, input_precision="ieee") + tl.dot(now, v2, input_precision="ieee")
    target = out + (stream * length + t)[:, None] * size + head * 2 * half + d[None, :]
    tl.store(target, left.to(kind), mask=new)
    tl.store(target + half, right.to(kind), mask=new)
    tl.debug_barrier()  # all is read before any is overwritten
    place, stored = own + ((first_frame + t) % window)[:, None] * step_size, (t < count)[:, None]
    tl.store(place, k1, mask=stored)
    tl.store(place + half, k2, mask=stored)
    tl.store(place + size, v1, mask=stored)
    tl.store(place + size + half, v2, mask=stored)


@triton.jit
def gate(x, out, inner, tile: tl.constexpr):
    """silu(gate) * up of rows [2 * inner]."""
    m, c = tl.program_id(0).to(tl.int64), tl.program_id(1) * tile + tl.arange(0, tile)
    left = tl.load(x + m * 2 * inner + c, mask=c < inner, other=0.0).to(tl.float32)
    right = tl.load(x + m * 2 * inner + inner + c, mask=c < inner, other=0.0).to(tl.float32)
    result = left * tl.sigmoid(left) * right
    tl.store(out + m * inner + c, saturate(result, out.dtype.element_ty), mask=c < inner)
