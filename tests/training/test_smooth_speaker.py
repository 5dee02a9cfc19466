"""Voices get one place each that follows from their axes, and batches hold speech and copies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from engine.model.speaker import SpeakerEncoder
from training import recipe
from training.smooth_speaker import LEAST, losses, mean_vectors, mixed, places
from training.speakers import TRAINED, everyone

AXES = torch.tensor([speaker.axes() for speaker in everyone()[:TRAINED]])


def test_places_are_nearer_to_where_voices_lie_than_their_means_are() -> None:
    draw = torch.Generator().manual_seed(0)
    bend = torch.randn(AXES.shape[1], 32, generator=draw)
    truth = torch.sin(AXES @ bend)
    counts = torch.randint(2, 12, (TRAINED,), generator=draw)
    means = truth + torch.randn(TRAINED, 32, generator=draw) / counts[:, None].sqrt()
    found = places(means, counts, AXES)
    assert (found - truth).norm(dim=1).mean() < 0.7 * (means - truth).norm(dim=1).mean()


def test_a_voice_s_place_is_its_axes_alone() -> None:
    draw = torch.Generator().manual_seed(1)
    means, counts = torch.randn(TRAINED, 8, generator=draw), torch.full((TRAINED,), 5)
    twice = torch.cat((AXES, AXES[3:4]))
    found = places(torch.cat((means, -means[3:4])), torch.cat((counts, counts[3:4])), twice)
    torch.testing.assert_close(found[3], found[-1], rtol=1e-3, atol=1e-3)


def test_means_are_of_each_voice_s_own_sentences() -> None:
    encoder = SpeakerEncoder(recipe.speaker_shape()).eval()
    tape = 0.1 * torch.randn(4 * LEAST)
    rows = torch.tensor(
        [[0, LEAST, 2], [LEAST, LEAST, 2], [2 * LEAST, LEAST, 7], [0, LEAST - 1, 9]]
    )

    def cut(starts: torch.Tensor, length: int) -> torch.Tensor:
        return torch.stack([tape[start : start + length] for start in starts])

    plain: Any = SimpleNamespace(rows=rows, pool=SimpleNamespace(cut=cut))
    means, counts = mean_vectors(encoder, plain)
    own = encoder.embed(tape[: 3 * LEAST].view(3, LEAST)).detach()
    torch.testing.assert_close(means[2], own[:2].mean(0), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(means[7], own[2], rtol=1e-4, atol=1e-4)
    assert counts.nonzero()[:, 0].tolist() == [2, 7]


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


def test_what_lies_in_its_place_loses_nothing() -> None:
    lies = torch.randn(TRAINED, 16)
    voice = torch.tensor([5, 1])
    assert losses(lies[voice], voice, lies)["off"] == 0
    assert losses(lies[voice], voice, lies)["right"] == 1
    assert losses(lies[voice] + 1, voice, lies)["off"] == 16
