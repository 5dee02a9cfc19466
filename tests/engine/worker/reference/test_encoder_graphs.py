"""Encoding by CUDA graph equals eager encoding, whatever was encoded before."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.model.encoder import CodecEncoder
from engine.model.padding import Padding, RightPadding
from engine.types import FRAME_SAMPLES
from engine.worker.loading.model_loader import load_encoder, load_speaker
from engine.worker.reference import encoder_graphs
from engine.worker.reference.encoder_graphs import (
    LENGTHS,
    MARGIN,
    EagerEncoder,
    GraphEncoder,
    Network,
)
from tests.conftest import golden_folders
from tests.engine.worker.fake_graphs import fake_capture

CPU = torch.device("cpu")
BASE = next(folder for folder in golden_folders() if folder.name.startswith("base"))


def noise(samples: int) -> np.ndarray:
    return 0.1 * np.random.default_rng(samples).standard_normal(samples).astype(np.float32)


def latents(encoder: CodecEncoder) -> Network:
    """Vectors before they are quantised: two codes may be equally near, so codes may differ."""
    return lambda wave, padding: encoder.latents(wave.double(), padding).transpose(1, 2)


@pytest.mark.parametrize("part", ["latents", "vector"])
@settings(max_examples=10, deadline=None)
@given(samples=st.lists(st.integers(12_000, 9 * FRAME_SAMPLES), min_size=2, max_size=4))
@torch.inference_mode()
def test_replayed_is_as_written(part: str, samples: list[int]) -> None:
    lengths = tuple(frames * FRAME_SAMPLES for frames in (8, 10))
    # In eight bytes: this checkpoint's numbers reach 1e5, of which four bytes lose too much.
    encoder, speaker = load_encoder(BASE, CPU).double(), load_speaker(BASE, CPU).double()
    plain = EagerEncoder(latents(encoder) if part == "latents" else speaker.embed, CPU)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder_graphs, "LENGTHS", lengths)
        replayed = GraphEncoder(plain, fake_capture)
        for count in (*samples, *samples):
            (heard,), (wanted,) = replayed([noise(count)]), plain([noise(count)])
            assert_like(heard, wanted)
        waves = [noise(count) for count in samples]
        for heard, wanted in zip(replayed(waves), plain(waves), strict=True):
            assert_like(heard, wanted)


def assert_like(heard: Tensor, wanted: Tensor) -> None:
    heard, size = heard[: len(wanted)], float(wanted.abs().max())
    torch.testing.assert_close(heard / size, wanted / size, rtol=0, atol=1e-6)


class Heard:
    """A network that tells what it is given."""

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.rows: list[int] = []
        self.padded: list[bool] = []

    def __call__(self, wave: Tensor, padding: Padding) -> Tensor:
        self.lengths.append(wave.shape[1])
        self.rows.append(len(wave))
        self.padded.append(isinstance(padding, RightPadding))
        return wave


@torch.inference_mode()
def test_every_length_is_recorded_at_the_start_and_longer_ones_never() -> None:
    network, recorded = Heard(), []
    replayed = GraphEncoder(
        EagerEncoder(network, CPU), lambda work: recorded.append(work) or fake_capture(work)
    )
    replayed.warm()
    made = [
        (length, rows) for length in reversed(LENGTHS) for rows in encoder_graphs._row_sizes(length)
    ]
    assert [*zip(network.lengths, network.rows, strict=True)] == made
    most = LENGTHS[-1] - MARGIN
    for samples in (24_000, 100_000, most, most + 1):
        replayed([noise(samples)])
    assert network.lengths[-1] == most + 1
    assert network.padded[-2:] == [True, False]
    replayed([noise(samples) for samples in (24_000, 30_000, 41_000, 300_000, most + 1, most)])
    assert len(recorded) == len(made)
    assert network.rows[-4:] == [4, 1, 1, 1]


@given(
    st.lists(st.integers(1, 2 * LENGTHS[-1]), min_size=1, max_size=20),
)
@torch.inference_mode()
def test_each_is_answered_in_its_place(samples: list[int]) -> None:
    network = Heard()
    waves = [np.full(count, count, np.float32) for count in samples]
    heard = GraphEncoder(EagerEncoder(network, CPU), fake_capture)(waves)
    assert [int(each[0]) for each in heard] == samples
    sizes = zip(network.rows, network.lengths, strict=True)
    assert all(rows == 1 or rows * length <= encoder_graphs.MAX_SAMPLES for rows, length in sizes)


@given(st.integers(1, LENGTHS[-1] - MARGIN))
def test_a_recording_has_room_for_what_is_looked_at_behind_it(samples: int) -> None:
    network = Heard()
    GraphEncoder(EagerEncoder(network, CPU), fake_capture)([np.zeros(samples, np.float32)])
    (length,) = network.lengths
    assert samples + MARGIN <= length
    assert length % FRAME_SAMPLES == 0
    assert length <= max(LENGTHS[0], 1.4 * (samples + MARGIN))
