"""Waveform -> log mel spectrogram for the speaker encoder."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

WINDOW = 1024  # samples; also the size of the transform
HOP = 256
BREAK_HZ, BREAK_MEL = 1000.0, 15.0  # Slaney's scale is linear below and logarithmic above
LOG_STEP = np.log(6.4) / 27


def mel_to_hz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    above = BREAK_HZ * np.exp(LOG_STEP * (mel - BREAK_MEL))
    return np.where(mel < BREAK_MEL, mel * BREAK_HZ / BREAK_MEL, above)


def hz_to_mel(hz: float) -> float:
    if hz < BREAK_HZ:
        return hz * BREAK_MEL / BREAK_HZ
    return float(BREAK_MEL + np.log(hz / BREAK_HZ) / LOG_STEP)


def filterbank(bins: int, sample_rate: int) -> NDArray[np.float32]:
    """Triangles of equal area up to half the sample rate: [bins, WINDOW / 2 + 1]."""
    corners = mel_to_hz(np.linspace(0.0, hz_to_mel(sample_rate / 2), bins + 2))
    ramps = corners[:, None] - np.fft.rfftfreq(WINDOW, 1 / sample_rate)
    widths = np.diff(corners)[:, None]
    triangles = np.minimum(-ramps[:-2] / widths[:-1], ramps[2:] / widths[1:])
    area = 2.0 / (corners[2:] - corners[:-2])
    bank = np.maximum(0, triangles).astype(np.float32)
    bank *= area[:, None]  # in float32, as the filters of librosa
    return bank


@lru_cache(maxsize=4)
@torch.inference_mode(False)  # the first caller may be in inference mode, later ones in training
def _tensors(bins: int, sample_rate: int, device: torch.device) -> tuple[Tensor, Tensor]:
    window = torch.hann_window(WINDOW, device=device)
    return torch.from_numpy(filterbank(bins, sample_rate)).to(device), window


def mel_spectrogram(wave: Tensor, bins: int = 128, sample_rate: int = 24_000) -> Tensor:
    """Wave [B, samples] -> log mel [B, bins, samples / HOP]; no energy is below 1e-5."""
    bank, window = _tensors(bins, sample_rate, wave.device)
    edge = (WINDOW - HOP) // 2
    padded = F.pad(wave.float()[:, None], (edge, edge), "reflect")[:, 0]
    spectrum = torch.stft(padded, WINDOW, HOP, window=window, center=False, return_complex=True)
    power = torch.view_as_real(spectrum).square().sum(-1)  # [B, WINDOW / 2 + 1, frames]
    return (bank @ (power + 1e-9).sqrt()).clamp(min=1e-5).log()
