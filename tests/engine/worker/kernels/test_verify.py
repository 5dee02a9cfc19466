"""The comparison with the plain predictor finds audible differences."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from engine.model.predictor import Predictor
from engine.worker.backends import Candidate, select_backend
from engine.worker.kernels.verify import TOLERANCE, SampleFrame, predictor_difference
from engine.worker.state.sampling import SamplingTensors
from engine.worker.talker.code_predictor import CodePredictor
from tests.engine.worker.kernels.small import network


class Wrong:
    """The plain form with one thing changed."""

    def __init__(self, predictor: Predictor, change: str) -> None:
        self._plain, self._change, self._calls = CodePredictor(predictor), change, 0

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        sampling: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> tuple[Tensor, Tensor]:
        self._calls += 1
        codes, total = self._plain(hidden, first, sampling, uniforms, count)
        if self._change == "a code":
            codes[-1, -1] = (codes[-1, -1] + 7) % 512
        if self._change == "a sum":
            total[0, 0] += 1
        if self._change == "by turns" and self._calls % 2:
            codes, total = self._plain(hidden, first, sampling, 1 - uniforms, count)
        return codes, total


def select(net: Predictor, form: SampleFrame) -> SampleFrame | None:
    candidate = Candidate("it", lambda: form, lambda each: predictor_difference(net, each, 3))
    return select_backend([candidate], None, TOLERANCE)


@pytest.mark.parametrize("rows", [1, 3, 16])
def test_the_plain_form_agrees_with_itself(rows: int) -> None:
    net = network()
    assert predictor_difference(net, CodePredictor(net), rows) <= TOLERANCE


@pytest.mark.parametrize("change", ["a code", "a sum", "by turns"])
def test_a_wrong_form_is_not_selected(change: str, caplog: pytest.LogCaptureFixture) -> None:
    net = network()
    assert select(net, Wrong(net, change)) is None
    assert "gave other results than the plain form" in caplog.text


def test_other_codes_in_a_second_call_are_an_infinite_difference() -> None:
    net = network()
    assert predictor_difference(net, Wrong(net, "by turns"), 3) == math.inf


def test_the_plain_form_is_selected_where_it_is_a_candidate() -> None:
    net = network()
    plain = CodePredictor(net)
    assert select(net, plain) is plain
    assert torch.is_grad_enabled()
