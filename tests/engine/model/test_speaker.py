"""Mel spectrograms and speaker vectors equal the reference's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.mel import WINDOW, filterbank, mel_spectrogram
from engine.worker.loading.model_loader import load_speaker
from tests.conftest import golden_folders
from tests.support.golden_cases import tensors

CPU = torch.device("cpu")
RECORDED = [folder for folder in golden_folders() if "reference_embedding" in tensors(folder)]
FOLDERS = pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: folder.name)


@FOLDERS
def test_mel_equals_the_references(folder: Path) -> None:
    golden = tensors(folder)
    bins = len(golden["reference_mel"])
    mel = mel_spectrogram(golden["reference_wav"][None], bins)[0]
    torch.testing.assert_close(mel, golden["reference_mel"], rtol=1e-4, atol=1e-4)


@FOLDERS
def test_the_vector_equals_the_references(folder: Path) -> None:
    golden = tensors(folder)
    with torch.inference_mode():
        speaker = load_speaker(folder, CPU)
        vector = speaker.embed(golden["reference_wav"][None])[0]
    wanted = golden["reference_embedding"]
    size = max(1.0, float(wanted.abs().max()))  # random weights make vectors of any size
    torch.testing.assert_close(vector / size, wanted / size, rtol=0, atol=1e-4)


@FOLDERS
def test_a_batch_equals_its_rows(folder: Path) -> None:
    wave = tensors(folder)["reference_wav"]
    half = len(wave) // 2
    waves = torch.stack((wave[:half], wave[half : 2 * half]))
    with torch.inference_mode():
        speaker = load_speaker(folder, CPU)
        batch, alone = speaker.embed(waves), torch.cat([speaker.embed(w[None]) for w in waves])
    torch.testing.assert_close(batch, alone, rtol=1e-4, atol=1e-4 * float(alone.abs().max()))


@settings(max_examples=20, deadline=None)
@given(st.integers(8, 160), st.sampled_from([8_000, 16_000, 24_000, 48_000]))
def test_filters_are_triangles_of_equal_area(bins: int, rate: int) -> None:
    bank = filterbank(bins, rate)
    assert bank.shape == (bins, WINDOW // 2 + 1)
    assert (bank >= 0).all()
    wide = (bank > 0).sum(1) > 30  # enough points for a sum to stand for an area
    np.testing.assert_allclose(bank[wide].sum(1) * rate / WINDOW, 1, atol=2e-2)


@pytest.mark.parametrize(("bins", "rate"), [(128, 24_000), (80, 16_000)])
def test_filters_equal_librosas(bins: int, rate: int) -> None:
    filters = pytest.importorskip("librosa.filters")
    theirs = filters.mel(sr=rate, n_fft=WINDOW, n_mels=bins)
    np.testing.assert_allclose(filterbank(bins, rate), theirs, rtol=0, atol=1e-7)
