"""The codec's encoder gives the reference's codes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.model.encoder import CodecEncoder
from engine.worker.loading.model_loader import load_encoder
from tests.conftest import golden_folders
from tests.support.golden_cases import tensors
from tests.support.initial_weights import initialise

CPU = torch.device("cpu")
RECORDED = [folder for folder in golden_folders() if "reference_codes" in tensors(folder)]
FOLDERS = pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: folder.name)


@pytest.fixture(params=RECORDED[:1], ids=lambda folder: folder.name)
def encoder(request: pytest.FixtureRequest) -> CodecEncoder:
    return load_encoder(request.param, CPU)


@FOLDERS
def test_codes_equal_the_references(folder: Path) -> None:
    golden = tensors(folder)
    with torch.inference_mode():
        codes = load_encoder(folder, CPU).encode(golden["reference_wav"][None])
    torch.testing.assert_close(codes[0], golden["reference_codes"], rtol=0, atol=0)


@pytest.mark.parametrize("past", [0, 1, 959, 960, 1919])
def test_a_partial_frame_counts(encoder: CodecEncoder, past: int) -> None:
    samples = 3 * encoder.config.hop + past
    with torch.inference_mode():
        codes = encoder.encode(torch.zeros(2, samples))
    assert codes.shape == (2, 3 + bool(past), encoder.config.codebooks)


def test_a_batch_equals_its_rows(encoder: CodecEncoder) -> None:
    torch.manual_seed(0)
    waves = 0.1 * torch.randn(3, 5 * encoder.config.hop)
    with torch.inference_mode():
        batch = encoder.latents(waves)
        alone = torch.cat([encoder.latents(wave[None]) for wave in waves])
    torch.testing.assert_close(batch, alone, rtol=1e-5, atol=1e-5 * float(alone.abs().max()))


def test_gradients_reach_every_weight_but_the_codebooks(encoder: CodecEncoder) -> None:
    network = CodecEncoder(encoder.config)
    initialise(network)
    network.latents(0.1 * torch.randn(1, 3 * network.config.hop)).square().mean().backward()
    still = {name for name, weight in network.named_parameters() if weight.grad is None}
    assert all(name.startswith("quantizer.") for name in still)
