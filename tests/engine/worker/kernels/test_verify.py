"""A form of the predictor that errs is found out before it serves."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.model.predictor import Predictor
from engine.worker.kernels.cuda.predictor_kernels import _proven
from engine.worker.kernels.cuda.verify import Form, agrees
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
        own: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> tuple[Tensor, Tensor]:
        self._calls += 1
        codes, total = self._plain(hidden, first, own, uniforms, count)
        if self._change == "a code":
            codes[-1, -1] = (codes[-1, -1] + 7) % 512
        if self._change == "a sum":
            total[0, 0] += 1
        if self._change == "by turns" and self._calls % 2:
            codes, total = self._plain(hidden, first, own, 1 - uniforms, count)
        return codes, total


@pytest.mark.parametrize("rows", [1, 3, 16])
def test_the_plain_form_agrees_with_itself(rows: int) -> None:
    net = network()
    assert agrees(net, CodePredictor(net), rows)


@pytest.mark.parametrize("change", ["a code", "a sum", "by turns"])
def test_what_errs_is_not_used(change: str, caplog: pytest.LogCaptureFixture) -> None:
    net = network()
    assert _proven(net, lambda: Wrong(net, change), (3,)) is None
    assert "errs on this GPU" in caplog.text


def test_what_cannot_be_made_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    def make() -> Form:
        raise RuntimeError("no compiler")

    assert _proven(network(), make, (3,)) is None
    assert "no compiler" in caplog.text


def test_what_agrees_is_used() -> None:
    net = network()
    plain = CodePredictor(net)
    assert _proven(net, lambda: plain, (3,)) is plain
    assert torch.is_grad_enabled()
