"""A perturbed history changes the frames fed back in the target and nothing else."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.batching.test_batches import make_batcher, make_dataset
from training import model_config
from training.batching import perturbation
from training.batching.batches import NONE, Batch, Batcher

ROWS, LENGTH = 12, 160
SHARES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@pytest.fixture(scope="module")
def batcher() -> Batcher:
    torch.manual_seed(1)
    return make_batcher(make_dataset())


def drawn(batcher: Batcher, in_context: bool, seed: int) -> Batch:
    torch.manual_seed(seed)
    return batcher.draw(ROWS, in_context, LENGTH, batcher.order)


@settings(max_examples=12, deadline=None)
@given(in_context=st.booleans(), share=SHARES, seed=st.integers(0, 99))
def test_only_acoustic_codes_of_the_target_are_swapped(
    batcher: Batcher, in_context: bool, share: float, seed: int
) -> None:
    batch = drawn(batcher, in_context, seed)
    fed = perturbation.swap_voices(batch, share)
    assert torch.equal(fed[..., 0], batch.fed[..., 0])
    changed = (fed != batch.fed).any(-1)
    assert not changed[~perturbation.feeds_target(batch)].any()
    assert not changed[~perturbation.has_voice(batch)].any()
    assert not changed[round(share * ROWS) :].any()
    assert int(fed.max()) < model_config.CODES
    assert ((fed == NONE) == (batch.fed == NONE)).all()


@pytest.mark.parametrize("in_context", [False, True])
def test_what_is_fed_back_of_the_target_is_known(batcher: Batcher, in_context: bool) -> None:
    """As many frames as there are to be said, the last ones of all."""
    batch = drawn(batcher, in_context, 3)
    fed_back, fed = perturbation.feeds_target(batch), batch.fed[..., 0] != NONE
    assert torch.equal(fed_back.sum(1), (batch.target[..., 0] != NONE).sum(1))
    assert (fed & ~fed_back).any() == in_context
    for row in range(ROWS):
        assert torch.equal(
            batch.fed[row][fed_back[row]], batch.target[row][batch.target[row, :, 0] >= 0]
        )


def test_a_span_is_one_piece_of_another_voices_frames(batcher: Batcher) -> None:
    batch = drawn(batcher, False, 4)
    fed_back, fed = perturbation.feeds_target(batch), perturbation.swap_voices(batch, 1.0)
    assert not torch.equal(fed, batch.fed)
    everybodys = {tuple(frame[1:]) for frame in batch.fed[fed_back].tolist()}
    for row in range(ROWS):
        assert {tuple(frame[1:]) for frame in fed[row][fed_back[row]].tolist()} <= everybodys
        places = (fed[row] != batch.fed[row]).any(-1).nonzero()[:, 0]
        assert len(places) == 0 or bool((places.diff() <= 2).all())  # equal frames by chance


def test_no_voice_is_its_own_donor_and_similar_ones_donate_more() -> None:
    torch.manual_seed(5)
    vector = torch.randn(9, 6)
    vector[1] = vector[0] + 0.05 * torch.randn(6)
    donors = torch.stack([perturbation.choose_donors(vector, 3) for _ in range(200)])
    assert (donors != torch.arange(3)).all()
    shares = torch.bincount(donors[:, 0], minlength=9) / 200
    assert shares[1] > 0.5
    assert (shares[2:] > 0).any()
