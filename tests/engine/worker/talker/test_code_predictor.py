"""A traced predictor gives the plain one's codes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.worker.loading.model_loader import load_talker
from engine.worker.state.sampling import CANDIDATES, SamplingTensors
from engine.worker.talker.code_predictor import _TRACES, CodePredictor
from tests.conftest import golden_folders

MOST = 3


@pytest.fixture(scope="module", params=golden_folders(), ids=lambda folder: folder.name)
def pair(request: pytest.FixtureRequest) -> tuple[CodePredictor, CodePredictor, int]:
    """The plain and the traced predictor, and the talker's width."""
    folder: Path = request.param
    with torch.inference_mode():
        talker = load_talker(folder, torch.device("cpu"), torch.float32)
        traced = CodePredictor(talker.code_predictor)
        traced.trace(MOST)
    return CodePredictor(talker.code_predictor), traced, talker.config.transformer.hidden_size


@pytest.mark.parametrize("rows", [1, MOST, MOST + 1])
@torch.inference_mode()
def test_the_trace_equals_the_plain_predictor(
    pair: tuple[CodePredictor, CodePredictor, int], rows: int
) -> None:
    plain, traced, width = pair
    random = torch.Generator().manual_seed(rows)
    for _ in range(3):
        hidden, first = torch.randn(2, rows, width, generator=random)
        heat, top_p, sample_mask = torch.rand(3, rows, 1, generator=random)
        top_k = torch.randint(1, CANDIDATES, (rows, 1), generator=random).float()
        sampling = SamplingTensors(1 / (heat + 0.5), top_k, 1 - top_p / 2, sample_mask.round())
        uniforms = torch.rand(rows, len(traced._predictor.lm_head), generator=random)
        wanted, total = plain(hidden, first, sampling, uniforms, CANDIDATES)
        codes, sums = traced(hidden, first, sampling, uniforms, CANDIDATES)
        assert torch.equal(codes, wanted)
        assert torch.allclose(sums, total, atol=1e-5)


@torch.inference_mode()
def test_a_large_predictor_is_not_traced(
    pair: tuple[CodePredictor, CodePredictor, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, traced, _ = pair
    monkeypatch.setattr("engine.worker.talker.code_predictor.TRACE_LIMIT", 1)
    large = CodePredictor(plain._predictor)
    large.trace(MOST)
    assert not large._traces
    assert set(traced._traces) == set(range(1, MOST + 1))


def test_another_model_of_the_same_shapes_shares_the_traces() -> None:
    """Torch keeps every trace for ever: models that are exchanged must not add to them."""
    with torch.inference_mode():
        predictor = CodePredictor(
            load_talker(golden_folders()[0], torch.device("cpu"), torch.float32).code_predictor
        )
        predictor.trace(MOST)
        held = len(_TRACES)
        talker = load_talker(golden_folders()[0], torch.device("cpu"), torch.float32)
        for weight in talker.code_predictor.parameters():
            weight.mul_(0.9)
        other = CodePredictor(talker.code_predictor)
        other.trace(MOST)
        assert len(_TRACES) == held
        assert len(other._traces) == MOST  # each was compared with the plain form of its weights
