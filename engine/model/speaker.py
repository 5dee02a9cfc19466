"""The speaker encoder: log mel -> one vector for a voice (an ECAPA-TDNN)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.configs import SpeakerConfig
from engine.model.mel import HOP, mel_spectrogram
from engine.model.padding import NO_PADDING, Padding


def reflect_conv(channels: int, out: int, kernel: int = 1, dilation: int = 1) -> nn.Conv1d:
    return nn.Conv1d(
        channels, out, kernel, dilation=dilation, padding="same", padding_mode="reflect"
    )


class TDNNBlock(nn.Module):
    def __init__(self, channels: int, out: int, kernel: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.conv = reflect_conv(channels, out, kernel, dilation)

    def forward(self, x: Tensor, padding: Padding) -> Tensor:
        looks_around = self.conv.kernel_size[0] > 1
        return F.relu(self.conv(padding.reflect(x) if looks_around else x))


class Res2Net(nn.Module):
    """Groups of channels: each adds the output of the one before it; the first is unchanged."""

    def __init__(self, channels: int, kernel: int, dilation: int, scale: int) -> None:
        super().__init__()
        width = channels // scale
        self.scale = scale
        self.blocks = nn.ModuleList(
            TDNNBlock(width, width, kernel, dilation) for _ in range(scale - 1)
        )

    def forward(self, x: Tensor, padding: Padding) -> Tensor:
        first, *rest = x.chunk(self.scale, 1)
        outputs = [first]
        for block, group in zip(self.blocks, rest, strict=True):
            outputs.append(block(group if len(outputs) == 1 else group + outputs[-1], padding))
        return torch.cat(outputs, 1)


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.conv1 = reflect_conv(channels, inner)
        self.conv2 = reflect_conv(inner, channels)

    def forward(self, x: Tensor, padding: Padding) -> Tensor:
        mean = (x * padding.mean_weights(x)).sum(2, keepdim=True)
        return x * torch.sigmoid(self.conv2(F.relu(self.conv1(mean))))


class SpeakerBlock(nn.Module):
    def __init__(self, channels: int, kernel: int, dilation: int, config: SpeakerConfig) -> None:
        super().__init__()
        self.tdnn1 = TDNNBlock(channels, channels)
        self.res2net_block = Res2Net(channels, kernel, dilation, config.res2net_scale)
        self.tdnn2 = TDNNBlock(channels, channels)
        self.se_block = SqueezeExcite(channels, config.se_channels)

    def forward(self, x: Tensor, padding: Padding) -> Tensor:
        inner = self.tdnn2(self.res2net_block(self.tdnn1(x, padding), padding), padding)
        return x + self.se_block(inner, padding)


def statistics(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted mean and deviation over time: [B, C, T] -> [B, C, 1] each."""
    mean = (weight * x).sum(2, keepdim=True)
    spread = (weight * (x - mean).square()).sum(2, keepdim=True)
    return mean, spread.clamp(min=1e-12).sqrt()


class AttentivePooling(nn.Module):
    """Mean and deviation over time, with attention weights for each channel."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.tdnn = TDNNBlock(3 * channels, inner)
        self.conv = reflect_conv(inner, channels)

    def forward(self, x: Tensor, padding: Padding) -> Tensor:
        plain = [value.expand_as(x) for value in statistics(x, padding.mean_weights(x))]
        scores = self.conv(torch.tanh(self.tdnn(torch.cat((x, *plain), 1), padding)))
        return torch.cat(statistics(x, padding.mask_scores(scores).softmax(2)), 1)  # [B, 2 C, 1]


class SpeakerEncoder(nn.Module):
    def __init__(self, config: SpeakerConfig) -> None:
        super().__init__()
        self.config = config
        first, *middle, last = zip(
            config.channels, config.kernel_sizes, config.dilations, strict=True
        )
        self.blocks = nn.ModuleList(
            [
                TDNNBlock(config.mel_bins, *first),
                *(SpeakerBlock(*numbers, config) for numbers in middle),
            ]
        )
        channels, kernel, dilation = last
        self.mfa = TDNNBlock(channels, channels, kernel, dilation)
        self.asp = AttentivePooling(channels, config.attention_channels)
        self.fc = reflect_conv(2 * channels, config.embedding_dim)

    def forward(self, mel: Tensor, padding: Padding) -> Tensor:
        """Log mel [B, bins, frames] -> vectors [B, width]."""
        x, outputs = self.blocks[0](mel, padding), []
        for block in self.blocks[1:]:
            x = block(x, padding)
            outputs.append(x)
        return self.fc(self.asp(self.mfa(torch.cat(outputs, 1), padding), padding))[..., 0]

    def embed(self, wave: Tensor, padding: Padding = NO_PADDING) -> Tensor:
        """Waves [B, samples] at `config.sample_rate` -> vectors [B, width]."""
        padded = padding.reflect(wave[:, None])[:, 0]
        mel = mel_spectrogram(padded, self.config.mel_bins, self.config.sample_rate)
        return self(mel.to(self.fc.weight.dtype), padding.whole_hops(HOP))
