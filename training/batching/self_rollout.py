"""Batches with frames sampled by the talker, so that training sees what inference feeds back.

All frames are sampled at once, given the frames before them; then again given these, with the same
noise. After as many passes as there are rows that would be what inference says frame by frame;
after a few most codes are that already, and as few are the true ones. Codebook 0 is kept, so that
content and timing stay known; designs are kept entirely, since they have no given voice.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.layers import Causal
from engine.model.talker import Talker
from training.batching.batches import Batch
from training.batching.embedding import embed_fixed, embed_frames
from training.batching.perturbation import feeds_target, gumbel_noise, has_voice
from training.graph_steps import GraphedStep, Metrics

FROM, EVERY = 300, 4  # first step with a rollout, and steps between two
REUSES = 4  # of a sampled batch: sampling one takes as long as a few steps
PASSES = 4
# Of the acoustic codes. The model ships with 0.9 (model_config.GENERATION), of the 50 likeliest
# codes alone; a rollout draws from all of them, and at 0.9 it was not tried.
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.35, 0.75


def rollout_due(step: int) -> bool:
    """Whether this step uses a rollout."""
    return step >= FROM and step % EVERY == 1


class TemperatureSampling:
    """Samples codes at temperatures [R, 1] with the same noise in every pass."""

    def __init__(self, temperature: Tensor) -> None:
        self._temperature = temperature
        self._noise: dict[int, Tensor] = {}

    def __call__(self, book: int, logits: Tensor) -> Tensor:
        scores = logits.float() / self._temperature
        if book not in self._noise:
            self._noise[book] = gumbel_noise(scores)
        return (scores + self._noise[book]).argmax(1)


class SelfRollout:
    """Rollouts by a copy of the talker, in 16 bits and CUDA graphs on a GPU."""

    def __init__(self, talker: Talker) -> None:
        self._talker, self._copy = talker, copy.deepcopy(talker).eval().requires_grad_(False)
        self._feed = self.feed
        if next(talker.parameters()).is_cuda:
            self._copy.to(torch.bfloat16)
            self._feed = GraphedStep(self.feed)
        self._said: Batch | None = None
        self._drawn = 0

    def draw(self, draw: Callable[[bool], Batch]) -> Batch:
        """A batch with a rollout, reused REUSES times; one in four is in context."""
        count, used = divmod(self._drawn, REUSES)
        if self._said is None or used == 0:
            self._said = self.rollout(draw(count % 4 == 3))
        self._drawn += 1
        return self._said

    @torch.no_grad()
    def rollout(self, batch: Batch, passes: int = PASSES) -> Batch:
        for copied, now in zip(self._copy.parameters(), self._talker.parameters(), strict=True):
            copied.copy_(now)
        fed = self._feed(*batch.tensors(), passes=passes)["fed"]
        return replace(batch, fed=fed.clone())

    def feed(self, *tensors: Tensor, passes: int) -> Metrics:
        """The frames fed back [B, T, 16] by a batch's rows after so many passes."""
        batch = Batch(*tensors)
        temperature = torch.empty_like(batch.vector[:, :1])  # of a sequence
        temperature.uniform_(MIN_TEMPERATURE, MAX_TEMPERATURE)
        choose = TemperatureSampling(temperature.expand_as(batch.text).flatten()[:, None])
        fixed = embed_fixed(self._copy, batch)
        for _ in range(passes):
            batch = replace(batch, fed=self._pass(batch, fixed, choose))
        return {"fed": batch.fed}

    def _pass(self, batch: Batch, fixed: Tensor, choose: TemperatureSampling) -> Tensor:
        """The frames fed back when those of the target are sampled once. All rows are sampled, so
        that shapes are known."""
        talker = self._copy
        x = fixed + embed_frames(talker, batch.fed.clamp(min=0), batch.fed)
        positions = torch.arange(x.shape[1], device=x.device)[None]
        hidden = talker(x, positions, Causal()).flatten(0, 1)
        first = batch.target[..., 0].clamp(min=0).flatten()
        rest, _ = talker.code_predictor.sample(hidden, talker.embed_first(first), choose)
        frames = torch.cat((first[:, None], rest), 1).view_as(batch.fed)
        sampled = feeds_target(batch) & has_voice(batch)[:, None]
        return torch.where(sampled[..., None], F.pad(frames[:, :-1], (0, 0, 1, 0)), batch.fed)
