"""Samples codes from logits, with sampling parameters and random streams per row.

Parameters are tensors with a row per slot, so that one step serves all of them. Uniform numbers are
a hash of (seed, frame, codebook): the same on any device, in any slot, in any batch. Nothing here
waits for the device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from engine.plan import ResolvedSampling

CANDIDATES = 64  # ids ranked, if no row needs more
LEAST = 1e-6  # of temperature and top-p: less takes the best id too, but is no number in float32
MIN_FRAMES = 2  # end of speech is not sampled before
SAMPLING_COLUMNS = 9  # columns of a row's sampling parameters
_TIE_STEP = 2.0**-44  # per id: far below the resolution of 16-bit floats, far above a double's
_WORD = 0xFFFFFFFF
_Word = TypeVar("_Word", Tensor, int)


@dataclass(frozen=True)
class SamplingTensors:
    """One network's sampling parameters for some rows, [rows, 1] each."""

    inverse_temperature: Tensor
    top_k: Tensor  # infinite: off
    top_p: Tensor
    sample_mask: Tensor  # factor of the uniforms: 0 for greedy rows, which then take the best id

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.inverse_temperature, self.top_k, self.top_p, self.sample_mask


def sampling_row(draw: ResolvedSampling) -> list[float]:
    """A row's parameters: the talker's, the predictor's, the repetition penalty."""
    off = float("inf")
    return [
        *(1 / max(LEAST, draw.temperature), draw.top_k or off),
        *(max(LEAST, draw.top_p), not draw.greedy),
        *(1 / max(LEAST, draw.predictor_temperature), draw.predictor_top_k or off),
        *(max(LEAST, draw.predictor_top_p), not draw.predictor_greedy),
        draw.repetition_penalty,
    ]


def sampling_tensors(table: Tensor) -> tuple[SamplingTensors, SamplingTensors, Tensor]:
    """[rows, SAMPLING_COLUMNS] -> parameters of talker and predictor, and penalty [rows, 1]."""
    columns = table.split(1, dim=1)
    return SamplingTensors(*columns[:4]), SamplingTensors(*columns[4:8]), columns[8]


def candidates(choices: Iterable[tuple[bool, int]]) -> int | None:
    """How many ids to rank for rows of (greedy, top_k); None: the whole vocabulary."""
    needed = {1 if greedy else top_k for greedy, top_k in choices}
    if needed == {1}:
        return 1
    return CANDIDATES if all(1 <= need <= CANDIDATES for need in needed) else None


def seed_keys(seed: int) -> tuple[int, int]:
    """Two hash keys of a sequence, unrelated even for adjacent seeds."""
    low, high = seed & _WORD, (seed >> 32) & _WORD
    first = _mix(low ^ 0x1E3779B9)
    return first, _mix(first ^ high ^ 0x45EBCA6B)


def uniforms(keys: Tensor, frames: Tensor, codebooks: int) -> Tensor:
    """Numbers in [0, 1) for codebooks 1–15 of these frames and codebook 0 of the next.

    keys [rows, 2], frames [rows] -> [rows, codebooks]. Frame -1 gives codebook 0 of frame 0.
    """
    draws = torch.arange(1, codebooks + 1, device=frames.device)
    return random_numbers(keys, frames[:, None] * codebooks + draws)


def first_uniforms(keys: Tensor, frames: Tensor, codebooks: int) -> Tensor:
    """Numbers in [0, 1) for codebook 0 of these frames: [rows, 1]."""
    return random_numbers(keys, frames[:, None] * codebooks)


def random_numbers(keys: Tensor, counter: Tensor) -> Tensor:
    """Numbers in [0, 1) of each row's random stream at counters [rows, n]."""
    mixed = _mix((counter + keys[:, :1]) & _WORD)
    mixed = _mix(mixed ^ keys[:, 1:])
    return (mixed >> 9).float() * 2**-23  # 23 bits: a sum times the largest stays below the sum


def apply_penalties(logits: Tensor, seen: Tensor, penalty: Tensor, allowed: Tensor) -> Tensor:
    """Apply the repetition penalty and the mask to codebook 0's logits [rows, V].

    seen [rows, V]: ids drawn so far; penalty [rows, 1]; allowed [V] or [rows, V]: 0 or -inf.
    """
    logits = break_ties(logits)
    penalized = torch.where(logits < 0, logits * penalty, logits / penalty)
    return torch.where(seen, penalized, logits) + allowed


def break_ties(logits: Tensor) -> Tensor:
    """Logits [rows, V] in at least float32; equal 16-bit logits are ordered by id.

    Their order would otherwise depend on how many ids are ranked.
    """
    if logits.dtype in (torch.float32, torch.float64):
        return logits
    ids = torch.arange(logits.shape[-1], dtype=torch.float64, device=logits.device)
    return logits - ids * _TIE_STEP


def code_mask(codes: int, reserved: int, end: int) -> Tensor:
    """[V]: -inf for reserved ids except the end of speech, else 0."""
    allowed = torch.zeros(codes)
    allowed[codes - reserved :] = -torch.inf
    allowed[end] = 0
    return allowed


@dataclass(frozen=True)
class Ranked:
    """Ids in descending order, [rows, count] each. Those that may be sampled are a prefix."""

    ids: Tensor
    share: Tensor  # probability, after temperature and top-k
    sums: Tensor  # cumulative shares, this one included
    kept: Tensor  # may be sampled


def rank(logits: Tensor, sampling: SamplingTensors, count: int | None) -> Ranked:
    """Rank logits [rows, V]. Top-p keeps an id while the ids before it sum to less than p."""
    size = logits.shape[1]
    best, ids = logits.topk(min(count or size, size))
    best = best.float()
    place = torch.arange(best.shape[1], device=best.device)
    best = (best * sampling.inverse_temperature).masked_fill(place >= sampling.top_k, -torch.inf)
    share = best.softmax(-1)
    sums = share.cumsum(-1)
    return Ranked(ids, share, sums, (sums - share < sampling.top_p) & (share > 0))


def pick(logits: Tensor, sampling: SamplingTensors, uniform: Tensor, count: int | None) -> Tensor:
    """Sample an id for each row: logits [rows, V], uniform [rows, 1] -> [rows]."""
    logits = break_ties(logits)
    if count == 1:
        return logits.argmax(-1)
    ranked = rank(logits, sampling, count)
    target = uniform * sampling.sample_mask * (ranked.sums * ranked.kept).amax(-1, keepdim=True)
    place = ((ranked.sums <= target) & ranked.kept).sum(-1, keepdim=True)
    return ranked.ids.gather(1, place)[:, 0]


def _mix(word: _Word) -> _Word:
    """A bijective hash of 32-bit words; no product exceeds 63 bits."""
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & _WORD
    word = ((word ^ (word >> 15)) * 0x735A2D97) & _WORD
    return word ^ (word >> 15)
