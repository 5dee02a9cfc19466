"""Muon's updates are orthogonal, and as large whatever the gradients are."""

from __future__ import annotations

import math

import pytest
import torch

from training.optimizers import UPDATE_SIZE, Muon, orthogonal
from training.train_talker import TalkerWithPhones, make_optimizers


@pytest.mark.parametrize("shape", [(3, 24, 24), (2, 16, 40), (1, 40, 16)])
def test_all_directions_have_about_the_same_size(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    given = torch.randn(shape)
    before, after = torch.linalg.svdvals(given), torch.linalg.svdvals(orthogonal(given))
    assert after.max() < 1.3
    assert after[before > 0.1 * before.max()].min() > 0.6


def test_a_step_has_the_same_size_whatever_the_gradient() -> None:
    torch.manual_seed(0)
    weight, rate = torch.zeros(64, 32, requires_grad=True), torch.tensor(0.01)
    optimizer = Muon([(weight, [64])], rate, weight_decay=0.0)
    gradient, steps = torch.randn_like(weight), []
    for size in (1e-4, 1.0, 1e4):
        before = weight.detach().clone()
        weight.grad = gradient * size
        optimizer.step()
        steps.append((weight.detach() - before).square().mean().sqrt().item())
    # An orthogonal matrix [64, 32] has entries of 1 / 8 (root mean square).
    assert steps == pytest.approx([0.01 * UPDATE_SIZE * math.sqrt(64) / 8] * 3, rel=0.2)


@pytest.mark.parametrize("shape", [(48, 32), (32, 48), (32, 32)])
def test_steps_are_those_of_torchs_muon(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    ours = torch.randn(shape, requires_grad=True)
    plain = ours.detach().clone().requires_grad_()
    before, rate = ours.detach().clone(), 0.01
    optimizers = (
        Muon([(ours, [len(ours)])], torch.tensor(rate)),
        torch.optim.Muon([plain], rate, weight_decay=0.03, adjust_lr_fn="match_rms_adamw"),
    )
    for _ in range(4):
        ours.grad = torch.randn(shape)
        plain.grad = ours.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    moved = (plain - before).norm()
    assert (ours - plain).norm() < 0.03 * moved  # torch's product is in bfloat16


def test_a_fused_weight_is_several_matrices() -> None:
    torch.manual_seed(0)
    rate = torch.tensor(0.1)
    fused, parts = torch.randn(24, 16), [16, 8]
    alone = [part.clone().requires_grad_() for part in fused.split(parts)]
    whole = fused.clone().requires_grad_()
    whole.grad = torch.randn(24, 16)
    for part, gradient in zip(alone, whole.grad.split(parts), strict=True):
        part.grad = gradient.clone()
    Muon([(whole, parts)], rate).step()
    Muon([(part, [len(part)]) for part in alone], rate).step()
    torch.testing.assert_close(whole, torch.cat(alone))


def test_every_weight_of_the_talker_has_one_optimizer() -> None:
    model = TalkerWithPhones()
    groups = make_optimizers(model, torch.tensor(1e-3)).param_groups
    weights = [id(weight) for group in groups for weight in group["params"]]
    assert sorted(weights) == sorted(id(weight) for weight in model.parameters())
