"""Mixes come near the voice they stand for, and are made of others of its kind."""

from __future__ import annotations

import pytest
import torch

from training.mixing import APART, INSIDE, KEPT, Mixes, mixes, trained
from training.speakers import TRAINED, everyone

AXES = torch.tensor([speaker.axes() for speaker in everyone()[:TRAINED]])


@pytest.fixture(scope="module")
def made() -> Mixes:
    return trained()


def test_pairs_are_two_others_of_the_same_kind_far_apart(made: Mixes) -> None:
    voices = torch.arange(TRAINED)[:, None].expand(-1, KEPT)
    kinds = AXES[:, 4:].argmax(1)
    for other in (made.first, made.second):
        assert (other != voices).all()
        assert (kinds[other] == kinds[voices]).all()
    assert ((AXES[made.first] - AXES[made.second]).norm(dim=-1) >= APART - 1e-4).all()
    assert ((made.share >= INSIDE) & (made.share <= 1 - INSIDE)).all()


def test_a_mix_comes_near_its_voice(made: Mixes) -> None:
    """Nearer than nine in ten of its kind; a few voices at the edges have nobody around them."""
    kinds = AXES[:, 4:].argmax(1)
    near = 0
    for voice in range(TRAINED):
        mixed = made.draw(torch.full((KEPT,), voice), AXES)
        others = AXES[(kinds == kinds[voice]) & (torch.arange(TRAINED) != voice)]
        usual = (others - AXES[voice]).norm(dim=1).quantile(0.1)
        near += bool((mixed - AXES[voice]).norm(dim=1).mean() < usual)
    assert near >= 0.9 * TRAINED


def test_the_same_voices_have_the_same_mixes(made: Mixes) -> None:
    assert all(one.equal(other) for one, other in zip(made, mixes(AXES), strict=True))
