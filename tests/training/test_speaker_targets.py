"""Speaker targets are linear in the axes."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.batching.speaker_targets import directions, faster, speaker_targets
from training.data.speakers import NAMED, TRAINED, Speaker, everyone, on_the_way

AXES = torch.tensor([speaker.axes() for speaker in everyone()[:TRAINED]])


def axes(speaker: Speaker) -> torch.Tensor:
    return torch.tensor(speaker.axes())


@settings(deadline=None)
@given(st.sampled_from(NAMED), st.sampled_from(NAMED), st.floats(0.01, 0.99))
def test_who_lies_between_two_voices_has_a_mix_of_their_homes(
    first: Speaker, second: Speaker, share: float
) -> None:
    ends = speaker_targets(axes(first)), speaker_targets(axes(second))
    between = speaker_targets(axes(on_the_way(first, second, share)))
    torch.testing.assert_close(between, torch.lerp(*ends, share), atol=1e-4, rtol=1e-4)


def test_directions_are_at_right_angles() -> None:
    torch.testing.assert_close(directions(9) @ directions(9).T, torch.eye(9), atol=1e-5, rtol=0)


def test_nobody_else_has_a_home_as_near_by_cosine() -> None:
    lies = torch.nn.functional.normalize(speaker_targets(AXES), dim=1)
    assert torch.equal((lies @ lies.T).argmax(1), torch.arange(TRAINED))


@settings(deadline=None)
@given(st.floats(0.9, 1.1), st.integers(0, TRAINED - 1))
def test_played_faster_a_voice_is_higher_shorter_and_quicker(speed: float, index: int) -> None:
    speaker = everyone()[index]
    moved = replace(
        speaker,
        pitch=speaker.pitch * speed,
        tract=speaker.tract * speed,
        pace=speaker.pace / speed,
    )
    torch.testing.assert_close(faster(axes(speaker), speed), axes(moved), atol=1e-4, rtol=1e-4)
