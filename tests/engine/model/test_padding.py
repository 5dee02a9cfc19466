"""Values behind a row's end never change its results."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.encoder import CodecEncoder
from engine.model.padding import NO_PADDING, Padding, RightPadding
from engine.model.speaker import SpeakerEncoder
from engine.worker.loading.model_loader import load_encoder, load_speaker
from tests.conftest import golden_folders

CPU = torch.device("cpu")
BASES = [folder for folder in golden_folders() if folder.name.startswith("base")]
MAX_FRAMES = 12  # frames of the codec in a padded row


@pytest.fixture(scope="module", params=BASES, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def encoder(folder: Path) -> CodecEncoder:
    return load_encoder(folder, CPU).double()


@pytest.fixture(scope="module")
def speaker(folder: Path) -> SpeakerEncoder:
    return load_speaker(folder, CPU).double()


def noise(samples: int, seed: int) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    return 0.1 * torch.randn(1, samples, generator=draw, dtype=torch.float64)


def padded(waves: list[torch.Tensor], length: int) -> tuple[torch.Tensor, Padding]:
    """Rows of one length, with noise behind each wave."""
    rows = 3 * noise(len(waves) * length, 1).view(len(waves), length)
    for row, wave in zip(rows, waves, strict=True):
        row[: wave.shape[1]] = wave[0]
    return rows, RightPadding(torch.tensor([wave.shape[1] for wave in waves]))


@settings(max_examples=25, deadline=None)
@given(samples=st.lists(st.integers(1, MAX_FRAMES * 1920), min_size=1, max_size=3))
@torch.inference_mode()
def test_latents_do_not_depend_on_the_padding(encoder: CodecEncoder, samples: list[int]) -> None:
    hop = encoder.config.hop
    waves = [noise(count, seed) for seed, count in enumerate(samples)]
    rows, padding = padded(waves, MAX_FRAMES * hop)
    latents = encoder.latents(rows, padding)  # codes are the nearest of these
    for at, wave in enumerate(waves):
        frames = -(-wave.shape[1] // hop)
        alone = encoder.latents(wave)
        torch.testing.assert_close(latents[at : at + 1, :, :frames], alone, rtol=1e-5, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(samples=st.lists(st.integers(4096, MAX_FRAMES * 1920 - 1024), min_size=1, max_size=3))
@torch.inference_mode()
def test_vectors_do_not_depend_on_the_padding(speaker: SpeakerEncoder, samples: list[int]) -> None:
    waves = [noise(count, seed) for seed, count in enumerate(samples)]
    vectors = speaker.embed(*padded(waves, MAX_FRAMES * 1920))
    alone = torch.cat([speaker.embed(wave) for wave in waves])
    # the mel spectrogram is computed in float32
    torch.testing.assert_close(vectors, alone, rtol=0, atol=2e-5 * float(alone.abs().max()))


SIGNALS = st.integers(0, 9).map(lambda seed: noise(30, seed).view(1, 3, 10))


@given(x=SIGNALS, length=st.integers(2, 10))
def test_each_operation_equals_torch_padding(x: torch.Tensor, length: int) -> None:
    padding, cut = RightPadding(torch.tensor([length])), x[..., :length]
    more = 10 - length
    pad = torch.nn.functional.pad
    assert padding.zero_fill(x).equal(pad(cut, (0, more)))
    assert padding.replicate(x).equal(pad(cut, (0, more), "replicate"))
    seen = min(more, length - 1)  # as far as `reflect` goes
    assert padding.reflect(x)[..., : length + seen].equal(pad(cut, (0, seen), "reflect"))
    torch.testing.assert_close(
        (x * padding.mean_weights(x)).sum(2), (cut * NO_PADDING.mean_weights(cut)).sum(2)
    )
    torch.testing.assert_close(padding.mask_scores(x).softmax(2)[..., :length], cut.softmax(2))
