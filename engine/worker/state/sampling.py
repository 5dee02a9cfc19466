"""From logits to codes: every number a row's own, every draw a sequence's own.

Settings are tensors with a row for each slot, so that one step serves all of them. Uniforms
are a hash of (seed, frame, codebook): the same on any device, in any slot, in any company.
Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from engine.plan import ResolvedSampling

CANDIDATES = 64  # ranked when no row wants more
LEAST_FRAMES = 2  # the end of speech never comes before
KNOBS = 9  # columns of a slot's settings
_TILT = 2.0**-44  # by id: far below the steps of a half, far above those of a double
_WORD = 0xFFFFFFFF
_Word = TypeVar("_Word", Tensor, int)


@dataclass(frozen=True)
class SamplingTensors:
    """One network's settings for some rows, [rows, 1] each."""

    inverse_temperature: Tensor
    top_k: Tensor  # infinite where it is off
    top_p: Tensor
    sample_mask: Tensor  # what uniforms are multiplied by: 0 takes the best, for greedy rows

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.inverse_temperature, self.top_k, self.top_p, self.sample_mask


def sampling_row(draw: ResolvedSampling) -> list[float]:
    """A slot's settings as numbers: the talker's, the predictor's, the repetition penalty."""
    off = float("inf")
    return [
        *(1 / draw.temperature, draw.top_k or off, draw.top_p, not draw.greedy),
        *(1 / draw.predictor_temperature, draw.predictor_top_k or off),
        *(draw.predictor_top_p, not draw.predictor_greedy),
        draw.repetition_penalty,
    ]


def knobs(table: Tensor) -> tuple[SamplingTensors, SamplingTensors, Tensor]:
    """[rows, KNOBS] -> the talker's and the predictor's knobs, and the penalty [rows, 1]."""
    columns = table.split(1, dim=1)
    return SamplingTensors(*columns[:4]), SamplingTensors(*columns[4:8]), columns[8]


def candidates(choices: Iterable[tuple[bool, int]]) -> int | None:
    """How many ids to rank for rows of (greedy, top_k); None: the whole vocabulary."""
    needed = {1 if greedy else top_k for greedy, top_k in choices}
    if needed == {1}:
        return 1
    return CANDIDATES if all(1 <= need <= CANDIDATES for need in needed) else None


def seed_keys(seed: int) -> tuple[int, int]:
    """A sequence's two words of randomness, far apart even for neighbouring seeds."""
    low, high = seed & _WORD, (seed >> 32) & _WORD
    first = _mix(low ^ 0x1E3779B9)
    return first, _mix(first ^ high ^ 0x45EBCA6B)


def uniforms(keys: Tensor, frames: Tensor, codebooks: int) -> Tensor:
    """Numbers in [0, 1) for codebooks 1–15 of these frames and codebook 0 of the next.

    keys [rows, 2], frames [rows] -> [rows, codebooks]. Frame -1 has the one before frame 0.
    """
    draws = torch.arange(1, codebooks + 1, device=frames.device)
    return numbered(keys, frames[:, None] * codebooks + draws)


def first_uniforms(keys: Tensor, frames: Tensor, codebooks: int) -> Tensor:
    """Of codebook 0 of these frames themselves: [rows, 1]."""
    return numbered(keys, frames[:, None] * codebooks)


def numbered(keys: Tensor, counter: Tensor) -> Tensor:
    """A sequence's numbers in [0, 1) by their counters [rows, n]."""
    mixed = _mix((counter + keys[:, :1]) & _WORD)
    mixed = _mix(mixed ^ keys[:, 1:])
    return (mixed >> 9).float() * 2**-23  # 23 bits: a sum times one stays below the sum


def restrain(logits: Tensor, seen: Tensor, penalty: Tensor, allowed: Tensor) -> Tensor:
    """Codebook 0's logits [rows, V], repetition punished and the forbidden removed.

    seen [rows, V]: ids drawn so far; penalty [rows, 1]; allowed [V] or [rows, V]: 0 or -inf.
    """
    logits = comparable(logits)
    punished = torch.where(logits < 0, logits * penalty, logits / penalty)
    return torch.where(seen, punished, logits) + allowed


def comparable(logits: Tensor) -> Tensor:
    """Logits [rows, V] in float32 at least, where of two equal halves the lower id is ahead.

    Which of them ranks first would otherwise depend on how many are ranked.
    """
    if logits.dtype in (torch.float32, torch.float64):
        return logits
    ids = torch.arange(logits.shape[-1], dtype=torch.float64, device=logits.device)
    return logits - ids * _TILT


def forbidden(codes: int, reserved: int, end: int) -> Tensor:
    """[V]: 0 for what codebook 0 may be, -inf for the reserved ids, but the end of speech."""
    allowed = torch.zeros(codes)
    allowed[codes - reserved :] = -torch.inf
    allowed[end] = 0
    return allowed


@dataclass(frozen=True)
class Ranked:
    """Ids from the best down, [rows, count] each. What may be drawn is a prefix."""

    ids: Tensor
    share: Tensor  # probability, after temperature and top-k
    sums: Tensor  # of the shares, up to and with this one
    kept: Tensor  # may be drawn


def rank(logits: Tensor, own: SamplingTensors, count: int | None) -> Ranked:
    """logits [rows, V]. Top-p keeps an id while the ids before it sum to less than p."""
    size = logits.shape[1]
    best, ids = logits.topk(min(count or size, size))
    best = best.float()
    place = torch.arange(best.shape[1], device=best.device)
    best = (best * own.inverse_temperature).masked_fill(place >= own.top_k, -torch.inf)
    share = best.softmax(-1)
    sums = share.cumsum(-1)
    return Ranked(ids, share, sums, (sums - share < own.top_p) & (share > 0))


def pick(logits: Tensor, own: SamplingTensors, uniform: Tensor, count: int | None) -> Tensor:
    """Draw an id for each row: logits [rows, V], uniform [rows, 1] -> [rows]."""
    logits = comparable(logits)
    if count == 1:
        return logits.argmax(-1)
    ranked = rank(logits, own, count)
    target = uniform * own.sample_mask * (ranked.sums * ranked.kept).amax(-1, keepdim=True)
    place = ((ranked.sums <= target) & ranked.kept).sum(-1, keepdim=True)
    return ranked.ids.gather(1, place)[:, 0]


def distribution(logits: Tensor, own: SamplingTensors, count: int | None) -> Tensor:
    """What `pick` draws from: [rows, V]."""
    ranked = rank(comparable(logits), own, count)
    share = ranked.share * ranked.kept
    share = share / share.sum(-1, keepdim=True)
    return torch.zeros_like(logits, dtype=share.dtype).scatter_(1, ranked.ids, share)


def _mix(word: _Word) -> _Word:
    """A bijection of 32-bit words that spreads every bit over all; no product passes 63 bits."""
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & _WORD
    word = ((word ^ (word >> 15)) * 0x735A2D97) & _WORD
    return word ^ (word >> 15)
