"""The codec's work on a GPU as Triton kernels: sound lies channels last, [B, T, C].

What a convolution saw before the new samples is read from the streams' own rows where it lies,
so nothing is joined or copied before a product. A sum leaves its kernel with bias, residual
and activation applied. Knows tensors only; who they belong to is codec_fused's business.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

# Numbers that kernels are not compiled for one by one.
SIZES = ("total", "length", "behind")


@triton.jit
def squared_sine(z):
    """sin² for any z: it repeats at every π, and a short series is exact enough within."""
    turn = z - tl.floor(z * 0.3183098861837907 + 0.5) * 3.141592653589793
    square = turn * turn
    series = 2.7557319e-6 * square - 1.9841270e-4
    series = series * square + 8.3333333e-3
    series = series * square - 0.16666667
    sine = turn * (series * square + 1.0)
    return sine * sine


@triton.jit
def snake(x, alpha, scale, exact: tl.constexpr):
    """x + scale * sin²(alpha x). The card's own cosine is a third of the work, and close enough
    for numbers of two bytes."""
    if exact:
        return x + scale * squared_sine(alpha * x)
    half = 0.5 * scale
    return x + half - half * libdevice.fast_cosf(2.0 * alpha * x)


@triton.jit
def fitted(x, kind: tl.constexpr):
    """x as numbers of this kind; what is too loud for float16 becomes the loudest there is, for
    an infinity would stay in the stream's past."""
    if kind == tl.float16:
        x = tl.minimum(tl.maximum(x, -65504.0), 65504.0)
    return x.to(kind)


@triton.jit
def before(x, past, row, place, at, behind, channels, row_size):
    """Where a stream's sample `at` begins: in x, or for negative ones in what it remembers."""
    new = x + (place + at).to(tl.int64) * channels
    old = past + row * row_size + (at + behind) * channels
    return tl.where(at >= 0, new, old)


@triton.jit(do_not_specialize=(*SIZES, "taps", "dilation", "adds", "keeps"))
def convolve(
    x,  # [B, T, C]
    past,  # of this convolution: [rows, row_size], the first behind * C of each row
    rows,  # [B]
    weight,  # [taps * C, N]
    bias,  # [period], as alpha and scale
    alpha,
    scale,
    residual,  # [B, T, N], as what is made; read if it `adds`
    raw,  # written if it `keeps`
    active,
    adds,
    keeps,
    total,  # B * T
    length,
    channels,
    width,  # N
    period,
    taps,
    dilation,
    behind,
    row_size,
    has_past: tl.constexpr,
    follows: tl.constexpr,  # "": not made, "snake" or "gelu"
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
            first = before(x, past, row, m - at, at + tap * dilation - behind, behind,
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
    sums += tl.load(residual + out, mask=here & (adds > 0), other=0.0).to(tl.float32)
    tl.store(raw + out, fitted(sums, raw.dtype.element_ty), mask=here & (keeps > 0))
    if follows == "snake":
        pace = tl.load(alpha + n % period, mask=wide, other=0.0)[None, :]
        size = tl.load(scale + n % period, mask=wide, other=0.0)[None, :]
        sums = snake(sums, pace, size, exact)
    if follows == "gelu":
        sums = 0.5 * sums * (1.0 + tl.erf(sums * 0.7071067811865476))
    if follows != "":
        tl.store(active + out, fitted(sums, active.dtype.element_ty), mask=here)


@triton.jit(do_not_specialize=(*SIZES, "rate"))
def remember(
    x, past, rows, counts, length, rate, channels, behind, row_size,
    tile_p: tl.constexpr, tile_c: tl.constexpr,
):  # fmt: skip
    """The last `behind` samples of past and x become the past: of an x that ends where its
    stream's frames do, `rate` samples each."""
    stream = tl.program_id(0)
    row, gone = tl.load(rows + stream), tl.load(counts + stream) * rate
    step, c = tl.arange(0, tile_p), tl.program_id(1) * tile_c + tl.arange(0, tile_c)
    at = gone - behind + step
    first = before(x, past, row, stream * length, at, behind, channels, row_size)
    here = (step < behind)[:, None] & (c < channels)[None, :]
    kept = tl.load(first[:, None] + c[None, :], mask=here, other=0.0)
    tl.debug_barrier()  # all is read before any of it is written over
    tl.store(past + row * row_size + step[:, None] * channels + c[None, :], kept, mask=here)


@triton.jit(do_not_specialize=SIZES)
def smooth(
    x, past, rows, weight, bias, norm, shift, out, length, channels, row_size, eps,
    taps: tl.constexpr, tile_c: tl.constexpr,
):  # fmt: skip
    """A convolution of each channel by itself, weight [taps, C], then a LayerNorm."""
    m, c = tl.program_id(0), tl.arange(0, tile_c)
    at, here = m % length, c < channels
    row = tl.load(rows + m // length)
    sums = tl.load(bias + c, mask=here, other=0.0).to(tl.float32)
    for tap in tl.static_range(taps):
        first = before(x, past, row, m - at, at + tap - (taps - 1), taps - 1, channels, row_size)
        factor = tl.load(weight + tap * channels + c, mask=here, other=0.0).to(tl.float32)
        sums += tl.load(first + c, mask=here, other=0.0).to(tl.float32) * factor
    centred = tl.where(here, sums - tl.sum(sums, 0) / channels, 0.0)
    spread = tl.sum(centred * centred, 0) / channels
    made = centred * tl.rsqrt(spread + eps) * tl.load(norm + c, mask=here, other=0.0)
    made += tl.load(shift + c, mask=here, other=0.0)
    tl.store(out + m.to(tl.int64) * channels + c, fitted(made, out.dtype.element_ty), mask=here)


@triton.jit(do_not_specialize=SIZES)
def sound(
    x, past, rows, weight, bias, out, total, length, channels, row_size,
    taps: tl.constexpr, tile_m: tl.constexpr, tile_c: tl.constexpr,
):  # fmt: skip
    """The last convolution, down to one channel within [-1, 1]; integers are made full scale."""
    m, c = tl.program_id(0) * tile_m + tl.arange(0, tile_m), tl.arange(0, tile_c)
    inside, here = m < total, c < channels
    at = m % length
    row = tl.load(rows + m // length, mask=inside, other=0)
    sums = tl.zeros((tile_m, tile_c), tl.float32)
    for tap in tl.static_range(taps):
        first = before(x, past, row, m - at, at + tap - (taps - 1), taps - 1, channels, row_size)
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
def turned(x, here, cos, sin, half: tl.constexpr):
    """Both halves of rows [T, 2 * half] after rotation; x points at their first halves."""
    left = tl.load(x, mask=here, other=0.0).to(tl.float32)
    right = tl.load(x + half, mask=here, other=0.0).to(tl.float32)
    return left * cos - right * sin, right * cos + left * sin


@triton.jit(do_not_specialize=SIZES)
def attend(
    qkv,  # [B, T, 3, heads, 2 * half]
    ring,  # [rows, window, layers, 2, heads, 2 * half], of one layer
    frames,  # [rows] frames before these
    rows,  # [B]
    counts,  # [B] how many of the new ones go into the ring
    pace,  # [half] radians a frame
    out,  # [B, T, heads, 2 * half]
    length,
    heads,
    window,  # frames kept
    row_size,
    step_size,  # from frame to frame
    tile_t: tl.constexpr,
    tile_p: tl.constexpr,
    half: tl.constexpr,
):
    """Queries over what the ring keeps and the new frames, which then go into the ring."""
    stream, head = tl.program_id(0), tl.program_id(1)
    row, count = tl.load(rows + stream), tl.load(counts + stream)
    begun = tl.load(frames + row)
    t, d, j = tl.arange(0, tile_t), tl.arange(0, half), tl.arange(0, tile_p)
    new, kept = (t < length)[:, None], (j < window)[:, None]
    angle = (begun + t)[:, None].to(tl.float32) * tl.load(pace + d)[None, :]
    cos, sin = tl.cos(angle), tl.sin(angle)
    size = heads * 2 * half
    mine = qkv + (stream * length + t)[:, None] * (3 * size) + head * 2 * half + d[None, :]
    q1, q2 = turned(mine, new, cos, sin, half)
    k1, k2 = turned(mine + size, new, cos, sin, half)
    v1 = tl.load(mine + 2 * size, mask=new, other=0.0)
    v2 = tl.load(mine + 2 * size + half, mask=new, other=0.0)
    kind = v1.dtype
    q1, q2, k1, k2 = q1.to(kind), q2.to(kind), k1.to(kind), k2.to(kind)
    own = ring + row * row_size + head * 2 * half + d[None, :]
    old = own + j[:, None] * step_size
    o1, o2 = tl.load(old, mask=kept, other=0.0), tl.load(old + half, mask=kept, other=0.0)
    u1 = tl.load(old + size, mask=kept, other=0.0)
    u2 = tl.load(old + size + half, mask=kept, other=0.0)

    begun = begun.to(tl.int32)
    at = begun - 1 - (begun - 1 - j + window) % window  # which frame lies there; negative: none
    seen = (j < window)[None, :] & (at >= 0)[None, :]
    seen = seen & ((begun + t)[:, None] - at[None, :] <= window)
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
    tl.debug_barrier()  # all is read before any of it is written over
    place, stays = own + ((begun + t) % window)[:, None] * step_size, (t < count)[:, None]
    tl.store(place, k1, mask=stays)
    tl.store(place + half, k2, mask=stays)
    tl.store(place + size, v1, mask=stays)
    tl.store(place + size + half, v2, mask=stays)


@triton.jit
def gate(x, out, inner, tile: tl.constexpr):
    """silu(gate) * up of rows [2 * inner]."""
    m, c = tl.program_id(0).to(tl.int64), tl.program_id(1) * tile + tl.arange(0, tile)
    left = tl.load(x + m * 2 * inner + c, mask=c < inner, other=0.0).to(tl.float32)
    right = tl.load(x + m * 2 * inner + inner + c, mask=c < inner, other=0.0).to(tl.float32)
    made = left * tl.sigmoid(left) * right
    tl.store(out + m * inner + c, fitted(made, out.dtype.element_ty), mask=c < inner)
