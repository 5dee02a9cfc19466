"""A voice that has strayed for a while: a talker that hears it is to come back to the vector.

Told the truth, every clone was taken for its own; speaking freely, one in six was not: each
frame follows those before it, so a voice that is a little off goes on being so. In training some
sequences hear for a while a voice that says about the same. Codebook 0, which carries what is said,
stays; so does a reference in context, whose voice is the one that is asked for, and a design, which
has no voice to come back to.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from training.batching.batches import NONE, Batch

LIKENESS = 24.0  # at most: how much more often a voice near by lends its frames than one far off


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


def chance(like: Tensor) -> Tensor:
    """Noise that makes the highest of scores a draw from their softmax (Gumbel's)."""
    return -torch.empty_like(like).exponential_().clamp(min=1e-9).log()
