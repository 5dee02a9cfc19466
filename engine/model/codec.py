"""The codec's decoder: codes -> waveform, whole or as a stream.

Everything is causal, so a stream needs only each convolution's past and the keys and values of the
last frames. `CodecState` holds these, one row per stream; `step` advances some rows by the same
number of frames, at any positions. `skip` advances without audio: it leaves out the convolutions,
which are nearly all the work and remember only the last frames. Knows no requests, and never waits
for the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.configs import CodecConfig
from engine.model.convs import (
    CausalConv,
    CausalUpsample,
    ConvCache,
    ConvNeXtBlock,
    DecoderBlock,
    Foldable,
    SnakeBeta,
    conv_cache_size,
)
from engine.model.layers import Attend, Causal, Layers, Transformer
from engine.model.quantizer import SplitQuantizer
from engine.model.zeros import zeros


@dataclass(frozen=True)
class CodecState:
    """The state of streams; the first dimension of each tensor is the row.

    `ring` holds the keys and values of the last window - 1 frames: frame p is at p modulo its
    length. A snapshot of rows is a CodecState of its own.
    """

    frames: Tensor  # [rows] frames decoded so far
    pasts: Tensor  # [rows, size] of the convolutions
    ring: Tensor  # [rows, window - 1, layers, 2, kv_heads, head_dim]

    @classmethod
    def allocate(
        cls,
        config: CodecConfig,
        rows: int,
        device: torch.device | str,
        dtype: torch.dtype,
        pasts: int | None = None,
    ) -> CodecState:
        """`pasts`: the decoder's, where there is one; else it is built without memory to know."""
        block = config.transformer
        assert block.sliding_window is not None
        if pasts is None:
            with torch.device("meta"):
                pasts = CodecDecoder(config).pasts
        keys = (block.sliding_window - 1, block.layers, 2, block.kv_heads, block.head_dim)
        return cls(
            torch.zeros(rows, dtype=torch.long, device=device),
            zeros(rows, pasts, dtype=dtype, device=device),
            zeros(rows, *keys, dtype=dtype, device=device),
        )

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.frames, self.pasts, self.ring

    def reset(self, rows: Tensor) -> None:
        """Set these rows [B] to the start of a stream."""
        for tensor in self.tensors:
            tensor.index_fill_(0, rows, 0)

    def snapshot(self, rows: Tensor) -> CodecState:
        """A copy of these rows [B], as a state of B rows."""
        return CodecState(*(tensor.index_select(0, rows) for tensor in self.tensors))

    def restore(self, rows: Tensor, snapshot: CodecState) -> None:
        """Set these rows [B] to a state of B rows."""
        for tensor, source in zip(self.tensors, snapshot.tensors, strict=True):
            tensor.index_copy_(0, rows, source.to(tensor))


class RingAttention:
    """Attention over the ring and the new frames; collects the new keys and values.

    The mask follows from positions alone, so all layers share one.
    """

    def __init__(self, ring: Tensor, frames: Tensor, positions: Tensor) -> None:
        # ring [B, past, layers, 2, kv_heads, d], frames [B], positions [B, T] of the new frames
        self._past = ring.permute(2, 3, 0, 4, 1, 5)  # [layers, 2, B, kv_heads, past, d]
        self._mask = self._make_mask(frames[:, None], positions, ring.shape[1])
        self._new: list[Tensor] = []

    @staticmethod
    def _make_mask(frames: Tensor, positions: Tensor, past: int) -> Tensor:
        """[B, 1, T, past + T]: a query attends to itself and `past` frames before it."""
        slot = torch.arange(past, device=frames.device)
        at = frames - 1 - torch.remainder(frames - 1 - slot, max(past, 1))  # negative: none yet
        keys = torch.cat((at, positions), 1)[:, None]  # [B, 1, past + T]
        behind = positions[..., None] - keys
        return ((keys >= 0) & (behind >= 0) & (behind <= past))[:, None]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        past = self._past[layer]
        self._new += (k, v)
        keys, values = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        gqa = q.shape[1] != k.shape[1]
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=self._mask, enable_gqa=gqa)

    def collect(self, last: int) -> Tensor:
        """The last new frames in the layout of the ring: [B, last, layers, 2, kv_heads, d]."""
        new = torch.stack([tensor[:, :, -last:] for tensor in self._new])
        layers = new.unflatten(0, (-1, 2))  # [layers, 2, B, kv_heads, last, d]
        return layers.permute(2, 4, 0, 1, 3, 5)


class StreamStep:
    """Rows [B] of a state during one step of some frames; `commit` writes their new state."""

    def __init__(self, state: CodecState, rows: Tensor, frames: int) -> None:
        snapshot = state.snapshot(rows)
        self._state, self._rows, self._after = state, rows, snapshot.frames + frames
        new = torch.arange(frames, device=rows.device)
        self.positions = snapshot.frames[:, None] + new  # [B, T]
        self.cache = ConvCache(snapshot.pasts)
        self.ring = RingAttention(snapshot.ring, snapshot.frames, self.positions)

    def commit(self) -> None:
        """Convolutions that did not run keep their past."""
        state, rows, pasts = self._state, self._rows, self.cache.collect()
        state.frames.index_copy_(0, rows, self._after)
        state.pasts[:, : pasts.shape[1]].index_copy_(0, rows, pasts)
        if past := state.ring.shape[1]:
            slots = self.positions[:, -past:] % past  # [B, last]
            state.ring[rows[:, None], slots] = self.ring.collect(slots.shape[1])


class PreTransformer(Transformer):
    def __init__(self, config: CodecConfig) -> None:
        super().__init__(config.transformer)
        self.input_proj = nn.Linear(config.latent_dim, config.transformer.hidden_size)
        self.output_proj = nn.Linear(config.transformer.hidden_size, config.latent_dim)

    def forward(self, x: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        return self.output_proj(super().forward(self.input_proj(x), positions, attend))


class CodecDecoder(nn.Module):
    """Codes [B, codebooks, T] -> waveform [B, T * hop] in [-1, 1]."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.config = config
        latent, dim = config.latent_dim, config.decoder_dim
        self.quantizer = SplitQuantizer(config.codebooks, config.codebook_size, config.codebook_dim)
        self.pre_conv = CausalConv(config.codebook_dim, latent, 3)
        self.pre_transformer = PreTransformer(config)
        self.upsample: Layers[Layers[Any]] = Layers(
            Layers([CausalUpsample(latent, latent, rate, rate), ConvNeXtBlock(latent)])
            for rate in config.upsampling_ratios
        )
        widths = [dim >> level for level in range(len(config.upsample_rates) + 1)]
        self.decoder: Layers[Any] = Layers(
            [
                CausalConv(latent, dim, 7),
                *map(DecoderBlock, widths, widths[1:], config.upsample_rates),
                SnakeBeta(widths[-1]),
                CausalConv(widths[-1], 1, 7),
            ]
        )

    @property
    def device(self) -> torch.device:
        return self.pre_conv.conv.weight.device

    @property
    def bytes(self) -> int:
        return sum(weight.nbytes for weight in self.parameters())

    def fold(self) -> None:
        """Precompute what follows from the weights alone, until they are loaded or trained."""
        for module in self.modules():
            if isinstance(module, Foldable):
                module.fold()

    def forward(self, codes: Tensor) -> Tensor:
        return self.decode_latents(self.quantizer(codes))

    def decode_latents(self, latents: Tensor) -> Tensor:
        """Quantised latents [B, codebook_dim, T] -> waveform [B, T * hop]; differentiable."""
        positions = torch.arange(latents.shape[-1], device=latents.device)[None]
        attend = Causal(self.config.transformer.sliding_window)
        return self._waveform(self._features(latents, positions, attend, None), None)

    def step(self, codes: Tensor, state: CodecState, rows: Tensor) -> Tensor:
        """Advance these rows [B] of the state by codes [B, codebooks, T] -> [B, T * hop]."""
        step = StreamStep(state, rows, codes.shape[-1])
        x = self._features(self.quantizer(codes), step.positions, step.ring, step.cache)
        wave = self._waveform(x, step.cache)
        step.commit()
        return wave

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        """As `step`, without audio; the rows' audio is right again after `receptive_frames`."""
        step = StreamStep(state, rows, codes.shape[-1])
        self._features(self.quantizer(codes), step.positions, step.ring, step.cache)
        step.commit()

    @property
    def pasts(self) -> int:
        """Numbers that the convolutions of one stream keep."""
        return conv_cache_size(self)

    @cached_property
    def receptive_frames(self) -> int:
        """Frames that the convolutions behind the transformer look back."""
        needed = 0  # of a layer's last inputs
        for layer in reversed([*self.upsample.modules(), *self.decoder.modules()]):
            if isinstance(layer, CausalUpsample):
                needed = -(-needed // layer.conv.stride[0])
            if isinstance(layer, CausalConv | CausalUpsample):
                needed += layer.past
        return needed

    def _features(
        self, latents: Tensor, positions: Tensor, attend: Attend, cache: ConvCache | None
    ) -> Tensor:
        """Latents [B, codebook_dim, T] -> [B, latent, T] with their context."""
        x = self.pre_conv(latents, cache).transpose(1, 2)
        return self.pre_transformer(x, positions, attend).transpose(1, 2)

    def _waveform(self, x: Tensor, cache: ConvCache | None) -> Tensor:
        """[B, latent, T] -> [B, T * hop]."""
        for upsample, convnext in self.upsample:
            x = convnext(upsample(x, cache), cache)
        for layer in self.decoder:
            x = layer(x) if isinstance(layer, SnakeBeta) else layer(x, cache)
        return x.squeeze(1).clamp(-1, 1)
