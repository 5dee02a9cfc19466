"""The codec's decoder as a chain of fused Triton kernels: the same audio as CodecDecoder.step.

It advances rows of a state in place, as CodecDecoder does, but a row's past is laid out samples
before channels. Needs Triton and sizes that fill tiles: see `supports`. Knows no slots and no
requests.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import torch
import torch.nn.functional as F
import triton
from torch import Tensor, nn

from engine.model.codec import CodecDecoder, CodecState, PreTransformer
from engine.model.configs import CodecConfig
from engine.model.convs import CausalConv, DecoderBlock, SnakeBeta
from engine.model.layers import Block, LayerScale, scale_of
from engine.worker.codec.fused_layers import ConvMatmul, Packer, StepContext
from engine.worker.kernels.triton import codec_kernels as kernels
from engine.worker.kernels.triton.launch import compile_kernels, launch
from engine.worker.lean_torch import seeded

MIN_CHANNELS = 16  # of a matrix product
MAX_FRAMES = 12  # of a step: new frames must have distinct places in the ring
TRIAL_FRAMES = 8, 4  # steps in which the kernels are compared with the plain decoder


def supports(config: CodecConfig) -> bool:
    """Whether the kernels support a codec of these sizes."""
    block = config.transformer
    widths = [config.decoder_dim >> level for level in range(len(config.upsample_rates) + 1)]
    tiled = [config.codebook_dim, config.latent_dim, *widths]
    half = block.head_dim // 2
    return (
        all(width % MIN_CHANNELS == 0 for width in tiled)
        and block.heads == block.kv_heads
        and half >= MIN_CHANNELS
        and half & (half - 1) == 0
        and (block.sliding_window or 0) > MAX_FRAMES
    )


class FusedBlock:
    """One block of the transformer, with the layer scales folded into its weights."""

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

    def __call__(self, context: StepContext, x: Tensor, frequency: Tensor) -> None:
        """x [B, T, width], changed in place."""
        flat = x.flatten(0, 1)
        normed = F.rms_norm(x, x.shape[-1:], self._norm1, self._eps)
        flat.addmm_(
            self._attend(context, F.linear(normed, self._qkv), frequency).flatten(0, 1), self._out
        )
        normed = F.rms_norm(x, x.shape[-1:], self._norm2, self._eps)
        flat.addmm_(silu_gate(F.linear(normed, self._gate_up).flatten(0, 1)), self._down)

    def _attend(self, context: StepContext, qkv: Tensor, frequency: Tensor) -> Tensor:
        batch, length, _ = qkv.shape
        ring = context.state.ring
        window, step = ring.shape[1], ring.stride(1)
        out = qkv.new_empty(batch, length, self._heads * self._dim)
        launch(
            kernels.attend, (batch, self._heads),
            qkv, ring[:, :, self._layer], context.state.frames, context.rows, context.counts,
            frequency, out,
            length, self._heads, window, ring.stride(0), step,
            tile_t=max(16, triton.next_power_of_2(length)),
            tile_p=max(16, triton.next_power_of_2(window)),
            half=self._dim // 2,
        )  # fmt: skip
        return out


def silu_gate(x: Tensor) -> Tensor:
    """silu(gate) * up: [M, 2 * inner] -> [M, inner]."""
    total, inner = x.shape[0], x.shape[1] // 2
    out = x.new_empty(total, inner)
    launch(kernels.gate, (total, triton.cdiv(inner, 512)), x, out, inner, tile=512)
    return out


def _scaled(linear: nn.Linear, scale: LayerScale | nn.Identity, dtype: torch.dtype) -> Tensor:
    """The transposed weight times the layer scale."""
    factor = scale_of(scale)
    factor = torch.ones(()) if factor is None else factor.float()
    return (linear.weight.float().T * factor.to(linear.weight.device)).to(dtype).contiguous()


class FusedPreTransformer:
    def __init__(self, transformer: PreTransformer, dtype: torch.dtype) -> None:
        config = transformer.config
        self._blocks = [FusedBlock(block, dtype, i) for i, block in enumerate(transformer.layers)]
        self._norm, self._eps = transformer.norm.weight.to(dtype), config.norm_eps
        self._projections = [
            (layer.weight.to(dtype), layer.bias.to(dtype))
            for layer in (transformer.input_proj, transformer.output_proj)
        ]
        half = torch.arange(0, config.head_dim, 2, dtype=torch.float32)
        self._frequency = (1.0 / config.rope_theta ** (half / config.head_dim)).to(
            transformer.norm.weight.device
        )

    def __call__(self, context: StepContext, x: Tensor) -> Tensor:
        x = F.linear(x, *self._projections[0])
        for block in self._blocks:
            block(context, x, self._frequency)
        return F.linear(F.rms_norm(x, x.shape[-1:], self._norm, self._eps), *self._projections[1])


class ChainLink(NamedTuple):
    """One convolution between the upsampling and the output."""

    conv: ConvMatmul
    adds_residual: bool = False  # from an earlier link with `keeps_sums`
    keeps_sums: bool = False  # before the activation, for a later link


def chain(
    pack: Packer, first: CausalConv, *blocks: DecoderBlock, last: SnakeBeta
) -> list[ChainLink]:
    """Each convolution with the snake after it, which belongs to the next unit or block."""
    links: list[ChainLink] = []
    for block, after in zip(blocks, [*(b.block[0] for b in blocks[1:]), last], strict=True):
        snake, upsample, *units = block.block
        if not links:
            links.append(ChainLink(pack.conv(first).then(snake)))
        links.append(ChainLink(pack.upsample(upsample).then(units[0].act1), keeps_sums=True))
        for unit, follows in zip(units, [*(u.act1 for u in units[1:]), after], strict=True):
            links.append(ChainLink(pack.conv(unit.conv1).then(unit.act2)))
            more = follows is not after
            links.append(
                ChainLink(pack.conv(unit.conv2).then(follows), adds_residual=True, keeps_sums=more)
            )
    return links


class FusedDecoder:
    """A decoder with its weights packed for the kernels."""

    ragged = True

    def __init__(self, codec: CodecDecoder, dtype: torch.dtype) -> None:
        assert supports(codec.config)
        self.config, self.dtype, self.receptive_frames = codec.config, dtype, codec.receptive_frames
        self._table = codec.quantizer.compute().to(dtype)
        books = torch.arange(codec.config.codebooks, device=self._table.device)
        self._starts = books * codec.quantizer.size  # of each codebook in the table
        pack = Packer(dtype)
        self._first = pack.conv(codec.pre_conv)
        self._transformer = FusedPreTransformer(codec.pre_transformer, dtype)
        self._upsamples = [
            (pack.upsample(upsample), pack.convnext(convnext))
            for upsample, convnext in codec.upsample
        ]
        first, *blocks, snake, last = codec.decoder
        self._chain = chain(pack, first, *blocks, last=snake)
        self._output = pack.output(last)

    def step(
        self,
        codes: Tensor,
        state: CodecState,
        rows: Tensor,
        counts: Tensor | None = None,
        out: torch.dtype = torch.float32,
    ) -> Tensor:
        """Advance these rows [B] of the state by codes [B, codebooks, T] -> [B, T * hop].

        With counts [B], 0 to T, a row advances by its first frames only. Everything is causal, so
        later frames only have to be kept out of the state.
        """
        context = _context(codes, state, rows, counts)
        x = self._features(context, codes)
        for upsample, convnext in self._upsamples:
            x = convnext(context, upsample(context, x)[1])
        kept: Tensor | None = None
        for link in self._chain:
            sums, x = link.conv(context, x, kept if link.adds_residual else None, link.keeps_sums)
            kept = sums if link.keeps_sums else kept
        wave = self._output(context, x, out)
        _advance(context)
        return wave

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        """As CodecDecoder's, from codes [B, T, codebooks]."""
        codes = codes.transpose(1, 2)
        context = _context(codes, state, rows)
        self._features(context, codes)
        _advance(context)

    def _features(self, context: StepContext, codes: Tensor) -> Tensor:
        assert context.frames <= MAX_FRAMES
        return self._transformer(context, self._first(context, self._latents(codes))[1])

    def _latents(self, codes: Tensor) -> Tensor:
        batch, codebooks, length = codes.shape
        known = codes.transpose(1, 2).clamp(max=self.config.codebook_size - 1)
        entries = (known + self._starts).reshape(-1, codebooks)
        return F.embedding_bag(entries, self._table, mode="sum").view(batch, length, -1)

    def __call__(
        self, codes: Tensor, state: CodecState, rows: Tensor, counts: Tensor | None = None
    ) -> Tensor:
        """As `step`, from codes [B, T, codebooks] to int16."""
        return self.step(codes.transpose(1, 2), state, rows, counts, torch.int16)

    def prepare(
        self, sizes: Collection[tuple[int, int]], state: CodecState, padding_row: int
    ) -> None:
        """Compile the kernels for steps of these rows and frames."""

        def work() -> None:
            for count, frames in sizes:
                rows = torch.full((count,), padding_row, device=state.pasts.device)
                self(rows.new_zeros(count, frames, self.config.codebooks), state, rows)

        compile_kernels(work)

    @torch.inference_mode()
    def difference(self, codec: CodecDecoder) -> float:
        """Relative RMS difference from the plain decoder's audio, for random codes in two steps."""
        device, random = self._table.device, seeded(0)
        dtype = codec.pre_conv.conv.weight.dtype
        ours, plain = (
            CodecState.allocate(self.config, 1, device, kind) for kind in (self.dtype, dtype)
        )
        row = torch.zeros(1, dtype=torch.long, device=device)
        size = (1, self.config.codebooks, sum(TRIAL_FRAMES))
        codes = torch.randint(self.config.codebook_size, size, generator=random).to(device)
        found, wanted = (
            torch.cat([step(each, state, row).float() for each in codes.split(TRIAL_FRAMES, 2)], 1)
            for step, state in ((self.step, ours), (codec.step, plain))
        )
        floor = 1e-2  # near silence is compared absolutely
        return float((found - wanted).square().mean().sqrt() / wanted.std().clamp(min=floor))


def _context(
    codes: Tensor, state: CodecState, rows: Tensor, counts: Tensor | None = None
) -> StepContext:
    """The context of a step for codes [B, codebooks, T]."""
    frames = codes.shape[-1]
    return StepContext(
        state, rows, torch.full_like(rows, frames) if counts is None else counts, frames
    )


def _advance(context: StepContext) -> None:
    """Advance the rows' frame counters."""
    context.state.frames.index_add_(0, context.rows, context.counts)
