"""Every sentence maps to its voice's target, and batches hold speech and copies."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import torch

from engine.model.speaker import SpeakerEncoder
from training import model_config
from training.batching.speaker_targets import speaker_targets
from training.data.speakers import all_speakers
from training.data.speech_format import RATE
from training.smooth_speaker import fit_last_layer, join_batches, other_microphones

AXES = torch.tensor([speaker.axes() for speaker in all_speakers()[:1]])


def test_the_fitted_last_layer_gives_the_targets_of_what_it_can_tell() -> None:
    """Voices that are hums of two heights, which any layers before it tell apart."""
    torch.manual_seed(0)
    encoder = SpeakerEncoder(model_config.speaker_config()).eval()
    axes = torch.stack((AXES[0], AXES[0]))
    axes[1, 0] += 1.0
    moments = torch.arange(3 * RATE) / RATE

    def draw(batch: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        voice = torch.randint(2, (batch,))
        hertz = 100.0 + 150 * voice[:, None] + 5 * torch.randn(batch, 1)
        return (hertz * moments * 2 * math.pi).sin()[:, :length] * 0.1, voice

    utterances: Any = SimpleNamespace(draw=draw)
    fit_last_layer(encoder, utterances, axes, sentences=320)
    wave, voice = draw(16, 3 * RATE)
    with torch.no_grad():
        off = encoder.embed(wave) - speaker_targets(axes[voice])
    apart = (speaker_targets(axes[0]) - speaker_targets(axes[1])).norm()
    assert off.norm(dim=1).max() < 0.3 * apart


def test_a_batch_is_speech_and_copies_of_one_length() -> None:
    speech = torch.ones(4, 50), torch.zeros(4, dtype=torch.long)
    copied = 2 * torch.ones(9, 30), torch.arange(9)
    wave, voice = join_batches(speech, copied, 3)
    assert wave.shape == (7, 30)
    assert (wave[:4] == 1).all()
    assert (wave[4:] == 2).all()
    assert voice[:4].tolist() == [0] * 4
    wave, _ = join_batches((speech[0][:, :20], speech[1]), copied, 3)
    assert wave.shape == (7, 20)


def test_another_microphone_changes_the_spectrum_and_nothing_else() -> None:
    torch.manual_seed(1)
    noise = torch.randn(24, RATE)
    heard = other_microphones(noise)
    change = 20 * (torch.fft.rfft(heard).abs() / torch.fft.rfft(noise).abs()).log10()
    middle = change[:, 400:3000]  # Hz
    assert middle.abs().max() < 24
    assert middle.std(1).max() > 1
    weak = change[:, 70:90].mean(1) < -9  # without their lows
    assert 6 <= weak.sum() <= 18
    dull = change[:, 11_600:11_900].mean(1) < -6  # without their highs
    assert 2 <= dull.sum() <= 14
    # No phase is turned: each wave still stands in time where it stood.
    across = torch.fft.irfft(torch.fft.rfft(heard) * torch.fft.rfft(noise).conj())
    assert (across.argmax(1) == 0).all()
