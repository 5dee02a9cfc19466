"""Discriminators of real and generated audio: convolutions over periods and over spectrograms.

The losses are least squares and the distance of feature maps. Knows waves, no codec.
"""

from __future__ import annotations

import itertools
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

FeatureMaps: TypeAlias = list[list[Tensor]]  # per discriminator: feature maps, the score last

PERIODS = (2, 3, 5, 7, 11)
SIZES = (2048, 1024, 512, 256)  # of spectrograms, in samples
LOUDNESS, SILENCE = 0.3, 1e-3  # power that magnitudes are raised to, and about the softest of them
PERIOD_CHANNELS = (1, 32, 96, 192, 320)
SPECTRUM_CHANNELS = (2, 24, 40, 56, 56)


class Discriminator(nn.Module):
    """Convolutions over an image of the wave, which subclasses define."""

    def __init__(
        self, channels: tuple[int, ...], kernel: tuple[int, int], stride: tuple[int, int]
    ) -> None:
        super().__init__()
        pad = (kernel[0] // 2, kernel[1] // 2)
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv2d(a, b, kernel, stride, pad))
            for a, b in itertools.pairwise(channels)
        )
        self.score = weight_norm(nn.Conv2d(channels[-1], 1, 3, 1, 1))

    def image(self, wave: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, wave: Tensor) -> list[Tensor]:
        x, maps = self.image(wave).contiguous(memory_format=torch.channels_last), []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.1)
            maps.append(x)
        return [*maps, self.score(x)]


class PeriodDiscriminator(Discriminator):
    """The wave folded at a period: [B, 1, T / period, period]."""

    def __init__(self, period: int) -> None:
        super().__init__(PERIOD_CHANNELS, (5, 1), (3, 1))
        self.period = period

    def image(self, wave: Tensor) -> Tensor:
        folded = F.pad(wave, (0, -wave.shape[-1] % self.period))
        return folded.view(len(wave), 1, -1, self.period)


class SpectrumDiscriminator(Discriminator):
    """A complex spectrogram, real and imaginary parts as two channels.

    Magnitudes are compressed, since what listeners mind most, noise between the harmonics, is soft.
    """

    def __init__(self, size: int) -> None:
        super().__init__(SPECTRUM_CHANNELS, (3, 9), (1, 2))
        self.size = size
        self.register_buffer("window", torch.hann_window(size), persistent=False)

    def image(self, wave: Tensor) -> Tensor:
        spectrum = torch.stft(
            wave.float(),
            self.size,
            self.size // 4,
            window=self.get_buffer("window"),
            normalized=True,
            return_complex=True,
        )
        parts = torch.view_as_real(spectrum).permute(0, 3, 2, 1)  # [B, 2, frames, bins]
        power = parts.square().sum(1, keepdim=True) + SILENCE**2
        return parts * power.pow((LOUDNESS - 1) / 2)


class Discriminators(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.all = nn.ModuleList(
            [*map(PeriodDiscriminator, PERIODS), *map(SpectrumDiscriminator, SIZES)]
        )

    def forward(self, wave: Tensor) -> FeatureMaps:
        return [each(wave) for each in self.all]


def discriminator_loss(real: FeatureMaps, made: FeatureMaps) -> Tensor:
    return torch.stack(
        [
            (1 - r[-1].float()).square().mean() + m[-1].float().square().mean()
            for r, m in zip(real, made, strict=True)
        ]
    ).sum()


def adversarial_loss(made: FeatureMaps) -> Tensor:
    """How far the scores of generated audio are from those of real audio."""
    return torch.stack([(1 - m[-1].float()).square().mean() for m in made]).mean()


def feature_loss(real: FeatureMaps, made: FeatureMaps) -> Tensor:
    """The relative distance of the feature maps, summed over layers."""
    apart = [
        (a.detach() - b).abs().mean(dtype=torch.float32)
        / a.detach().abs().mean(dtype=torch.float32).clamp(min=1e-3)
        for r, m in zip(real, made, strict=True)
        for a, b in zip(r[:-1], m[:-1], strict=True)
    ]
    return torch.stack(apart).sum() / len(made)
