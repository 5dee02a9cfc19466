"""From a network's waves to shards' waves, a batch at a time: vocal tract, tilt, ends, level.

For tensors [B, samples] on any device, whose rows end in silence. Knows no speakers.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from training.data.speech_format import LOUDNESS, RATE, weighting

REACH = 24  # samples on either side that one sample is made of
HOP = 240  # samples: 10 ms, in which ends are looked for
BEFORE, AFTER = 6, 17  # hops of silence that stay
SILENCE = 10**-4.2  # of the loudest hop's power
BLOCK, STEP = int(0.4 * RATE), int(0.1 * RATE)
HIGHEST_PEAK = 0.95


def scale_tract(waves: Tensor, tract: Tensor) -> Tensor:
    """Play each row `tract` [B] times as fast: formants and pitch rise, the row gets shorter.

    Rows keep their room: what a shorter one leaves is silence, what a longer one lacks is cut.
    """
    at = torch.arange(waves.shape[1], device=waves.device) * tract[:, None]  # [B, samples]
    left, cutoff = at.floor().long(), (1 / tract).clamp(max=1)[:, None]
    made, padded = torch.zeros_like(waves), F.pad(waves, (0, 1))
    for offset in range(1 - REACH, REACH + 1):
        index = left + offset
        inside = (index >= 0) & (index < waves.shape[1])
        taken = padded.gather(1, torch.where(inside, index, waves.shape[1]))
        far = at - index
        window = torch.cos(far * (math.pi / 2 / REACH)).clamp(min=0).square()
        made += taken * cutoff * torch.special.sinc(cutoff * far) * window
    return made


def filter_rows(waves: Tensor, gain: Tensor) -> Tensor:
    """Rows through gains of a spectrum of twice their length [bins] or [B, bins]."""
    size = 2 * waves.shape[1]
    return torch.fft.irfft(torch.fft.rfft(waves, size) * gain, size)[:, : waves.shape[1]]


def frequencies(waves: Tensor) -> Tensor:
    return torch.fft.rfftfreq(2 * waves.shape[1], 1 / RATE, device=waves.device)


def tilt_rows(waves: Tensor, tilt: Tensor) -> Tensor:
    """`tilt` [B] dB an octave about 1 kHz."""
    octaves = (frequencies(waves).clamp(150, 6000) / 1000).log2()
    return filter_rows(waves, 10 ** (tilt[:, None] * octaves / 20))


def silence_after(waves: Tensor, ends: Tensor) -> Tensor:
    """Silence from these samples [B] on."""
    return waves * (torch.arange(waves.shape[1], device=waves.device) < ends[:, None])


def speech_spans(waves: Tensor) -> Tensor:
    """Where speech begins and ends in each row, with a little silence: [B, 2] samples."""
    hops = waves.shape[1] // HOP
    power = waves[:, : hops * HOP].unflatten(1, (hops, HOP)).square().mean(2)
    loud = power > power.amax(1, keepdim=True) * SILENCE
    number = torch.arange(hops, device=waves.device)
    first = torch.where(loud, number, hops).amin(1)
    last = torch.where(loud, number, 0).amax(1)
    spans = torch.stack(((first - BEFORE) * HOP, (last + AFTER) * HOP), 1)
    return spans.clamp(0, waves.shape[1])


def crop_rows(waves: Tensor, spans: Tensor) -> tuple[Tensor, Tensor]:
    """Each row from its span's start on, silence behind the span, and how long each is [B]."""
    lengths = spans[:, 1] - spans[:, 0]
    along = torch.arange(int(lengths.max()), device=waves.device)
    at = (spans[:, :1] + along).clamp(max=waves.shape[1] - 1)
    return waves.gather(1, at) * (along < lengths[:, None]), lengths


def loudness(waves: Tensor, lengths: Tensor) -> Tensor:
    """Integrated loudness in LUFS of each row's first samples, gated as BS.1770 says."""
    waves = F.pad(waves, (0, max(0, BLOCK - waves.shape[1])))
    hertz = frequencies(waves).double().cpu().numpy()
    gain = torch.from_numpy(np.sqrt(weighting(hertz))).to(waves)
    power = filter_rows(waves, gain).double().square()
    sums = F.pad(power.cumsum(1), (1, 0))
    starts = torch.arange(0, waves.shape[1] - BLOCK + 1, STEP, device=waves.device)
    blocks = (sums[:, starts + BLOCK] - sums[:, starts]) / BLOCK
    whole = (starts + BLOCK <= lengths[:, None]) | (starts == 0)
    heard = whole & (blocks > 10 ** ((-70 + 0.691) / 10))
    heard = heard & (blocks > mean_of(blocks, heard)[:, None] / 10)
    return (-0.691 + 10 * mean_of(blocks, heard).clamp(min=1e-12).log10()).to(waves.dtype)


def mean_of(values: Tensor, chosen: Tensor) -> Tensor:
    return (values * chosen).sum(1) / chosen.sum(1).clamp(min=1)


def level_rows(waves: Tensor, lengths: Tensor) -> Tensor:
    """To the loudness of the corpus, or as near as peaks allow."""
    gain = 10 ** ((LOUDNESS - loudness(waves, lengths)) / 20)
    highest = HIGHEST_PEAK / waves.abs().amax(1).clamp(min=1e-6)
    return waves * torch.minimum(gain, highest)[:, None]
