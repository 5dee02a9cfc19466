"""Discriminators of generated and real audio: small networks on periods and on spectrograms."""

from __future__ import annotations

import itertools
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

Judged: TypeAlias = list[list[Tensor]]  # per discriminator: feature maps, the score last


def _layers(
    channels: tuple[int, ...], kernel: tuple[int, int], stride: tuple[int, int]
) -> nn.ModuleList:
    pad = (kernel[0] // 2, kernel[1] // 2)
    return nn.ModuleList(
        weight_norm(nn.Conv2d(a, b, kernel, stride, pad)) for a, b in itertools.pairwise(channels)
    )


class Judge(nn.Module):
    """Convolutions over an image of the wave, which subclasses define."""

    def __init__(
        self, channels: tuple[int, ...], kernel: tuple[int, int], stride: tuple[int, int]
    ) -> None:
        super().__init__()
        self.layers = _layers(channels, kernel, stride)
        self.score = weight_norm(nn.Conv2d(channels[-1], 1, 3, 1, 1))

    def image(self, wave: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, wave: Tensor) -> list[Tensor]:
        x, seen = self.image(wave), []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.1)
            seen.append(x)
        return [*seen, self.score(x)]


class PeriodDiscriminator(Judge):
    """The wave folded at a period: [B, 1, T / period, period]."""

    def __init__(self, period: int) -> None:
        super().__init__((1, 16, 48, 96, 160), (5, 1), (3, 1))
        self.period = period

    def image(self, wave: Tensor) -> Tensor:
        folded = F.pad(wave, (0, -wave.shape[-1] % self.period))
        return folded.view(len(wave), 1, -1, self.period)


class SpectrumDiscriminator(Judge):
    """A complex spectrogram, real and imaginary parts as two channels."""

    def __init__(self, size: int) -> None:
        super().__init__((2, 24, 48, 48, 48), (3, 9), (1, 2))
        self.size = size

    def image(self, wave: Tensor) -> Tensor:
        window = torch.hann_window(self.size, device=wave.device)
        spectrum = torch.stft(
            wave.float(), self.size, self.size // 4, window=window, return_complex=True
        )
        return torch.view_as_real(spectrum).permute(0, 3, 2, 1)  # [B, 2, frames, bins]


class Judges(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.judges = nn.ModuleList(
            [
                *(PeriodDiscriminator(period) for period in (2, 3, 5, 7, 11)),
                *(SpectrumDiscriminator(size) for size in (1024, 512, 256)),
            ]
        )

    def forward(self, wave: Tensor) -> Judged:
        return [judge(wave) for judge in self.judges]


def judge_loss(real: Judged, made: Judged) -> Tensor:
    return sum(  # type: ignore[return-value]
        (1 - r[-1].float()).square().mean() + m[-1].float().square().mean()
        for r, m in zip(real, made, strict=True)
    )


def fooling_loss(real: Judged, made: Judged) -> tuple[Tensor, Tensor]:
    """The adversarial loss and the feature matching loss."""
    score = sum((1 - m[-1].float()).square().mean() for m in made)
    features = sum(
        (a.detach().float() - b.float()).abs().mean()
        / a.detach().float().abs().mean().clamp(min=1e-3)
        for r, m in zip(real, made, strict=True)
        for a, b in zip(r[:-1], m[:-1], strict=True)
    )
    return score / len(made), features / len(made)  # type: ignore[operator,return-value]
