"""A transformer's layers for a few new positions, as one kernel on some threads.

Each output is one sum over its row of weights, in the same order for any number of rows and
threads: a row's result does not depend on what else is computed. Weights are full ones in `panels`,
8 bits with a scale for each output, or panels of 4 bits (`nibbles`); sums are float32, and so are
inputs but for 4 bits. Knows no slots and no codes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numba import float32, int32, int64, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray
from torch import Tensor, nn

from engine.model.configs import TransformerConfig
from engine.model.layers import Transformer
from engine.model.quantized_linear import GROUP, QuantizedLinear
from engine.worker.kernels.cpu import integers, llvm, nibbles, panels
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.dots import MULTIPLE, dot, dots_of, multiply, sum_of
from engine.worker.kernels.cpu.llvm import LANES
from engine.worker.kernels.cpu.memory import empty, zeros
from engine.worker.kernels.cpu.threads import barrier, new_sync

Floats: TypeAlias = NDArray[np.float32]
SERIES = tuple(np.float32(1 / math.factorial(n)) for n in range(6, -1, -1))  # of exp
ALIGN = 16  # outputs: threads never write to one cache line


class Weights(NamedTuple):
    """The weights of all layers: matrices [layers, outputs, inputs], scales [layers, outputs]; in
    4 bits panels [layers, panels, bytes], which hold their scales; full ones see `panels`."""

    qkv: NDArray[Any]
    qkv_scales: Floats
    out: NDArray[Any]
    out_scales: Floats
    gate_up: NDArray[Any]
    gate_up_scales: Floats
    down: NDArray[Any]
    down_scales: Floats
    norms: Floats  # [layers, 2, width]: before attention, before the MLP
    head_norms: Floats  # [layers, 2, head_dim]: of queries, of keys
    last_norm: Floats  # [width]
    eps: np.float32


class Rounded(NamedTuple):
    """A thread's inputs of a product with 4 bits, see `nibbles.round_inputs`."""

    values: NDArray[np.int8]  # [rows, inputs]
    steps: Floats  # [rows, groups]
    offsets: Floats  # [rows, groups]
    starts: NDArray[np.int32]  # [rows, groups]

    @classmethod
    def allocate(cls, threads: int, rows: int, inputs: int) -> Rounded:
        """All threads' memory: each array has one more dimension."""
        size = threads, rows, inputs // GROUP
        values = zeros((threads, rows, inputs), np.int8)
        return cls(values, zeros(size, np.float32), zeros(size, np.float32), zeros(size, np.int32))


class Scratch(NamedTuple):
    """Memory of a kernel for up to `rows` rows; its threads share what is not by thread."""

    x: Floats  # [rows, width]
    qkv: Floats  # [rows, outputs]
    attended: Floats  # [rows, heads * head_dim]
    inner: Floats  # [rows, intermediate]
    products: Floats  # [rows, 2 * intermediate or width]
    normed: Floats  # [threads, rows, width]
    own: Floats  # [threads, positions + head_dim]
    rounded: Rounded  # by thread
    sync: NDArray[np.int64]  # of the barrier

    @classmethod
    def allocate(
        cls, config: TransformerConfig, rows: int, positions: int, threads: int
    ) -> Scratch:
        heads, width = config.heads * config.head_dim, config.hidden_size
        kept = 2 * config.kv_heads * config.head_dim
        inner = config.intermediate_size
        sizes = (width, heads + kept, heads, inner, max(2 * inner, width))
        x, qkv, attended, hidden, products = (zeros((rows, size), np.float32) for size in sizes)
        normed = zeros((threads, rows, width), np.float32)
        own = zeros((threads, positions + config.head_dim), np.float32)
        rounded = Rounded.allocate(threads, rows, max(width, heads, inner))
        return cls(x, qkv, attended, hidden, products, normed, own, rounded, new_sync())


def pack(layers: Sequence[Any]) -> tuple[NDArray[Any], Floats]:
    """Weights and scales of equal linear layers, side by side; layers of few bits keep views of
    them. Full layers have no scales."""
    if not isinstance(layers[0], QuantizedLinear):
        narrow = _narrow(layers)
        weights = torch.stack(
            [layer.weight.detach() for layer in layers] if narrow is None else narrow
        )
        return panels.pack(weights), np.ones((len(layers), 0), np.float32)
    if layers[0].bits == 4:
        return _pack_panels(layers), np.ones((len(layers), 0), np.float32)
    given: list[Tensor] = [layer.weight for layer in layers]
    scales = torch.stack([layer.scales for layer in layers]).float().numpy()
    if (together := side_by_side(given)) is not None:
        return together.numpy(), scales
    weights = torch.from_numpy(empty((len(given), *given[0].shape), np.int8))
    for layer, weight, own in zip(layers, weights, given, strict=True):
        weight.copy_(own)
        layer.weight = weight
    return weights.numpy(), scales


def _narrow(layers: Sequence[Any]) -> list[Tensor] | None:
    """Weights of full layers as bits of bfloat16, where that holds all of them exactly: half as
    much is read. What an earlier start has kept the layers let go of."""
    kept: list[Any] = [getattr(layer, "narrow", None) for layer in layers]
    if all(each is not None for each in kept):
        for layer in layers:
            layer.narrow = None
        return kept
    given = [layer.weight.detach() for layer in layers]
    narrow = [each.bfloat16() for each in given]
    if not all(map(torch.equal, (each.float() for each in narrow), given)):
        return None
    return [each.view(torch.int16) for each in narrow]


def side_by_side(tensors: list[Tensor]) -> Tensor | None:
    """Equal tensors that lie in one memory, one after the other, as one tensor."""
    first = tensors[0]
    storage, at, size = first.untyped_storage().data_ptr(), first.storage_offset(), first.numel()
    for number, each in enumerate(tensors):
        here = each.untyped_storage().data_ptr(), each.storage_offset()
        if each.shape != first.shape or not each.is_contiguous() or here != (
            storage, at + number * size,
        ):  # fmt: skip
            return None
    return first.as_strided((len(tensors), *first.shape), (size, *first.stride()))


def _pack_panels(layers: Sequence[Any]) -> NDArray[np.uint8]:
    """Equal layers of 4 bits as panels, side by side; each layer keeps a view of its own."""
    if all(layer.panels is not None for layer in layers):
        together = side_by_side([layer.panels for layer in layers])
        if together is not None:
            return together.numpy()
    outputs, groups = layers[0].out_features, layers[0].in_features // GROUP
    size = len(layers), outputs // LANES, groups * nibbles.GROUP_BYTES
    panels = empty(size, np.uint8)
    for layer, own in zip(layers, panels, strict=True):
        own[:] = nibbles.pack(layer.levels, layer.scales)
        layer.panels = torch.from_numpy(own)
    return panels


def layer_weights(network: Transformer) -> Weights:
    """A network's weights as the kernel reads them."""
    blocks = list(network.layers)
    matrices = (
        *pack([block.self_attn.qkv_proj for block in blocks]),
        *pack([block.self_attn.o_proj for block in blocks]),
        *pack([block.mlp.gate_up_proj for block in blocks]),
        *pack([block.mlp.down_proj for block in blocks]),
    )
    norms = [(block.input_layernorm, block.post_attention_layernorm) for block in blocks]
    heads = [own for block in blocks if (own := block.self_attn.norms())]
    return Weights(
        *matrices,
        _vectors(norms),
        _vectors(heads),
        network.norm.weight.detach().float().numpy(),
        np.float32(network.config.norm_eps),
    )


def supports(network: Transformer) -> bool:
    """Whether the kernel computes these layers."""
    config = network.config
    if config.sliding_window is not None or config.layer_scale or not config.qk_norm:
        return False
    linears = [
        module for module in network.layers.modules()
        if isinstance(module, nn.Linear | QuantizedLinear)
    ]  # fmt: skip
    kinds = {(type(each), getattr(each, "bits", 8), each.bias is None) for each in linears}
    dtypes = {parameter.dtype for parameter in network.layers.parameters()}
    if any(each.in_features % MULTIPLE for each in linears) or dtypes != {torch.float32}:
        return False
    if any(each.out_features % ALIGN for each in linears):
        return False
    if kinds == {(QuantizedLinear, 4, True)}:
        return integers.AVAILABLE and config.intermediate_size % ALIGN == 0
    return kinds in ({(nn.Linear, 8, True)}, {(QuantizedLinear, 8, True)})


def array(tensor: Tensor) -> NDArray[Any]:
    """A tensor's memory, which must be contiguous, as numba's kernels take it."""
    assert tensor.is_contiguous()
    return tensor.detach().numpy()


def _vectors(pairs: list[tuple[Any, Any]]) -> Floats:
    rows = [torch.stack([norm.weight.detach() for norm in pair]) for pair in pairs]
    return torch.stack(rows).float().contiguous().numpy()


@compiled()
def span(size, number, threads):
    """The part of `size` outputs that a thread computes."""
    start = size * number // threads // ALIGN * ALIGN
    stop = size if number == threads - 1 else size * (number + 1) // threads // ALIGN * ALIGN
    return start, stop


@compiled()
def multiply_all(number, threads, weights, scales, x, rows, out, sync):
    """out[:rows] = x[:rows] @ weights.T * scales"""
    start, stop = span(out.shape[1], number, threads)
    product(weights, scales, x, rows, start, stop, out)
    barrier(sync, threads)


def product(weights, scales, x, rows, start, stop, out):
    """out[:rows, start:stop] = x[:rows] @ weights[start:stop].T, of weights that are full or have
    8 bits."""


@overload(product)
def _product(weights, scales, x, rows, start, stop, out):
    if weights.dtype == types.int8:

        def scaled(weights, scales, x, rows, start, stop, out):
            multiply(weights, scales, x, rows, start, stop, out)

        return scaled

    def full(weights, scales, x, rows, start, stop, out):
        panels.multiply(weights, x, int64(0), rows, start, stop, out, start)

    return full


def prepare(weights, x, rows, inputs, number, rounded):
    """Round inputs for a product, where its weights have 4 bits."""


def linear(weights, scales, x, rows, start, stop, number, rounded, out):
    """out[:rows, start:stop] = x[:rows] @ weights[start:stop].T, after `prepare`."""


def add_linear(weights, scales, x, rows, start, stop, number, rounded, out, total):
    """The same, added to `total`; `out` is memory."""


@overload(prepare)
def _prepare(weights, x, rows, inputs, number, rounded):
    if weights.dtype != types.uint8:
        return lambda weights, x, rows, inputs, number, rounded: None

    def round_inputs(weights, x, rows, inputs, number, rounded):
        nibbles.round_inputs(
            x, rows, inputs, rounded.values[number], rounded.steps[number],
            rounded.offsets[number], rounded.starts[number],
        )  # fmt: skip

    return round_inputs


@overload(linear)
def _linear(weights, scales, x, rows, start, stop, number, rounded, out):
    if weights.dtype != types.uint8:

        def whole(weights, scales, x, rows, start, stop, number, rounded, out):
            product(weights, scales, x, rows, start, stop, out)

        return whole

    def levels(weights, scales, x, rows, start, stop, number, rounded, out):
        nibbles.multiply_panels(
            weights, rows, start, stop, rounded.values[number], rounded.steps[number],
            rounded.offsets[number], rounded.starts[number], out, start,
        )  # fmt: skip

    return levels


@overload(add_linear)
def _add_linear(weights, scales, x, rows, start, stop, number, rounded, out, total):
    if weights.dtype == types.int8:

        def whole(weights, scales, x, rows, start, stop, number, rounded, out, total):
            for n in range(start, stop):
                for row in range(rows):
                    total[row, n] += dot(weights[n], x[row]) * scales[n]

        return whole

    def apart(weights, scales, x, rows, start, stop, number, rounded, out, total):
        linear(weights, scales, x, rows, start, stop, number, rounded, out)
        for row in range(rows):
            for n in range(start, stop):
                total[row, n] += out[row, n]

    return apart


@compiled(reorder=True)
def highest(scores, count):
    """The highest of the first scores; the same in any order."""
    most = scores[0]
    for past in range(1, count):
        most = max(most, scores[past])
    return most


@compiled()
def norm(x, weight, eps, out):
    scale = float32(1) / math.sqrt(dot(x, x) / float32(x.shape[0]) + eps)
    for i in range(x.shape[0]):
        out[i] = x[i] * scale * weight[i]


@compiled()
def rotate(x, cos, sin, out, factor):
    half = x.shape[0] // 2
    for i in range(half):
        out[i] = (x[i] * cos[i] + x[i + half] * sin[i]) * factor
        out[i + half] = (x[i + half] * cos[i + half] + x[i] * sin[i + half]) * factor


@intrinsic
def _power_of_two(typing: Any, exponent: Any) -> Any:
    """2 to the power of an int32 from -126 to 127, as float32."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        biased = builder.add(given[0], llvm.constant(llvm.INT, 127))
        return builder.bitcast(builder.shl(biased, llvm.constant(llvm.INT, 23)), llvm.FLOAT)

    return types.float32(types.int32), generate


@compiled()
def exponential(x):
    """e to the power of a float32, to five digits; unlike the library's it is vectorized."""
    x = min(max(x, float32(-87)), float32(88)) * float32(1.44269504)
    whole = math.floor(x + float32(0.5))
    part = float32(x - whole) * float32(0.69314718)
    power = SERIES[0]
    for term in range(1, len(SERIES)):
        power = power * part + SERIES[term]
    return power * _power_of_two(int32(whole))


@compiled()
def gate(gates, ups, out):
    """out = silu(gates) * ups."""
    for n in range(len(out)):
        out[n] = gates[n] / (float32(1) + exponential(-gates[n])) * ups[n]


@compiled()
def attend(qkv, keys, values, cos, sin, norms, eps, head, heads, position, own, out):
    """A row's queries of one head of keys: qkv and out [all heads' numbers], keys and values
    [positions, head_dim]; its new key and value are stored first."""
    dim, shared = keys.shape[1], heads[0] // heads[1]
    q, scores = own[:dim], own[dim:]
    at = (heads[0] + head) * dim
    norm(qkv[at : at + dim], norms[1], eps, q)
    rotate(q, cos, sin, keys[position], float32(1))
    at += heads[1] * dim
    for i in range(dim):
        values[position, i] = qkv[at + i]
    for each in range(head * shared, (head + 1) * shared):
        target = out[each * dim : (each + 1) * dim]
        norm(qkv[each * dim : (each + 1) * dim], norms[0], eps, target)
        rotate(target, cos, sin, q, float32(1) / math.sqrt(float32(dim)))
        dots_of(q, keys, position + 1, scores)
        most = highest(scores, position + 1)
        for i in range(dim):
            target[i] = 0
        for past in range(position + 1):
            scores[past] = exponential(scores[past] - most)
        total = sum_of(scores[: position + 1])
        for past in range(0, position - 2, 4):  # four at a time, added one after another
            for i in range(dim):
                some = target[i] + scores[past] * values[past, i]
                some += scores[past + 1] * values[past + 1, i]
                some += scores[past + 2] * values[past + 2, i]
                target[i] = some + scores[past + 3] * values[past + 3, i]
        for past in range((position + 1) // 4 * 4, position + 1):
            for i in range(dim):
                target[i] += scores[past] * values[past, i]
        for i in range(dim):
            target[i] /= total


@compiled()
def run_layers(
    number, threads, weights, cos, sin, index, positions, slots, per_row, keys, values, scratch
):
    """scratch.x [rows, width] -> normed hidden states in scratch.normed[number].

    keys and values [layers, all slots, kv_heads, positions, head_dim]; the first `slots` of `index`
    are computed, with `per_row` adjacent rows for each, at `positions` in ascending order.
    """
    x, normed, inner = scratch.x, scratch.normed[number], scratch.inner
    products, rounded = scratch.products, scratch.rounded
    rows, dim, kept = slots * per_row, keys.shape[4], keys.shape[2]
    heads = (scratch.attended.shape[1] // dim, kept)
    width, middle = x.shape[1], inner.shape[1]
    eps = weights.eps
    for layer in range(len(weights.qkv)):
        for row in range(rows):
            norm(x[row], weights.norms[layer, 0], eps, normed[row])
        start, stop = span(scratch.qkv.shape[1], number, threads)
        qkv, scales = weights.qkv[layer], weights.qkv_scales[layer]
        prepare(qkv, normed, rows, width, number, rounded)
        linear(qkv, scales, normed, rows, start, stop, number, rounded, scratch.qkv)
        barrier(scratch.sync, threads)
        for unit in range(number, slots * kept, threads):
            slot, head = unit // kept, unit % kept
            for row in range(slot * per_row, (slot + 1) * per_row):
                at = positions[row]
                attend(
                    scratch.qkv[row], keys[layer, index[slot], head],
                    values[layer, index[slot], head], cos[at], sin[at], weights.head_norms[layer],
                    eps, head, heads, at, scratch.own[number], scratch.attended[row],
                )  # fmt: skip
        barrier(scratch.sync, threads)
        start, stop = span(width, number, threads)
        attended, out, scales = scratch.attended, weights.out[layer], weights.out_scales[layer]
        prepare(out, attended, rows, attended.shape[1], number, rounded)
        linear(out, scales, attended, rows, start, stop, number, rounded, products)
        for row in range(rows):
            for n in range(start, stop):
                x[row, n] += products[row, n]
        barrier(scratch.sync, threads)
        for row in range(rows):
            norm(x[row], weights.norms[layer, 1], eps, normed[row])
        first, last = span(middle, number, threads)
        gate_up, scales = weights.gate_up[layer], weights.gate_up_scales[layer]
        prepare(gate_up, normed, rows, width, number, rounded)
        for begin in (0, middle):
            linear(
                gate_up, scales, normed, rows, begin + first, begin + last, number, rounded,
                products,
            )  # fmt: skip
        for row in range(rows):
            ups = products[row, middle + first : middle + last]
            gate(products[row, first:last], ups, inner[row, first:last])
        barrier(scratch.sync, threads)
        down, scales = weights.down[layer], weights.down_scales[layer]
        prepare(down, inner, rows, middle, number, rounded)
        add_linear(down, scales, inner, rows, start, stop, number, rounded, products, x)
        barrier(scratch.sync, threads)
    for row in range(rows):
        norm(x[row], weights.last_norm, eps, normed[row])
    barrier(scratch.sync, threads)
