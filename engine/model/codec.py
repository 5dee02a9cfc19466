"""The codec's decoder: codes -> waveform, whole or as a stream.

Everything in it is causal, so a stream only needs each convolution's past and the keys and
values of the last frames. `CodecState` holds these, a row for each stream; `step` advances
some rows by the same number of frames, wherever each of them is. What nobody is to hear is
skipped: of the convolutions, nearly all the work, only the last frames leave something behind.
This module knows nothing of requests, and never waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.configs import CodecConfig
from engine.model.convs import (
    CausalConv,
    CausalUpsample,
    ConvNeXtBlock,
    DecoderBlock,
    Foldable,
    Memory,
    SnakeBeta,
    memory_size,
)
from engine.model.layers import Attend, Causal, Transformer
from engine.model.quantizer import SplitQuantizer


@dataclass(frozen=True)
class CodecState:
    """What streams remember; the first dimension of each tensor is the row.

    `ring` keeps the keys and values of the last window - 1 frames: frame p lies at p modulo
    its length. A snapshot of a row is a state of its own, of one row.
    """

    frames: Tensor  # [rows] frames decoded so far
    pasts: Tensor  # [rows, size] of the convolutions
    ring: Tensor  # [rows, window - 1, layers, 2, kv_heads, head_dim]

    @classmethod
    def allocate(
        cls, config: CodecConfig, rows: int, device: torch.device | str, dtype: torch.dtype
    ) -> CodecState:
        block = config.transformer
        assert block.sliding_window is not None
        with torch.device("meta"):
            size = memory_size(CodecDecoder(config))
        keys = (block.sliding_window - 1, block.layers, 2, block.kv_heads, block.head_dim)
        return cls(
            torch.zeros(rows, dtype=torch.long, device=device),
            torch.zeros(rows, size, dtype=dtype, device=device),
            torch.zeros(rows, *keys, dtype=dtype, device=device),
        )

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.frames, self.pasts, self.ring

    def reset(self, rows: Tensor) -> None:
        """Forget these rows [B]."""
        for tensor in self.tensors:
            tensor.index_fill_(0, rows, 0)

    def snapshot(self, rows: Tensor) -> CodecState:
        """A copy of these rows [B], as a state of B rows."""
        return CodecState(*(tensor.index_select(0, rows) for tensor in self.tensors))

    def restore(self, rows: Tensor, kept: CodecState) -> None:
        """Set these rows [B] to a state of B rows."""
        for tensor, source in zip(self.tensors, kept.tensors, strict=True):
            tensor.index_copy_(0, rows, source.to(tensor))


class Ring:
    """Attention over the rows' kept frames and the new ones; keeps what the ring will need.

    Which of the kept frames a query sees follows from its position alone, so the mask is
    made once for all layers.
    """

    def __init__(self, kept: Tensor, frames: Tensor, positions: Tensor) -> None:
        # kept [B, past, layers, 2, kv_heads, d], frames [B], positions [B, T] of the new frames
        self._past = kept.permute(2, 3, 0, 4, 1, 5)  # [layers, 2, B, kv_heads, past, d]
        self._mask = self._visible(frames[:, None], positions, kept.shape[1])
        self._new: list[Tensor] = []

    @staticmethod
    def _visible(frames: Tensor, positions: Tensor, past: int) -> Tensor:
        """[B, 1, T, past + T]: a query sees itself and `past` frames before it."""
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
        """The last new frames, as the ring lays them out: [B, last, layers, 2, kv_heads, d]."""
        new = torch.stack([tensor[:, :, -last:] for tensor in self._new])
        layers = new.unflatten(0, (-1, 2))  # [layers, 2, B, kv_heads, last, d]
        return layers.permute(2, 4, 0, 1, 3, 5)


class Advance:
    """Rows [B] of a state on their way by some frames; `keep` puts them where they got to."""

    def __init__(self, state: CodecState, rows: Tensor, frames: int) -> None:
        kept = state.snapshot(rows)
        self._state, self._rows, self._after = state, rows, kept.frames + frames
        self.positions = kept.frames[:, None] + torch.arange(frames, device=rows.device)  # [B, T]
        self.memory, self.ring = Memory(kept.pasts), Ring(kept.ring, kept.frames, self.positions)

    def keep(self) -> None:
        """Convolutions that were not run keep the past they had."""
        state, rows, pasts = self._state, self._rows, self.memory.collect()
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
        self.upsample = nn.ModuleList(
            nn.ModuleList([CausalUpsample(latent, latent, rate, rate), ConvNeXtBlock(latent)])
            for rate in config.upsampling_ratios
        )
        widths = [dim >> level for level in range(len(config.upsample_rates) + 1)]
        self.decoder = nn.ModuleList(
            [
                CausalConv(latent, dim, 7),
                *map(DecoderBlock, widths, widths[1:], config.upsample_rates),
                SnakeBeta(widths[-1]),
                CausalConv(widths[-1], 1, 7),
            ]
        )

    def fold(self) -> None:
        """Keep what follows from the weights alone; until they are loaded anew or trained."""
        for module in self.modules():
            if isinstance(module, Foldable):
                module.fold()

    def forward(self, codes: Tensor) -> Tensor:
        return self.decode_latents(self.quantizer(codes))

    def decode_latents(self, latents: Tensor) -> Tensor:
        """Quantised latents [B, codebook_dim, T] -> waveform [B, T * hop]; differentiable."""
        positions = torch.arange(latents.shape[-1], device=latents.device)[None]
        attend = Causal(self.config.transformer.sliding_window)
        return self._sound(self._understand(latents, positions, attend, None), None)

    def step(self, codes: Tensor, state: CodecState, rows: Tensor) -> Tensor:
        """Advance these rows [B] of the state by codes [B, codebooks, T] -> [B, T * hop]."""
        going = Advance(state, rows, codes.shape[-1])
        x = self._understand(self.quantizer(codes), going.positions, going.ring, going.memory)
        wave = self._sound(x, going.memory)
        going.keep()
        return wave

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        """As `step`, without audio; the rows' audio is right again after `receptive_frames`."""
        going = Advance(state, rows, codes.shape[-1])
        self._understand(self.quantizer(codes), going.positions, going.ring, going.memory)
        going.keep()

    @cached_property
    def receptive_frames(self) -> int:
        """How many frames back the convolutions behind the transformer remember."""
        needed = 0  # of a layer's last inputs
        for layer in reversed([*self.upsample.modules(), *self.decoder.modules()]):
            if isinstance(layer, CausalUpsample):
                needed = -(-needed // layer.conv.stride[0])
            if isinstance(layer, CausalConv | CausalUpsample):
                needed += layer.past
        return needed

    def _understand(
        self, latents: Tensor, positions: Tensor, attend: Attend, memory: Memory | None
    ) -> Tensor:
        """Latents [B, codebook_dim, T] -> [B, latent, T] that know what was said before."""
        x = self.pre_conv(latents, memory).transpose(1, 2)
        return self.pre_transformer(x, positions, attend).transpose(1, 2)

    def _sound(self, x: Tensor, memory: Memory | None) -> Tensor:
        """[B, latent, T] -> [B, T * hop]."""
        for rise, smooth in self.upsample:
            x = smooth(rise(x, memory), memory)
        for layer in self.decoder:
            x = layer(x) if isinstance(layer, SnakeBeta) else layer(x, memory)
        return x.squeeze(1).clamp(-1, 1)
