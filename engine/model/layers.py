"""One transformer block for talker, predictor and codec.

They differ in where keys and values are kept, so a block is called with an `Attend`: a callable
that takes a layer's new queries, keys and values, stores what it must, and returns the attended
values. `Causal` stores nothing (training, whole sequences); the worker's caches and the codec's
ring are others.

Knows no slots, prompts or codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.configs import TransformerConfig

M = TypeVar("M", bound=nn.Module)


class Attend(Protocol):
    """Attention over the stored positions and the new ones."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q [B, heads, T, d], k and v [B, kv_heads, T, d] -> [B, heads, T, d]."""
        ...


class Causal:
    """Plain causal attention over one whole sequence, windowed where the config says so."""

    def __init__(self, window: int | None = None) -> None:
        self.window = window

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        length = q.shape[2]
        if self.window is None or length <= self.window:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        behind = torch.arange(length, device=q.device)
        distance = behind[:, None] - behind[None, :]
        mask = (distance >= 0) & (distance < self.window)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def embedding(rows: int, width: int) -> nn.Embedding:
    """A table of embeddings. `nn.Embedding(rows, width)` without memory, on the device "meta",
    imports torch's compiler for its random start, which takes a second."""
    table = torch.empty(rows, width)
    if not table.is_meta:
        nn.init.normal_(table)
    return nn.Embedding.from_pretrained(table, freeze=False)


class Layers(nn.ModuleList, Generic[M]):
    """A list of modules of one type."""

    if TYPE_CHECKING:

        def __init__(self, modules: Iterable[M]) -> None: ...
        def __iter__(self) -> Iterator[M]: ...
        def __getitem__(self, at: int) -> M: ...  # type: ignore[override]


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type == "cpu":
            return rms_normed(x, self.eps) * self.weight
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rms_normed(x: Tensor, eps: float) -> Tensor:
    """x over its root mean square in the last dimension."""
    if x.device.type != "cpu" or x.dtype.itemsize < 4:
        return F.rms_norm(x, x.shape[-1:], None, eps)
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # half the time of rms_norm
    return x * length.square().mul_(1 / x.shape[-1]).add_(eps).rsqrt_()


class LayerScale(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), 0.01))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x


def rotary_embedding(positions: Tensor, head_dim: int, theta: float) -> tuple[Tensor, Tensor]:
    """cos and signed sin of a rotary embedding: positions [B, T] -> [B, 1, T, head_dim] each."""
    half = torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float32)
    frequency = 1.0 / theta ** (half / head_dim)
    angle = positions.float()[:, None, :, None] * frequency
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """NeoX rotary embedding; `sin` carries the sign, so that a roll replaces the usual halves."""
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin


class Attention(nn.Module):
    """Queries, keys and values share one fused weight: q rows, then k, then v."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.heads, config.kv_heads, config.head_dim
        rows = (config.heads + 2 * config.kv_heads) * config.head_dim
        self.qkv_proj = nn.Linear(config.hidden_size, rows, bias=False)
        self.o_proj = nn.Linear(config.heads * config.head_dim, config.hidden_size, bias=False)
        self.q_norm, self.k_norm = self._norm(config), self._norm(config)

    @staticmethod
    def _norm(config: TransformerConfig) -> RMSNorm | nn.Identity:
        return RMSNorm(config.head_dim, config.norm_eps) if config.qk_norm else nn.Identity()

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, layer: int, attend: Attend) -> Tensor:
        batch, length, _ = x.shape
        rows = self.qkv_proj(x).view(batch, length, -1, self.head_dim).transpose(1, 2)
        both, v = rows.split((self.heads + self.kv_heads, self.kv_heads), 1)
        q, k = apply_rotary(self._norm_heads(both), cos, sin).split((self.heads, self.kv_heads), 1)
        out = attend(layer, q, k, v)  # [B, heads, T, d]
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))

    def _norm_heads(self, both: Tensor) -> Tensor:
        """Queries and keys [B, heads + kv_heads, T, d], together: half as many small kernels."""
        norms = self.norms()
        if norms is None:
            return both
        q, k = (norm.weight for norm in norms)
        weight = torch.cat((q.expand(self.heads, -1), k.expand(self.kv_heads, -1)))
        return rms_normed(both, norms[0].eps) * weight[:, None]

    def norms(self) -> tuple[RMSNorm, RMSNorm] | None:
        """The norms of queries and of keys, if the layer has any."""
        q, k = self.q_norm, self.k_norm
        return (q, k) if isinstance(q, RMSNorm) and isinstance(k, RMSNorm) else None


class GatedMLP(nn.Module):
    """Gate and up share one fused weight: gate rows, then up."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.gate_up_proj = nn.Linear(config.hidden_size, 2 * config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, -1)
        return self.down_proj(F.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.norm_eps)
        self.mlp = GatedMLP(config)
        scales = (_layer_scale(config), _layer_scale(config))
        self.self_attn_layer_scale, self.mlp_layer_scale = scales

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, layer: int, attend: Attend) -> Tensor:
        attended = self.self_attn(self.input_layernorm(x), cos, sin, layer, attend)
        x = x + self.self_attn_layer_scale(attended)
        return x + self.mlp_layer_scale(self.mlp(self.post_attention_layernorm(x)))


def _layer_scale(config: TransformerConfig) -> LayerScale | nn.Identity:
    return LayerScale(config.hidden_size) if config.layer_scale else nn.Identity()


def scale_of(layer: LayerScale | nn.Identity) -> Tensor | None:
    """The scale of each output; None: the layer has none."""
    return layer.scale if isinstance(layer, LayerScale) else None


class Transformer(nn.Module):
    """The blocks and the last norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = Layers(Block(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.hidden_size, config.norm_eps)

    def forward(self, x: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """x [B, T, width] at positions [B, T] -> normed hidden states [B, T, width]."""
        return self.run(x, self.rotary_embedding(positions, x.dtype), attend)

    def rotary_embedding(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        cos, sin = rotary_embedding(positions, self.config.head_dim, self.config.rope_theta)
        return cos.to(dtype), sin.to(dtype)

    def run(self, x: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend) -> Tensor:
        """As `forward`, from cos and sin of the positions."""
        for layer, block in enumerate(self.layers):
            x = block(x, *rotary, layer, attend)
        return self.norm(x)
