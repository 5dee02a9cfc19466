"""A phone recognizer as a loss: it detects where a codec has blurred the speech.

It is trained on real speech alone, and compares generated with real speech by recognized phones and
by its layers' features. Knows waves and phones, no codec.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.codec import mel_filterbank
from training.data.phones import PHONES
from training.data.speech_format import PHONE_STEP

STEP, SPAN, BINS, WIDTH = PHONE_STEP // 2, 600, 64, 192  # samples, samples, bands, channels
FLOOR = 1e-3  # amplitude below which sound is ignored
LAYERS = 4


class PhoneRecognizer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(SPAN), persistent=False)
        self.register_buffer(
            "bank", mel_filterbank(BINS, SPAN, torch.device("cpu")), persistent=False
        )
        self.enter = nn.Conv1d(BINS, WIDTH, 5, padding=2)
        self.layers = nn.ModuleList(
            nn.Conv1d(WIDTH, WIDTH, 5, stride=2 if index == 0 else 1, padding=2)
            for index in range(LAYERS)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(1, WIDTH) for _ in range(LAYERS))
        self.leave = nn.Conv1d(WIDTH, len(PHONES), 1)

    def log_mel(self, wave: Tensor) -> Tensor:
        """Waves [B, samples] -> log mel bands [B, BINS, samples / STEP], without their mean."""
        padded = F.pad(wave.float(), ((SPAN - STEP) // 2, (SPAN - STEP) // 2))
        window, bank = self.get_buffer("window"), self.get_buffer("bank")
        spectrum = torch.stft(padded, SPAN, STEP, window=window, center=False, return_complex=True)
        power = torch.view_as_real(spectrum).square().sum(-1) * (4 / SPAN) ** 2
        bands = (bank @ (power + 1e-12).sqrt() + FLOOR).log()
        return bands - bands.mean((1, 2), keepdim=True)

    def forward(self, wave: Tensor) -> list[Tensor]:
        """The layers' features, and last the phones' logits [B, phones, samples / PHONE_STEP]."""
        x = F.gelu(self.enter(self.log_mel(wave)))
        seen = []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            new = F.gelu(norm(layer(x)))
            x = new if new.shape != x.shape else x + new
            seen.append(x)
        return [*seen, self.leave(x)]


def phone_loss(logits: Tensor, phones: Tensor) -> Tensor:
    """The loss of logits [B, phones, T] for the true phones [B, T]."""
    return F.cross_entropy(logits.float(), phones)


def feature_distance(real: list[Tensor], made: list[Tensor]) -> Tensor:
    """The relative distance of generated and real speech in the layers' features."""
    apart = [
        (a.detach() - b).abs().mean() / a.detach().abs().mean()
        for a, b in zip(real[:-1], made[:-1], strict=True)
    ]
    return torch.stack(apart).mean()
