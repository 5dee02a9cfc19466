"""Weights in fewer bits on a CPU: the same promises as with full ones, and which are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.random_config import config
from engine import InvalidSetting, Preset, SpeechRequest, open_engine
from engine.engine import Engine
from engine.model.configs import TalkerConfig
from engine.model.quantized_linear import QuantizedLinear
from engine.model.talker import Talker
from engine.types import Codes, Pcm
from engine.worker.loading.model_loader import load_talker, weight_bits
from engine.worker.loading.weight_loader import empty_network
from studio.cli.app_context import MINI
from tests.support.programs import CACHE

TEXT = "The morning train was late again."
CPU = torch.device("cpu")


@pytest.fixture(scope="module", params=["8bit", "4bit"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with open_engine([MINI], "cpu", weights=request.param, cache=CACHE, max_num_seqs=4) as opened:
        yield opened


def spoken(engine: Engine, text: str = TEXT, live: bool = True, seed: int = 3) -> tuple[Codes, Pcm]:
    stream = engine.submit(
        SpeechRequest(text, Preset("clara"), seed=seed, live=live, max_frames=18)
    )
    chunks = list(stream)
    return (
        np.concatenate([chunk.codes for chunk in chunks]),
        np.concatenate([chunk.pcm for chunk in chunks]),
    )


def test_the_same_seed_is_the_same_speech_alone_and_in_a_crowd(engine: Engine) -> None:
    codes, pcm = spoken(engine)
    others = [
        engine.submit(SpeechRequest(f"Number {n}.", Preset("robert"), seed=n)) for n in range(2)
    ]
    again, sound = spoken(engine)
    for other in others:
        other.cancel()
    np.testing.assert_array_equal(codes, again)
    assert np.abs(pcm.astype(int) - sound.astype(int)).max() <= 1
    assert 1.0 < len(pcm) / 24_000 < 5.0


def test_a_file_is_the_same_speech_as_a_stream(engine: Engine) -> None:
    np.testing.assert_array_equal(spoken(engine)[0], spoken(engine, live=False)[0])


def test_full_weights_are_not_kept_beside_the_packed_ones() -> None:
    full, few = (load_talker(MINI, CPU, torch.float32, weights) for weights in ("full", "8bit"))
    sizes = [sum(t.nbytes for t in network.state_dict().values()) for network in (full, few)]
    assert sizes[1] < 0.6 * sizes[0]
    kept = {type(module) for module in few.model.layers.modules()}
    assert QuantizedLinear in kept
    assert torch.nn.Linear not in kept


@pytest.mark.parametrize(("size", "bits"), [("tiny", None), ("0.6B", 8), ("1.7B", 8)])
def test_large_models_take_8_bits_by_themselves(size: str, bits: int | None) -> None:
    shape = TalkerConfig.from_dict(config(size, "base")["talker_config"])
    talker = empty_network(lambda: Talker(shape), torch.float32)
    assert weight_bits(talker, CPU, "auto") == bits
    assert weight_bits(talker, CPU, "full") is None
    assert weight_bits(talker, torch.device("cuda"), "auto") is None
    with pytest.raises(InvalidSetting, match="are for CPUs"):
        weight_bits(talker, torch.device("cuda"), "4bit")


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="auto, full, 8bit, 4bit"):
        open_engine([Path(MINI)], "cpu", weights="2bit")
