"""The codec's encoder (Mimi's): waveform -> latents -> codes.

Built from the decoder's parts rather than taken from transformers, whose parameter names change
between versions: these are the published ones. It runs on whole recordings only. Knows no voices
and no files.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.configs import EncoderConfig, TransformerConfig
from engine.model.convs import CausalConv
from engine.model.layers import Attend, Attention, Layers, LayerScale, rotary_embedding
from engine.model.padding import NO_PADDING, Padding


class ResNetBlock(nn.Module):
    def __init__(self, channels: int, dilation: int, config: EncoderConfig) -> None:
        super().__init__()
        inner = channels // config.compress
        self.block = nn.Sequential(
            nn.ELU(),
            CausalConv(channels, inner, config.residual_kernel_size, dilation=dilation),
            nn.ELU(),
            CausalConv(inner, channels, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.block(x)


class WaveEncoder(nn.Module):
    """Waves [B, 1, samples] -> [B, width, T] and its padding, downsampled by all rates.

    A padded length is a whole number of frames.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        channels = config.num_filters
        layers: list[nn.Module] = [CausalConv(1, channels, config.kernel_size)]
        for rate in config.downsample_rates:
            growth = (config.dilation_growth**level for level in range(config.residual_layers))
            layers += [ResNetBlock(channels, dilation, config) for dilation in growth]
            layers += [nn.ELU(), CausalConv(channels, 2 * channels, 2 * rate, stride=rate)]
            channels *= 2
        layers += [
            nn.ELU(),
            CausalConv(channels, config.transformer.hidden_size, config.last_kernel_size),
        ]
        self.layers = nn.Sequential(*layers)

    def forward(self, wave: Tensor, padding: Padding) -> tuple[Tensor, Padding]:
        x = wave
        for layer in self.layers:
            if isinstance(layer, CausalConv) and layer.stride > 1:
                x, padding = padding.zero_fill(x), padding.downsample(layer.stride)
            x = layer(x)
        return x, padding


class MLP(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.fc1 = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.fc2 = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class EncoderBlock(nn.Module):
    """As `layers.Block`, but with LayerNorm and an MLP without a gate."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.LayerNorm(config.hidden_size, config.norm_eps)
        self.self_attn = Attention(config)
        self.self_attn_layer_scale = LayerScale(config.hidden_size)
        self.post_attention_layernorm = nn.LayerNorm(config.hidden_size, config.norm_eps)
        self.mlp = MLP(config)
        self.mlp_layer_scale = LayerScale(config.hidden_size)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, layer: int, attend: Attend) -> Tensor:
        attended = self.self_attn(self.input_layernorm(x), cos, sin, layer, attend)
        x = x + self.self_attn_layer_scale(attended)
        return x + self.mlp_layer_scale(self.mlp(self.post_attention_layernorm(x)))


def causal_attention(_: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention with sums in the reference's order.

    Codes are the nearest of many vectors: where two are equally near, the last bit decides.
    """
    scores = q @ k.transpose(2, 3) * q.shape[-1] ** -0.5  # [B, heads, T, T]
    hidden = torch.full_like(scores[0, 0], torch.finfo(scores.dtype).min).triu(1)
    return torch.softmax(scores + hidden, -1, dtype=torch.float32).to(v.dtype) @ v


class EncoderTransformer(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = Layers(EncoderBlock(config) for _ in range(config.layers))

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, width] -> [B, T, width]."""
        positions = torch.arange(x.shape[1], device=x.device)[None]
        cos, sin = rotary_embedding(positions, self.config.head_dim, self.config.rope_theta)
        for layer, block in enumerate(self.layers):
            x = block(x, cos.to(x.dtype), sin.to(x.dtype), layer, causal_attention)
        return x


class Codebook(nn.Module):
    """A table stored as running sums and counts, and its nearest entries."""

    cluster_usage: Tensor
    embed_sum: Tensor

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.register_buffer("cluster_usage", torch.ones(size))
        self.register_buffer("embed_sum", torch.zeros(size, width))

    def table(self) -> Tensor:
        return self.embed_sum / self.cluster_usage.clamp(min=1e-5)[:, None]

    def nearest(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors [B, T, width] -> their codes [B, T] and the table's vectors [B, T, width]."""
        table = self.table().float()
        codes = torch.cdist(x.float().flatten(0, 1)[None], table[None])[0].argmin(-1)
        return codes.view(x.shape[:-1]), F.embedding(codes, table).view_as(x).to(x.dtype)


class CodebookLayer(nn.Module):
    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.codebook = Codebook(size, width)


class ResidualQuantizer(nn.Module):
    """Each codebook codes the residual of the ones before it."""

    def __init__(self, codebooks: int, config: EncoderConfig) -> None:
        super().__init__()
        width, inner = config.transformer.hidden_size, config.codebook_dim
        self.input_proj = nn.Conv1d(width, inner, 1, bias=False)
        self.output_proj = nn.Conv1d(
            inner, width, 1, bias=False
        )  # published, but not needed to encode
        self.layers = Layers(CodebookLayer(config.codebook_size, inner) for _ in range(codebooks))

    def forward(self, latents: Tensor) -> list[Tensor]:
        """[B, width, T] -> codes [B, T], a codebook each."""
        residual, codes = self.input_proj(latents).transpose(1, 2), []
        for layer in self.layers:
            code, found = layer.codebook.nearest(residual)
            codes.append(code)
            residual = residual - found
        return codes


class EncoderQuantizer(nn.Module):
    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        acoustic = config.codebooks - config.semantic_codebooks
        self.semantic_residual_vector_quantizer = ResidualQuantizer(
            config.semantic_codebooks, config
        )
        self.acoustic_residual_vector_quantizer = ResidualQuantizer(acoustic, config)

    def forward(self, latents: Tensor) -> Tensor:
        """[B, width, T] -> codes [B, T, codebooks]."""
        semantic = self.semantic_residual_vector_quantizer(latents)
        return torch.stack(semantic + self.acoustic_residual_vector_quantizer(latents), -1)


class CodecEncoder(nn.Module):
    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        width = config.transformer.hidden_size
        self.encoder = WaveEncoder(config)
        self.encoder_transformer = EncoderTransformer(config.transformer)
        self.downsample = (
            CausalConv(
                width,
                width,
                2 * config.downsample_stride,
                stride=config.downsample_stride,
                bias=False,
                padding="replicate",
            )
            if config.downsample_stride > 1
            else nn.Identity()
        )
        self.quantizer = EncoderQuantizer(config)

    def latents(self, wave: Tensor, padding: Padding = NO_PADDING) -> Tensor:
        """Waves [B, samples] -> latents [B, width, frames]; differentiable."""
        x, padding = self.encoder(wave[:, None], padding)
        x = self.encoder_transformer(x.transpose(1, 2)).transpose(1, 2)
        return self.downsample(padding.replicate(x))

    def encode(self, wave: Tensor, padding: Padding = NO_PADDING) -> Tensor:
        """Waves [B, samples] -> codes [B, frames, codebooks]; a partial frame counts."""
        return self.quantizer(self.latents(wave, padding))

    forward = encode
