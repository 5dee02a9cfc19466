"""Voices lie in a straight line along their axes, and batches hold speech and copies."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.speaker import SpeakerEncoder
from training import recipe
from training.smooth_speaker import directions, faster, mixed, places, settle
from training.speakers import NAMED, TRAINED, Speaker, everyone, on_the_way
from training.speech import RATE

AXES = torch.tensor([speaker.axes() for speaker in everyone()[:TRAINED]])


def axes(speaker: Speaker) -> torch.Tensor:
    return torch.tensor(speaker.axes())


@settings(deadline=None)
@given(st.sampled_from(NAMED), st.sampled_from(NAMED), st.floats(0.01, 0.99))
def test_who_lies_between_two_voices_has_a_mix_of_their_places(
    first: Speaker, second: Speaker, share: float
) -> None:
    ends = places(axes(first)), places(axes(second))
    between = places(axes(on_the_way(first, second, share)))
    torch.testing.assert_close(between, torch.lerp(*ends, share), atol=1e-4, rtol=1e-4)


def test_directions_are_at_right_angles() -> None:
    torch.testing.assert_close(directions(9) @ directions(9).T, torch.eye(9), atol=1e-5, rtol=0)


def test_nobody_else_has_a_place_as_near_by_cosine() -> None:
    lies = torch.nn.functional.normalize(places(AXES), dim=1)
    assert torch.equal((lies @ lies.T).argmax(1), torch.arange(TRAINED))


@settings(deadline=None)
@given(st.floats(0.9, 1.1), st.integers(0, TRAINED - 1))
def test_played_faster_a_voice_is_higher_shorter_and_quicker(speed: float, index: int) -> None:
    speaker = everyone()[index]
    moved = Speaker(
        speaker.name,
        speaker.base,
        speaker.pitch * speed,
        speaker.tract * speed,
        speaker.pace / speed,
        speaker.tilt,
        other=speaker.other,
        share=speaker.share,
    )
    torch.testing.assert_close(faster(axes(speaker), speed), axes(moved), atol=1e-4, rtol=1e-4)


def test_settled_the_last_layer_leads_to_the_places_of_what_it_can_tell() -> None:
    """Voices that are hums of two heights, which any layers before it tell apart."""
    torch.manual_seed(0)
    encoder = SpeakerEncoder(recipe.speaker_shape()).eval()
    axes = torch.stack((AXES[0], AXES[0]))
    axes[1, 0] += 1.0
    moments = torch.arange(3 * RATE) / RATE

    def draw(batch: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        voice = torch.randint(2, (batch,))
        hertz = 100.0 + 150 * voice[:, None] + 5 * torch.randn(batch, 1)
        return (hertz * moments * 2 * math.pi).sin()[:, :length] * 0.1, voice

    plain: Any = SimpleNamespace(draw=draw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.smooth_speaker.SETTLED", 320)
        settle(encoder, plain, axes)
    wave, voice = draw(16, 3 * RATE)
    with torch.no_grad():
        off = encoder.embed(wave) - places(axes[voice])
    apart = (places(axes[0]) - places(axes[1])).norm()
    assert off.norm(dim=1).max() < 0.3 * apart


def test_a_batch_is_speech_and_copies_of_one_length() -> None:
    speech = torch.ones(4, 50), torch.zeros(4, dtype=torch.long)
    copied = 2 * torch.ones(9, 30), torch.arange(9)
    wave, voice = mixed(speech, copied, 3)
    assert wave.shape == (7, 30)
    assert (wave[:4] == 1).all()
    assert (wave[4:] == 2).all()
    assert voice[:4].tolist() == [0] * 4
    wave, _ = mixed((speech[0][:, :20], speech[1]), copied, 3)
    assert wave.shape == (7, 20)
