"""What a talker hears of itself when its voice has strayed: it is to come back to the vector.

Told the truth, every clone was taken for its own; speaking freely, one in six was not: what is
drawn colder than it was learned is a little nearer to the mean of all voices, and each frame
follows those before it. So in training some sequences hear what the talker itself would have
said, others for a while a voice that says about the same. Codebook 0, which carries what is said,
stays; so does a reference in context, whose voice is the one that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.layers import Causal
from engine.model.talker import Talker
from training.batches import NONE, Batch

Embed: TypeAlias = Callable[[Talker, Batch], Tensor]
ROUNDS = 2  # of hearing oneself: what is said then is heard, and answered, once more
COLDEST, WARMEST = 0.4, 1.0  # temperatures it may have been drawn at
LIKENESS = 24.0  # at most: how much more often a voice near by lends its frames than one far off


@dataclass(frozen=True)
class Straying:
    """How many of the sequences stray, and how many hear themselves."""

    others: float = 0.0
    own: float = 0.0

    def __call__(self, talker: Talker, batch: Batch, embed: Embed) -> Batch:
        batch = replace(batch, fed=strayed(batch, self.others))
        return replace(batch, fed=echoed(talker, batch, self.own, embed))


NEVER = Straying()


def strayed(batch: Batch, share: float) -> Tensor:
    """The frames fed back [B, T, 16], a span of them another's in the first `share` of rows."""
    rows = round(share * len(batch.fed))
    if rows == 0 or len(batch.fed) < 2:
        return batch.fed
    own = spoken(batch)
    giver = givers(batch.vector, rows)
    there = span(own[:rows])[..., None].repeat(1, 1, batch.fed.shape[2])
    there &= asked(batch)[:rows, None, None]
    there[..., 0] = False
    lent = batch.fed[giver].gather(1, alike(batch, own, giver).expand_as(there))
    return torch.cat((torch.where(there, lent, batch.fed[:rows]), batch.fed[rows:]))


def spoken(batch: Batch) -> Tensor:
    """Which rows [B, T] feed back a frame of the target: all behind those that predict one."""
    return F.pad(batch.target[:, :-1, 0] != NONE, (1, 0))


def asked(batch: Batch) -> Tensor:
    """Which sequences [B] have a voice to come back to: all but designs."""
    return batch.speaker.any(1)


def givers(vector: Tensor, rows: int) -> Tensor:
    """Whose frames the first so many rows hear [rows]: others, some near by and some far off."""
    voice = F.normalize(vector.float(), dim=-1)
    near = (voice[:rows] @ voice.T).float()
    near = near * LIKENESS * torch.rand_like(near[:, :1])
    numbers = torch.arange(len(vector), device=vector.device)
    return (near + chance(near)).masked_fill(numbers[:rows, None] == numbers, -torch.inf).argmax(1)


def span(own: Tensor) -> Tensor:
    """A stretch somewhere in each row's frames: [B, T], inside `own`."""
    number, count = own.cumsum(1) - 1, own.sum(1, keepdim=True)
    ends = (torch.rand(len(own), 2, device=own.device) * (count + 1)).long().sort(1).values
    return own & (number >= ends[:, :1]) & (number < ends[:, 1:])


def alike(batch: Batch, own: Tensor, giver: Tensor) -> Tensor:
    """Rows of the giver's frames that say what ours say, as nearly as may be: [rows, T, 1]."""
    said = F.pad(batch.phones[:, :-1], (0, 0, 1, 0))  # beside the frame fed back
    same = (said[: len(giver), :, None] == said[giver][:, None]).sum(-1).float()
    same = (same + torch.rand_like(same)).masked_fill(~own[giver][:, None], -1)
    return same.argmax(2, keepdim=True)


@torch.no_grad()
def echoed(talker: Talker, batch: Batch, share: float, embed: Embed) -> Tensor:
    """The frames fed back, in the last `share` of rows those that the talker would have said."""
    rows = round(share * len(batch.fed))
    if rows == 0:
        return batch.fed
    part = Batch(*(each[-rows:] for each in batch.tensors()))
    training = talker.training
    talker.eval()
    for _ in range(ROUNDS):
        part = replace(part, fed=said_instead(talker, part, embed))
    talker.train(training)
    return torch.cat((batch.fed[:-rows], part.fed))


def said_instead(talker: Talker, batch: Batch, embed: Embed) -> Tensor:
    """The frames fed back, those of the target as drawn after what was fed back before them."""
    positions = torch.arange(batch.fed.shape[1], device=batch.fed.device)[None]
    hidden = talker(embed(talker, batch), positions, Causal())
    first = batch.target[..., :1].clamp(min=0)
    told = talker.embed_first(first[..., 0]).flatten(0, 1).to(hidden.dtype)
    heat = torch.empty_like(hidden[:, :1, :1]).uniform_(COLDEST, WARMEST).expand_as(first)
    drawn, _ = talker.code_predictor.sample(hidden.flatten(0, 1), told, Cold(heat.flatten(0, 1)))
    frames = torch.cat((first, drawn.unflatten(0, first.shape[:2])), -1)
    own = spoken(batch) & asked(batch)[:, None]
    return torch.where(own[..., None], F.pad(frames[:, :-1], (0, 0, 1, 0)), batch.fed)


class Cold:
    """Draws codes at temperatures [B, 1]."""

    def __init__(self, heat: Tensor) -> None:
        self._heat = heat

    def __call__(self, _: int, logits: Tensor) -> Tensor:
        scores = logits.float() / self._heat
        return (scores + chance(scores)).argmax(1)


def chance(like: Tensor) -> Tensor:
    """Noise that makes the highest of scores a draw from their softmax (Gumbel's)."""
    return -torch.empty_like(like).exponential_().clamp(min=1e-9).log()
