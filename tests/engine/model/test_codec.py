"""The codec's decoder gives the reference's waveforms, and can be trained."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch

from engine.model.codec import CodecDecoder
from engine.model.configs import CodecConfig
from engine.model.convs import Foldable
from engine.worker.loading.model_loader import load_codec
from tests.conftest import golden_folders
from tests.support.golden_cases import Case, speech_cases, tensors
from tests.support.initial_weights import initialise

CPU = torch.device("cpu")
FOLDERS = pytest.mark.parametrize("folder", golden_folders(), ids=lambda folder: folder.name)


@cache
def decoder(folder: Path) -> CodecDecoder:
    return load_codec(folder, CPU, torch.float32)


def random_codes(config: CodecConfig, batch: int, frames: int) -> torch.Tensor:
    return torch.randint(0, config.codebook_size, (batch, config.codebooks, frames))


@pytest.fixture(params=golden_folders()[:1], ids=lambda folder: folder.name)
def fresh(request: pytest.FixtureRequest) -> CodecDecoder:
    """A decoder of a golden config with random weights."""
    torch.manual_seed(0)
    network = CodecDecoder(decoder(request.param).config)
    initialise(network)
    return network


@FOLDERS
def test_waveforms_equal_the_references(folder: Path) -> None:
    golden = tensors(folder)
    with torch.inference_mode():
        wave = decoder(folder)(golden["codec.codes"])
    torch.testing.assert_close(wave, golden["codec.wav"], rtol=0, atol=1e-4)


@pytest.mark.parametrize("case", speech_cases(), ids=str)
def test_every_case_gives_the_references_waveform(case: Case) -> None:
    codes, wanted = case.tensor("codes"), case.tensor("wav")
    if "ref_text" in case.asked:  # in context: decoded behind the reference, which is cut off
        codes = torch.cat((tensors(case.folder)["reference_codes"], codes))
    with torch.inference_mode():
        wave = decoder(case.folder)(codes.T[None])[0, -len(wanted) :]
    torch.testing.assert_close(wave, wanted, rtol=0, atol=1e-4)


@FOLDERS
def test_folding_changes_nothing(folder: Path) -> None:
    """In float64: rounding is all that differs."""
    folded = load_codec(folder, CPU, torch.float64)
    plain = CodecDecoder(folded.config).eval().double()
    plain.load_state_dict(folded.state_dict())
    codes = random_codes(folded.config, 2, 3)
    with torch.inference_mode():
        torch.testing.assert_close(folded(codes), plain(codes), rtol=0, atol=1e-9)


def foldings(network: CodecDecoder) -> list[Foldable]:
    return [module for module in network.modules() if isinstance(module, Foldable)]


def test_loading_or_training_drops_folded_values(fresh: CodecDecoder) -> None:
    codes, other = random_codes(fresh.config, 1, 2), CodecDecoder(fresh.config)
    initialise(other)
    fresh.eval().fold()
    assert all(module.folded is not None for module in foldings(fresh))
    fresh.load_state_dict(other.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(fresh(codes), other(codes))
    fresh.fold()
    fresh.train()
    assert all(module.folded is None for module in foldings(fresh))


def test_folded_tables_follow_the_network_but_are_not_saved(fresh: CodecDecoder) -> None:
    names = fresh.state_dict().keys()
    fresh.fold()
    assert fresh.state_dict().keys() == names
    assert all(module.value().dtype == torch.float64 for module in foldings(fresh.double()))


def test_decoding_latents_equals_decoding_codes(fresh: CodecDecoder) -> None:
    codes = random_codes(fresh.config, 2, 4)
    with torch.no_grad():
        latents = fresh.quantizer(codes)
        assert latents.shape == (2, fresh.config.codebook_dim, 4)
        torch.testing.assert_close(fresh.decode_latents(latents), fresh(codes))


def test_gradients_reach_every_weight_that_decodes(fresh: CodecDecoder) -> None:
    fresh.decode_latents(
        fresh.quantizer(random_codes(fresh.config, 1, 3))
    ).square().mean().backward()
    still = {
        name
        for name, weight in fresh.named_parameters()
        if weight.grad is None or not weight.grad.any()
    }
    assert still == {f"quantizer.{half}.input_proj.weight" for half in ("rvq_first", "rvq_rest")}


def test_training_starts_quiet_but_not_silent(fresh: CodecDecoder) -> None:
    with torch.no_grad():
        wave = fresh(random_codes(fresh.config, 2, 8))
    assert wave.isfinite().all()
    assert wave.abs().max() < 0.9
    assert wave.std() > 1e-3


def test_later_codes_do_not_change_earlier_audio(fresh: CodecDecoder) -> None:
    codes = random_codes(fresh.config, 1, 6)
    changed = codes.clone()
    changed[..., 4:] = (changed[..., 4:] + 1) % fresh.config.codebook_size
    with torch.no_grad():
        first, second = fresh(codes), fresh(changed)
    border = 4 * fresh.config.hop
    torch.testing.assert_close(first[:, :border], second[:, :border], rtol=0, atol=1e-6)
    assert not torch.allclose(first[:, border:], second[:, border:], atol=1e-6)
