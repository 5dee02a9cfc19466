"""A rollout of enough passes is what the talker says frame by frame."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from engine.model.layers import Causal
from engine.model.talker import Talker
from tests.training.batching.test_perturbation import batcher, drawn
from tests.training.small import small_talker_config
from training import model_config
from training.batching import self_rollout
from training.batching.batches import NONE, Batch, Batcher
from training.batching.embedding import embed
from training.batching.perturbation import feeds_target, has_voice
from training.batching.self_rollout import REUSES, SelfRollout

__all__ = ["batcher"]  # a fixture


@pytest.fixture(scope="module")
def talker() -> Talker:
    torch.manual_seed(0)
    return Talker(small_talker_config())


def few(batcher: Batcher, in_context: bool, seed: int) -> Batch:
    """Two designs, if there are, and two voices, without the rows that all of them leave empty."""
    batch = drawn(batcher, in_context, seed)
    some = has_voice(batch).long().argsort(stable=True)[[0, 1, -2, -1]]
    used = int((batch.text[some] != NONE).any(0).nonzero().max()) + 1
    return Batch(*(x[some] if x is batch.vector else x[some, :used] for x in batch.tensors()))


def argmax(_: int, logits: torch.Tensor) -> torch.Tensor:
    return logits.argmax(1)


@pytest.mark.parametrize("in_context", [False, True])
def test_what_is_said_changes_the_targets_sound_alone(
    talker: Talker, batcher: Batcher, in_context: bool
) -> None:
    batch = few(batcher, in_context, 1)
    spoken = SelfRollout(talker).rollout(batch)
    theirs = feeds_target(batch) & has_voice(batch)[:, None]
    changed = spoken.fed != batch.fed
    assert not changed[..., 0].any()
    assert not changed[~theirs].any()
    assert changed[theirs].float().mean() > 0.8  # untrained, it says something else
    assert int(spoken.fed.max()) < model_config.CODES
    same = zip(replace(spoken, fed=batch.fed).tensors(), batch.tensors(), strict=True)
    assert all(one is other for one, other in same)


def test_designs_are_left_as_they_were(talker: Talker, batcher: Batcher) -> None:
    batch = few(batcher, False, 2)
    designs = ~has_voice(batch)
    assert designs.any()
    assert not designs.all()
    spoken = SelfRollout(talker).rollout(batch)
    assert torch.equal(spoken.fed[designs], batch.fed[designs])


@pytest.mark.parametrize("in_context", [False, True])
def test_each_frame_follows_those_that_were_said(
    talker: Talker, batcher: Batcher, in_context: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said as if nothing were left to chance, then asked for frame by frame: the same frames."""
    monkeypatch.setattr(self_rollout, "MIN_TEMPERATURE", 1e-6)
    monkeypatch.setattr(self_rollout, "MAX_TEMPERATURE", 1e-6)
    talker.eval()
    batch = few(batcher, in_context, 3)
    batch = Batch(*(rows[has_voice(batch)][:2] for rows in batch.tensors()))
    frames = int(feeds_target(batch).sum(1).max())
    spoken = SelfRollout(talker).rollout(batch, passes=frames)
    with torch.no_grad():
        positions = torch.arange(spoken.fed.shape[1])[None]
        hidden = talker(embed(talker, spoken), positions, Causal()).flatten(0, 1)
        first = spoken.target[..., 0].clamp(min=0).flatten()
        drawn_, _ = talker.code_predictor.sample(hidden, talker.embed_first(first), argmax)
    again = drawn_.unflatten(0, spoken.text.shape)[:, :-1]
    sampled = spoken.fed[:, 1:, 1:]
    changed = (feeds_target(batch) & has_voice(batch)[:, None])[:, 1:]
    assert (again[changed] == sampled[changed]).float().mean() > 0.999  # but for ties
    assert (spoken.target[:, :-1, 0][changed] != NONE).all()


def test_what_it_says_follows_its_learning(talker: Talker, batcher: Batcher) -> None:
    talk, batch = SelfRollout(talker), few(batcher, False, 4)
    torch.manual_seed(0)
    before = talk.rollout(batch).fed
    torch.manual_seed(0)
    assert torch.equal(talk.rollout(batch).fed, before)
    weight = talker.code_predictor.lm_head[4].weight
    with torch.no_grad():
        kept = weight.clone()
        weight.neg_()
        torch.manual_seed(0)
        assert not torch.equal(talk.rollout(batch).fed, before)
        weight.copy_(kept)


def test_a_batch_that_was_said_is_used_a_few_times(
    talker: Talker, batcher: Batcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SelfRollout, "rollout", lambda _, batch: batch)
    calls: list[bool] = []

    def draw(in_context: bool) -> Batch:
        calls.append(in_context)
        return drawn(batcher, in_context, len(calls))

    talk = SelfRollout(talker)
    spoken = [talk.draw(draw) for _ in range(4 * REUSES)]
    assert calls == [False, False, False, True]
    assert [
        len({id(each) for each in spoken[at : at + REUSES]}) for at in range(0, len(spoken), REUSES)
    ] == [1] * 4


def test_a_pass_more_changes_only_what_follows_changed_frames(
    talker: Talker, batcher: Batcher
) -> None:
    """The frame after a true one is settled by the first pass, the next by the second …"""
    talker.eval()
    batch = few(batcher, False, 5)
    frames = feeds_target(batch) & has_voice(batch)[:, None]
    number = frames.cumsum(1)
    rollouts = []
    for passes in (1, 2, 3):
        torch.manual_seed(7)
        rollouts.append(SelfRollout(talker).rollout(batch, passes).fed)
    for passes, (one, other) in enumerate(pairwise(rollouts), 1):
        same = (one == other).all(2)
        assert same[number <= passes].all()
        assert not same[number > passes].all()  # untrained, each frame depends on those before
