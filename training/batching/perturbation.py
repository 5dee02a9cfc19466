"""Feeds back another voice's frames for a while, so that the talker learns to return to its vector.

With true frames fed back, every clone was recognised; when speaking freely, one in six was not:
each frame follows earlier ones, so a voice that has drifted stays off. In training some sequences
get a span of another voice's frames with similar phones. Codebook 0, which carries the content, is
kept, as are references in context, which define the voice, and designs, which have none.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from training.batching.batches import NONE, Batch

SIMILARITY_SCALE = 24.0  # sharpness of the preference for similar voices, at most


def swap_voices(batch: Batch, share: float) -> Tensor:
    """The frames fed back [B, T, 16], with a span of another voice in the first `share` of rows."""
    rows = round(share * len(batch.fed))
    if rows == 0 or len(batch.fed) < 2:
        return batch.fed
    fed = feeds_target(batch)
    donor = choose_donors(batch.vector, rows)
    there = random_span(fed[:rows])[..., None].repeat(1, 1, batch.fed.shape[2])
    there &= has_voice(batch)[:rows, None, None]
    there[..., 0] = False
    donated = batch.fed[donor].gather(1, match_phones(batch, fed, donor).expand_as(there))
    return torch.cat((torch.where(there, donated, batch.fed[:rows]), batch.fed[rows:]))


def feeds_target(batch: Batch) -> Tensor:
    """Which rows [B, T] feed back a frame of the target: those after rows that predict one."""
    return F.pad(batch.target[:, :-1, 0] != NONE, (1, 0))


def has_voice(batch: Batch) -> Tensor:
    """Which sequences [B] have a given voice: all but designs."""
    return batch.speaker.any(1)


def choose_donors(vector: Tensor, rows: int) -> Tensor:
    """The sequence that each of the first rows takes frames from [rows], similar or not."""
    voice = F.normalize(vector.float(), dim=-1)
    near = (voice[:rows] @ voice.T).float()
    near = near * SIMILARITY_SCALE * torch.rand_like(near[:, :1])
    numbers = torch.arange(len(vector), device=vector.device)
    same = numbers[:rows, None] == numbers
    return (near + gumbel_noise(near)).masked_fill(same, -torch.inf).argmax(1)


def random_span(fed: Tensor) -> Tensor:
    """A random span of each row's frames: [B, T], inside `fed`."""
    number, count = fed.cumsum(1) - 1, fed.sum(1, keepdim=True)
    ends = (torch.rand(len(fed), 2, device=fed.device) * (count + 1)).long().sort(1).values
    return fed & (number >= ends[:, :1]) & (number < ends[:, 1:])


def match_phones(batch: Batch, fed: Tensor, donor: Tensor) -> Tensor:
    """Rows of the giver's frames with the most similar phones: [rows, T, 1]."""
    phones = F.pad(batch.phones[:, :-1], (0, 0, 1, 0))  # aligned with the frame fed back
    same = (phones[: len(donor), :, None] == phones[donor][:, None]).sum(-1).float()
    same = (same + torch.rand_like(same)).masked_fill(~fed[donor][:, None], -1)
    return same.argmax(2, keepdim=True)


def gumbel_noise(like: Tensor) -> Tensor:
    """Gumbel noise: the argmax of scores plus noise is a sample from their softmax."""
    return -torch.empty_like(like).exponential_().clamp(min=1e-9).log()
