"""The recognizer finds phones at any loudness, and detects blurred speech."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from training.data.phones import PHONES
from training.data.speech_format import PHONE_STEP, RATE
from training.losses.phone_recognizer import PhoneRecognizer, feature_distance, phone_loss


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
    logits = PhoneRecognizer()(torch.randn(2, steps * PHONE_STEP))
    assert logits[-1].shape == (2, len(PHONES), steps)


def test_loudness_is_not_heard() -> None:
    torch.manual_seed(1)
    recognizer, wave = PhoneRecognizer().eval(), torch.rand(1, 20 * PHONE_STEP) - 0.5
    loud, soft = recognizer(wave)[-1], recognizer(wave / 3)[-1]
    assert (loud - soft).abs().max() < 0.05 * loud.abs().max()


def test_it_learns_and_misses_what_is_blurred() -> None:
    torch.manual_seed(2)
    recognizer = PhoneRecognizer()
    steps = torch.optim.Adam(recognizer.parameters(), 2e-3)
    for _ in range(25):
        wave, phones = spoken(4, 40)
        loss = phone_loss(recognizer(wave)[-1], phones)
        steps.zero_grad()
        torch.autograd.backward(loss)
        steps.step()
    wave, phones = spoken(4, 40)
    blurred = wave + 2 * spoken(4, 40)[0]  # somebody louder speaks, too
    real, made = recognizer(wave), recognizer(blurred)
    assert phone_loss(real[-1], phones) < 0.5 < phone_loss(made[-1], phones)
    assert feature_distance(real, real) == 0
    assert feature_distance(real, made) > 0
