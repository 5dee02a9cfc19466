"""The recognizer finds phones at any loudness, and detects blurred speech."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from training.data.flite import PHONES
from training.data.synthesize_corpus import PHONE_STEP, RATE
from training.losses.phone_recognizer import Listener, heard, missed


def tones(hertz: Tensor) -> Tensor:
    """One tone every 20 ms: [B, T] -> [B, T * PHONE_STEP]."""
    each = hertz.repeat_interleave(PHONE_STEP, 1)
    return 0.3 * torch.sin(2 * torch.pi * torch.cumsum(each, 1) / RATE)


def spoken(batch: int, steps: int) -> tuple[Tensor, Tensor]:
    """Phones 0 to 2, a tone each, held for five steps."""
    phones = torch.randint(3, (batch, steps // 5)).repeat_interleave(5, 1)
    return tones(400.0 + 900.0 * phones), phones


@pytest.mark.parametrize("steps", [4, 37])
def test_every_step_is_heard(steps: int) -> None:
    told = Listener()(torch.randn(2, steps * PHONE_STEP))
    assert told[-1].shape == (2, len(PHONES), steps)


def test_loudness_is_not_heard() -> None:
    torch.manual_seed(1)
    listener, wave = Listener().eval(), torch.rand(1, 20 * PHONE_STEP) - 0.5
    loud, soft = listener(wave)[-1], listener(wave / 3)[-1]
    assert (loud - soft).abs().max() < 0.05 * loud.abs().max()


def test_it_learns_and_misses_what_is_blurred() -> None:
    torch.manual_seed(2)
    listener = Listener()
    steps = torch.optim.Adam(listener.parameters(), 2e-3)
    for _ in range(25):
        wave, phones = spoken(4, 40)
        loss = heard(listener(wave)[-1], phones)
        steps.zero_grad()
        torch.autograd.backward(loss)
        steps.step()
    wave, phones = spoken(4, 40)
    blurred = wave + 2 * spoken(4, 40)[0]  # somebody louder speaks, too
    real, made = listener(wave), listener(blurred)
    assert heard(real[-1], phones) < 0.5 < heard(made[-1], phones)
    assert float(missed(real, real).detach()) == 0 < float(missed(real, made).detach())
