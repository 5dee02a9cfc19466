"""Speaker targets are linear in the axes."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.batching.speaker_targets import directions, faster, speaker_targets
from training.data.speakers import NAMED, TRAINED, Speaker, all_speakers

AXES = torch.tensor([speaker.axes() for speaker in all_speakers()[:TRAINED]])


def axes(speaker: Speaker) -> torch.Tensor:
    return torch.tensor(speaker.axes())


@settings(deadline=None)
@given(st.sampled_from(NAMED), st.sampled_from(NAMED), st.floats(0.01, 0.99))
def test_a_voice_between_two_has_a_mix_of_their_targets(
    first: Speaker, second: Speaker, share: float
) -> None:
    ends = speaker_targets(axes(first)), speaker_targets(axes(second))
    between = speaker_targets(torch.lerp(axes(first), axes(second), share))
    torch.testing.assert_close(between, torch.lerp(*ends, share), atol=1e-4, rtol=1e-4)


def test_directions_are_at_right_angles() -> None:
    torch.testing.assert_close(directions(9) @ directions(9).T, torch.eye(9), atol=1e-5, rtol=0)


def test_no_other_target_is_as_near_by_cosine() -> None:
    lies = torch.nn.functional.normalize(speaker_targets(AXES), dim=1)
    assert torch.equal((lies @ lies.T).argmax(1), torch.arange(TRAINED))


@settings(deadline=None)
@given(st.floats(0.9, 1.1), st.integers(0, TRAINED - 1))
def test_played_faster_a_voice_is_higher_shorter_and_quicker(speed: float, index: int) -> None:
    speaker = all_speakers()[index]
    moved = replace(
        speaker,
        pitch=speaker.pitch * speed,
        tract=speaker.tract * speed,
        pace=speaker.pace / speed,
    )
    torch.testing.assert_close(faster(axes(speaker), speed), axes(moved), atol=1e-4, rtol=1e-4)
