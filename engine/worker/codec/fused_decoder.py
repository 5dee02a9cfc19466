"""The codec's decoder as a chain of fused kernels: the same sound as CodecDecoder.step.

It advances rows of a state in place, as CodecDecoder does; only the order of the numbers in a
row's past is its own (samples before channels). Needs Triton and shapes that fill tiles;
`fits` says whether a codec has them. Knows no slots and no requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
import triton
from torch import Tensor, nn

from engine.model.codec import CodecDecoder, CodecState, PreTransformer
from engine.model.configs import CodecConfig
from engine.model.convs import CausalConv, DecoderBlock, SnakeBeta
from engine.model.layers import Block
from engine.worker.codec.fused_layers import Flow, Packer, Product
from engine.worker.kernels.triton import codec_kernels as kernels
from engine.worker.kernels.triton.launch import ahead, launch

SMALLEST = 16  # channels that a product is made of at least
LONGEST = 12  # frames of a step: new ones are not masked from each other, nor share a place


def supports(config: CodecConfig) -> bool:
    block = config.transformer
    widths = [config.decoder_dim >> level for level in range(len(config.upsample_rates) + 1)]
    tiled = [config.codebook_dim, config.latent_dim, *widths]
    half = block.head_dim // 2
    return (
        all(width % SMALLEST == 0 for width in tiled)
        and block.heads == block.kv_heads
        and half >= SMALLEST
        and half & (half - 1) == 0
        and (block.sliding_window or 0) > LONGEST
    )


class FusedBlock:
    """One block of the transformer, the layer scales in the weights."""

    def __init__(self, block: Block, dtype: torch.dtype, layer: int) -> None:
        attention, mlp = block.self_attn, block.mlp
        self._layer, self._heads, self._dim = layer, attention.heads, attention.head_dim
        self._norm1, self._norm2 = (
            norm.weight.to(dtype)
            for norm in (block.input_layernorm, block.post_attention_layernorm)
        )
        self._eps = block.input_layernorm.eps
        self._qkv = attention.qkv_proj.weight.to(dtype)
        self._out = _scaled(attention.o_proj, block.self_attn_layer_scale, dtype)
        self._gate_up = mlp.gate_up_proj.weight.to(dtype)
        self._down = _scaled(mlp.down_proj, block.mlp_layer_scale, dtype)

    def __call__(self, flow: Flow, x: Tensor, pace: Tensor) -> None:
        """x [B, T, width], changed in place."""
        flat = x.flatten(0, 1)
        normed = F.rms_norm(x, x.shape[-1:], self._norm1, self._eps)
        flat.addmm_(self._attend(flow, F.linear(normed, self._qkv), pace).flatten(0, 1), self._out)
        normed = F.rms_norm(x, x.shape[-1:], self._norm2, self._eps)
        flat.addmm_(gated(F.linear(normed, self._gate_up).flatten(0, 1)), self._down)

    def _attend(self, flow: Flow, qkv: Tensor, pace: Tensor) -> Tensor:
        batch, length, _ = qkv.shape
        ring = flow.state.ring
        window, step = ring.shape[1], ring.stride(1)
        out = qkv.new_empty(batch, length, self._heads * self._dim)
        launch(
            kernels.attend, (batch, self._heads),
            qkv, ring[:, :, self._layer], flow.state.frames, flow.rows, flow.counts, pace, out,
            length, self._heads, window, ring.stride(0), step,
            tile_t=max(16, triton.next_power_of_2(length)),
            tile_p=max(16, triton.next_power_of_2(window)),
            half=self._dim // 2,
        )  # fmt: skip
        return out


def gated(x: Tensor) -> Tensor:
    """silu(gate) * up of [M, 2 * inner]."""
    total, inner = x.shape[0], x.shape[1] // 2
    out = x.new_empty(total, inner)
    launch(kernels.gate, (total, triton.cdiv(inner, 512)), x, out, inner, tile=512)
    return out


def _scaled(linear: nn.Linear, scale: nn.Module, dtype: torch.dtype) -> Tensor:
    """The weight, transposed, with the layer scale in it."""
    factor = scale.scale.float() if hasattr(scale, "scale") else torch.ones(())
    return (linear.weight.float().T * factor.to(linear.weight.device)).to(dtype).contiguous()


class FusedTransformer:
    def __init__(self, stack: PreTransformer, dtype: torch.dtype) -> None:
        config = stack.config
        self._blocks = [FusedBlock(block, dtype, i) for i, block in enumerate(stack.layers)]
        self._norm, self._eps = stack.norm.weight.to(dtype), config.norm_eps
        self._ends = [
            (layer.weight.to(dtype), layer.bias.to(dtype))
            for layer in (stack.input_proj, stack.output_proj)
        ]
        half = torch.arange(0, config.head_dim, 2, dtype=torch.float32)
        self._pace = (1.0 / config.rope_theta ** (half / config.head_dim)).to(
            stack.norm.weight.device
        )

    def __call__(self, flow: Flow, x: Tensor) -> Tensor:
        x = F.linear(x, *self._ends[0])
        for block in self._blocks:
            block(flow, x, self._pace)
        return F.linear(F.rms_norm(x, x.shape[-1:], self._norm, self._eps), *self._ends[1])


class Link(NamedTuple):
    """A product of the chain that makes the sound."""

    product: Product
    adds: bool = False  # what was kept
    keeps: bool = False  # its sums, for the next that adds


def chain(pack: Packer, first: CausalConv, *blocks: DecoderBlock, last: SnakeBeta) -> list[Link]:
    """Each product with the snake that follows it: of the next unit, of the next block."""
    made: list[Link] = []
    for block, after in zip(blocks, [*(b.block[0] for b in blocks[1:]), last], strict=True):
        snake, rise, *units = block.block
        if not made:
            made.append(Link(pack.conv(first).then(snake)))
        made.append(Link(pack.upsample(rise).then(units[0].act1), keeps=True))
        for unit, follows in zip(units, [*(u.act1 for u in units[1:]), after], strict=True):
            made.append(Link(pack.conv(unit.conv1).then(unit.act2)))
            more = follows is not after
            made.append(Link(pack.conv(unit.conv2).then(follows), adds=True, keeps=more))
    return made


class FusedDecoder:
    """A decoder's weights, packed for the kernels."""

    ragged = True

    def __init__(self, codec: CodecDecoder, dtype: torch.dtype) -> None:
        assert supports(codec.config)
        self.config, self.dtype, self.receptive_frames = codec.config, dtype, codec.receptive_frames
        self._table = codec.quantizer.compute().to(dtype)
        books = torch.arange(codec.config.codebooks, device=self._table.device)
        self._starts = books * codec.quantizer.size  # of each codebook in the table
        pack = Packer(dtype)
        self._first = pack.conv(codec.pre_conv)
        self._transformer = FusedTransformer(codec.pre_transformer, dtype)
        self._rises = [
            (pack.upsample(rise), pack.smoothing(smooth)) for rise, smooth in codec.upsample
        ]
        first, *blocks, snake, last = codec.decoder
        self._chain = chain(pack, first, *blocks, last=snake)
        self._sound = pack.sound(last)

    def step(
        self,
        codes: Tensor,
        state: CodecState,
        rows: Tensor,
        counts: Tensor | None = None,
        out: torch.dtype = torch.float32,
    ) -> Tensor:
        """Advance these rows [B] of the state by codes [B, codebooks, T] -> [B, T * hop].

        With counts [B], 0 to T, a row goes on by its first frames only: all is causal, so that
        what lies behind them only must not be remembered.
        """
        flow = _flow(codes, state, rows, counts)
        x = self._understand(flow, codes)
        for rise, smooth in self._rises:
            x = smooth(flow, rise(flow, x)[1])
        kept: Tensor | None = None
        for link in self._chain:
            raw, x = link.product(flow, x, kept if link.adds else None, link.keeps)
            kept = raw if link.keeps else kept
        wave = self._sound(flow, x, out)
        _count(flow)
        return wave

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        """As CodecDecoder's, from codes [B, T, codebooks]."""
        codes = codes.transpose(1, 2)
        flow = _flow(codes, state, rows)
        self._understand(flow, codes)
        _count(flow)

    def _understand(self, flow: Flow, codes: Tensor) -> Tensor:
        assert flow.frames <= LONGEST
        return self._transformer(flow, self._first(flow, self._latents(codes))[1])

    def _latents(self, codes: Tensor) -> Tensor:
        batch, codebooks, length = codes.shape
        known = codes.transpose(1, 2).clamp(max=self.config.codebook_size - 1)
        entries = (known + self._starts).reshape(-1, codebooks)
        return F.embedding_bag(entries, self._table, mode="sum").view(batch, length, -1)

    def __call__(
        self, codes: Tensor, state: CodecState, rows: Tensor, counts: Tensor | None = None
    ) -> Tensor:
        """As step, from codes [B, T, codebooks] to int16."""
        return self.step(codes.transpose(1, 2), state, rows, counts, torch.int16)

    def prepare(self, sizes: Iterable[tuple[int, int]], state: CodecState, spare: int) -> None:
        """Compile what steps of these rows and frames will need."""
        with ahead():
            for count, frames in sizes:
                rows = torch.full((count,), spare, device=state.pasts.device)
                self(rows.new_zeros(count, frames, self.config.codebooks), state, rows)


def _flow(codes: Tensor, state: CodecState, rows: Tensor, counts: Tensor | None = None) -> Flow:
    """For codes [B, codebooks, T]."""
    frames = codes.shape[-1]
    return Flow(state, rows, torch.full_like(rows, frames) if counts is None else counts, frames)


def _count(flow: Flow) -> None:
    """The frames that its rows go on by are gone by."""
    flow.state.frames.index_add_(0, flow.rows, flow.counts)
