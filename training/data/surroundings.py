"""Other voices, rooms, noise and microphones for waves [B, samples] on any device.

For rows whose labels are not used afterwards, or only where times stay. Knows no networks.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from training.data.speech_format import RATE

MOVED, FACTOR = 0.6, (0.78, 1.28)  # share of the rows; of pitch, formants and pace together
ROOMY, ROOM, DRY = 0.25, (0.08, 0.45), (0.05, 0.4)  # share; seconds to fall by 60 dB; reverberation
NOISY, RATIO = 0.25, (14.0, 45.0)  # share; dB below the speech
COLOUR = (0.0, 1.0)  # exponent of the noise's amplitude: white to pink and beyond
LEVELS = (-8.0, 4.0)  # dB
LIMITED, BAND = 0.12, (3_600.0, 11_000.0)  # share; Hz
HUMPS, HUMP, WIDTH = 3, 2.0, 0.8  # of a microphone: how many, dB, octaves


def drawn(like: Tensor, low: float, high: float) -> Tensor:
    """A number for each row [B, 1]."""
    return torch.empty(len(like), 1, device=like.device).uniform_(low, high)


def some(like: Tensor, share: float) -> Tensor:
    """Which rows [B, 1]."""
    return drawn(like, 0, 1) < share


def moved(waves: Tensor) -> Tensor:
    """Some rows played faster or slower, from their start on; slower ones are cut, and faster ones
    begin again at their end."""
    factor = drawn(waves, *map(math.log, FACTOR)).exp()
    factor = torch.where(some(waves, MOVED), factor, torch.ones_like(factor))
    size = waves.shape[1]
    at = torch.arange(size, device=waves.device) * factor
    left = at.floor()
    part, left = at - left, left.long()
    # Windowed sinc over eight samples, below the lower of both rates' limits.
    cutoff, made = (1 / factor).clamp(max=1), torch.zeros_like(waves)
    for offset in range(-7, 9):
        far = part - offset
        window = torch.cos(far * (math.pi / 18)).clamp(min=0).square()
        taken = waves.gather(1, (left + offset).remainder(size))
        made += taken * cutoff * torch.special.sinc(cutoff * far) * window
    return torch.where(factor == 1, waves, made)


def surrounded(waves: Tensor) -> Tensor:
    """Rows at other levels; some in a room, with noise, or through a narrow microphone."""
    size = waves.shape[1]
    spectrum = torch.fft.rfft(waves, 2 * size)
    hertz = torch.linspace(0, RATE / 2, spectrum.shape[1], device=waves.device)
    spectrum = spectrum * room_response(waves) * microphone(waves, hertz)
    heard = torch.fft.irfft(spectrum, 2 * size)[:, :size]
    heard = heard + noise(heard, hertz)
    heard = heard * 10 ** (drawn(waves, *LEVELS) / 20)
    return heard / heard.abs().amax(1, keepdim=True).clamp(min=1.0)


def room_response(waves: Tensor) -> Tensor:
    """A spectrum [B, bins] of a decaying tail after the direct sound."""
    size = waves.shape[1]
    at = torch.arange(size, device=waves.device) / RATE
    tail = torch.randn_like(waves) * torch.exp(-6.9 * at / drawn(waves, *ROOM)) * (at > 0.003)
    tail = tail / tail.norm(dim=1, keepdim=True) * drawn(waves, *DRY) * some(waves, ROOMY)
    tail[:, 0] += 1
    return torch.fft.rfft(tail, 2 * size)


def microphone(waves: Tensor, hertz: Tensor) -> Tensor:
    """Gains [B, bins]: humps, and for some rows no highs."""
    octave = (hertz / 50).clamp(min=1).log2()
    response = torch.zeros(len(waves), len(hertz), device=waves.device)
    for _ in range(HUMPS):
        centre, gain = drawn(waves, 0, 8), HUMP * torch.randn(len(waves), 1, device=waves.device)
        response = response + gain * (-((octave - centre) / WIDTH).square()).exp()
    limit = torch.where(
        some(waves, LIMITED), drawn(waves, *BAND), torch.full_like(response[:, :1], 1e6)
    )
    return 10 ** (response / 20) * ((limit - hertz) / 150).clamp(-30, 30).sigmoid()


def noise(waves: Tensor, hertz: Tensor) -> Tensor:
    """Noise for some rows [B, samples], at some level below theirs."""
    size = waves.shape[1]
    white = torch.fft.rfft(torch.randn_like(waves), 2 * size)
    shaped = white * (hertz.clamp(min=60) / 60) ** -drawn(waves, *COLOUR)
    made = torch.fft.irfft(shaped, 2 * size)[:, :size]
    level = waves.norm(dim=1, keepdim=True) * 10 ** (-drawn(waves, *RATIO) / 20)
    return made / made.norm(dim=1, keepdim=True) * level * some(waves, NOISY)
