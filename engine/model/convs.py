"""Causal convolutions and the blocks of the codec made of them.

Each block runs on a whole sequence (zeros before the start; differentiable) or continues a stream
with a `ConvCache` of its past. Both give the same samples, since a convolution's past is its whole
state. Knows no codes and no slots.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import Self

from engine.model.conv_matmul import convolve, upsample
from engine.model.layers import Layers


class ConvCache:
    """The pasts of all convolutions during one step, in the order of execution.

    `flat` [B, size] holds them side by side; `collect` returns the new ones in the same form.
    """

    def __init__(self, flat: Tensor) -> None:
        self._flat, self._at = flat, 0
        self._pasts: list[Tensor] = []

    def extend(self, x: Tensor, past: int) -> Tensor:
        """Put the past before x [B, C, T] -> [B, C, past + T], and store the new past."""
        batch, channels, _ = x.shape
        size = channels * past
        before = self._flat[:, self._at : self._at + size].view(batch, channels, past)
        self._at += size
        joined = torch.cat((before, x), -1)
        self._pasts.append(joined[..., -past:].reshape(batch, size))
        return joined

    def collect(self) -> Tensor:
        return torch.cat(self._pasts, 1)


class Foldable(nn.Module):
    """A module that can cache what it computes from its weights alone.

    `fold` is for inference; loading weights or training drops the cached value.
    """

    folded: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("folded", None, persistent=False)
        self.register_load_state_dict_post_hook(  # type: ignore[no-untyped-call]
            lambda module, _: module.unfold()
        )

    def compute(self) -> Tensor:
        raise NotImplementedError

    def value(self) -> Tensor:
        return self.compute() if self.folded is None else self.folded

    def fold(self) -> None:
        self.folded = self.compute().detach()

    def unfold(self) -> None:
        self.folded = None

    def train(self, mode: bool = True) -> Self:
        if mode:
            self.unfold()
        return super().train(mode)


class CausalConv(nn.Module):
    """A causal convolution; a strided one pads its last step on the right."""

    def __init__(
        self,
        channels: int,
        out: int,
        kernel: int,
        *,
        dilation: int = 1,
        stride: int = 1,
        groups: int = 1,
        bias: bool = True,
        padding: str = "constant",
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(
            channels, out, kernel, stride, dilation=dilation, groups=groups, bias=bias
        )
        self.stride, self.padding = stride, padding
        self.past = (kernel - 1) * dilation + 1 - stride
        self.cache_size = channels * self.past

    def forward(self, x: Tensor, cache: ConvCache | None = None) -> Tensor:
        """[B, C, T] -> [B, out, T / stride]; in a stream, T is a multiple of the stride."""
        if cache is None:
            fill = -x.shape[-1] % self.stride
            x = F.pad(x, (self.past, fill), self.padding) if self.past + fill else x
            whole: Tensor = self.conv(x)
            return whole
        return convolve(self.conv, cache.extend(x, self.past) if self.past else x)


class CausalUpsample(nn.Module):
    """A causal transposed convolution; its kernel is a multiple of the rate.

    It caches inputs, not partial outputs: every output is one sum, in a stream as in a whole run.
    """

    def __init__(self, channels: int, out: int, kernel: int, rate: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose1d(channels, out, kernel, rate)
        self.past = kernel // rate - 1
        self.cache_size = channels * self.past

    def forward(self, x: Tensor, cache: ConvCache | None = None) -> Tensor:
        """[B, C, T] -> [B, out, T * rate]."""
        if cache is None:
            return self.conv(x)[..., : x.shape[-1] * self.conv.stride[0]]
        return upsample(self.conv, cache.extend(x, self.past) if self.past else x)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.dwconv = CausalConv(width, width, 7, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.pwconv1 = nn.Linear(width, 4 * width)
        self.pwconv2 = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x: Tensor, cache: ConvCache | None = None) -> Tensor:
        inner = self.norm(self.dwconv(x, cache).transpose(1, 2))  # [B, T, C]
        inner = self.pwconv2(F.gelu(self.pwconv1(inner)))
        return x + (self.gamma * inner).transpose(1, 2)


class SnakeBeta(Foldable):
    """x + sin²(αx)/β, a channel each; both are stored as logarithms."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(channels))
        self.beta = nn.Parameter(torch.zeros(channels))

    def compute(self) -> Tensor:
        """α and 1/β: [2, C, 1]."""
        alpha, beta = self.alpha.exp(), self.beta.exp() + 1e-9
        return torch.stack((alpha, beta.reciprocal()))[..., None]

    def forward(self, x: Tensor) -> Tensor:
        alpha, scale = self.value()
        sine = torch.sin(x * alpha)
        return torch.addcmul(x, sine * scale, sine)


class ResidualUnit(nn.Module):
    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.act1 = SnakeBeta(channels)
        self.conv1 = CausalConv(channels, channels, 7, dilation=dilation)
        self.act2 = SnakeBeta(channels)
        self.conv2 = CausalConv(channels, channels, 1)

    def forward(self, x: Tensor, cache: ConvCache | None = None) -> Tensor:
        inner = self.conv1(self.act1(x), cache)
        return x + self.conv2(self.act2(inner))


class DecoderBlock(nn.Module):
    """Snake, upsampling, three residual units."""

    def __init__(self, channels: int, out: int, rate: int) -> None:
        super().__init__()
        self.block: Layers[Any] = Layers(
            [
                SnakeBeta(channels),
                CausalUpsample(channels, out, 2 * rate, rate),
                *(ResidualUnit(out, dilation) for dilation in (1, 3, 9)),
            ]
        )

    def forward(self, x: Tensor, cache: ConvCache | None = None) -> Tensor:
        act, *rest = self.block
        x = act(x)
        for layer in rest:
            x = layer(x, cache)
        return x


def conv_cache_size(network: nn.Module) -> int:
    """Numbers in a row of the network's `ConvCache`."""
    kinds = (CausalConv, CausalUpsample)
    return sum(layer.cache_size for layer in network.modules() if isinstance(layer, kinds))
