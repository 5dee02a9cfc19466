"""Mixes come near the voice they stand for, and are made of others."""

from __future__ import annotations

import pytest
import torch

from training.mixing import APART, INSIDE, KEPT, Mixes, mixes, trained
from training.speakers import TRAINED, everyone

AXES = torch.tensor([speaker.axes() for speaker in everyone()[:TRAINED]])


@pytest.fixture(scope="module")
def made() -> Mixes:
    return trained()


def test_pairs_are_two_others_far_apart(made: Mixes) -> None:
    voices = torch.arange(TRAINED)[:, None].expand(-1, KEPT)
    for other in (made.first, made.second):
        assert (other != voices).all()
    assert ((AXES[made.first] - AXES[made.second]).norm(dim=-1) >= APART - 1e-4).all()
    assert ((made.share >= INSIDE) & (made.share <= 1 - INSIDE)).all()


def test_a_mix_comes_near_its_voice(made: Mixes) -> None:
    """As near as the nearest five others; a few voices at the edges have nobody around them."""
    near = 0
    for voice in range(TRAINED):
        mixed = made.draw(torch.full((KEPT,), voice), AXES)
        nearest = (AXES - AXES[voice]).norm(dim=1).sort().values[1:6].mean()
        near += bool((mixed - AXES[voice]).norm(dim=1).mean() < nearest)
    assert near >= 0.8 * TRAINED


def test_there_are_mixes_of_different_kinds(made: Mixes) -> None:
    kinds = AXES[:, 4:]
    apart = (kinds[made.first] - kinds[made.second]).abs().sum(-1) > 0.5
    assert apart.float().mean() > 0.3


def test_the_same_voices_have_the_same_mixes(made: Mixes) -> None:
    assert all(one.equal(other) for one, other in zip(made, mixes(AXES), strict=True))
