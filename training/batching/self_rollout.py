"""Batches with frames sampled by the talker, so that training sees what inference feeds back.

Frames are sampled one after the other as in inference. Codebook 0 is kept, so that content and
timing stay known; designs are kept entirely, since they have no given voice. On a GPU one row is
captured as a CUDA graph.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from engine.model.talker import Talker
from training.batching.batches import NONE, Batch
from training.batching.embedding import embed_fixed, embed_frames
from training.batching.perturbation import gumbel_noise, has_voice
from training.graph_steps import captured

FROM, EVERY = 3000, 4  # first step with a rollout, and steps between two
REUSES = 3  # of a sampled batch
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.35, 0.75


def rollout_due(step: int) -> bool:
    """Whether this step uses a rollout."""
    return step >= FROM and step % EVERY == 1


class CachedAttention:
    """Attention of one row [B, heads, 1, d] over cached keys, values [layers, B, kv, T, d]."""

    def __init__(self, keys: Tensor, values: Tensor, at: Tensor) -> None:
        self._keys, self._values, self._at = keys, values, at
        self._future = torch.arange(keys.shape[3], device=keys.device) > at

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = self._keys[layer], self._values[layer]
        keys.index_copy_(2, self._at, k.to(keys.dtype))
        values.index_copy_(2, self._at, v.to(values.dtype))
        grouped = q.reshape(q.shape[0], k.shape[1], -1, q.shape[3])  # [B, kv, heads of it, d]
        scores = (grouped @ keys.transpose(2, 3)).float() / q.shape[3] ** 0.5
        attention = scores.masked_fill(self._future, -torch.inf).softmax(-1).to(values.dtype)
        return (attention @ values).view_as(q)


class TemperatureSampling:
    """Samples codes at temperatures [B, 1]."""

    def __init__(self, temperature: Tensor) -> None:
        self._temperature = temperature

    def __call__(self, _: int, logits: Tensor) -> Tensor:
        scores = logits.float() / self._temperature
        return (scores + gumbel_noise(scores)).argmax(1)


class BatchRollout:
    """Rollouts of batches of one size, row by row."""

    def __init__(self, talker: Talker, like: Batch) -> None:
        (size, length), block = like.text.shape, talker.config.transformer
        x = embed_fixed(talker, like)
        kept = (2, block.layers, size, block.kv_heads, length, block.head_dim)
        self._talker = talker
        self._still, self._fed = torch.zeros_like(x), like.fed.new_zeros(size, length + 1, 16)
        self._first, self._own = torch.zeros_like(like.text), torch.zeros_like(like.ends)
        self._keys, self._values = x.new_zeros(kept)
        self._at = torch.zeros(1, dtype=torch.long, device=x.device)
        self._temperature = x.new_ones(size, 1, dtype=torch.float)
        self._graph = captured(self._row)[0] if x.is_cuda else None

    def __call__(self, batch: Batch) -> Tensor:
        """The frames fed back [B, T, 16], with sampled codes in the targets."""
        self._still.copy_(embed_fixed(self._talker, batch))
        self._fed[:, :-1] = batch.fed
        self._first.copy_(batch.target[..., 0].clamp(min=0))
        self._own.copy_((batch.target[..., 0] != NONE) & has_voice(batch)[:, None])
        self._temperature.uniform_(MIN_TEMPERATURE, MAX_TEMPERATURE)
        self._at.zero_()
        last = int(self._own.any(0).nonzero().amax()) if bool(self._own.any()) else -1
        for _ in range(last + 1):
            self._row() if self._graph is None else self._graph.replay()
        return self._fed[:, :-1].clone()

    def _row(self) -> None:
        """Run the current row and sample the frame that the next one feeds back."""
        talker, at = self._talker, self._at
        fed = self._fed.index_select(1, at)
        x = self._still.index_select(1, at) + embed_frames(talker, fed.clamp(min=0), fed)
        hidden = talker(x, at[None], CachedAttention(self._keys, self._values, at))[:, 0]
        first = self._first.index_select(1, at)[:, 0]
        told = talker.embed_first(first)
        drawn, _ = talker.code_predictor.sample(
            hidden, told, TemperatureSampling(self._temperature)
        )
        frame = torch.cat((first[:, None], drawn), 1)[:, None]  # [B, 1, 16]
        after = at + 1
        own = self._own.index_select(1, at)[..., None]
        self._fed.index_copy_(1, after, torch.where(own, frame, self._fed.index_select(1, after)))
        at.add_(1)


class SelfRollout:
    """Rollouts by a copy of the talker, in 16 bits on a GPU."""

    def __init__(self, talker: Talker) -> None:
        self._talker, self._copy = talker, copy.deepcopy(talker).eval().requires_grad_(False)
        if next(talker.parameters()).is_cuda:
            self._copy.to(torch.bfloat16)
        self._rows: dict[torch.Size, BatchRollout] = {}
        self._said: Batch | None = None
        self._drawn = 0

    def draw(self, draw: Callable[[bool], Batch]) -> Batch:
        """A batch with a rollout, reused USES times; one in four is in context."""
        said, used = divmod(self._drawn, REUSES)
        if self._said is None or used == 0:
            self._said = self.rollout(draw(said % 4 == 3))
        self._drawn += 1
        return self._said

    @torch.no_grad()
    def rollout(self, batch: Batch) -> Batch:
        for own, now in zip(self._copy.parameters(), self._talker.parameters(), strict=True):
            own.copy_(now)
        size = batch.text.shape
        if size not in self._rows:
            self._rows[size] = BatchRollout(self._copy, batch)
        return replace(batch, fed=self._rows[size](batch))
