"""The predictor's part of a frame: codebooks 1–15, drawn one after the other.

A small predictor on a CPU spends as long in Python, between some three thousand kernels a
frame, as in the kernels. A trace is those kernels without the Python: `trace` makes one for
each number of rows that is worth it, and gives the same codes as the plain form beside it.
On a GPU kernels of our own do it where they know the shapes: the same draws, from logits
that differ by rounding.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from engine.model.predictor import Predictor
from engine.worker.state.sampling import CANDIDATES, SamplingTensors, pick

if TYPE_CHECKING:
    from engine.worker.kernels.cuda.predictor_kernels import PredictorKernels

Drawn: TypeAlias = tuple[Tensor, Tensor]  # codes [R, 15], the sum of all 16 embeddings [R, width]
WORTH_IT = 64 << 20  # bytes of all layers: larger ones keep the kernels busy

log = logging.getLogger("timbre")


class CodePredictor:
    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._fused = _fused(predictor)
        self._traces: dict[int, Callable[..., Drawn]] = {}  # by rows

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        own: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> Drawn:
        """hidden and first [R, width], uniforms [R, 15]; `count` ids are ranked for each draw."""
        form = self._fused.form(len(hidden)) if self._fused else None
        if form is not None:
            return form(hidden, first, own, uniforms, count)
        trace = self._traces.get(len(hidden)) if count == CANDIDATES else None
        if trace is None:
            return self._plain(hidden, first, own, uniforms, count)
        return _replay(trace, hidden, first, *own.tensors, uniforms)

    def trace(self, most: int) -> None:
        """From now on up to `most` rows are replayed; nothing where it is not worth it."""
        network = self._predictor.model
        if sum(weight.nbytes for weight in network.layers.parameters()) > WORTH_IT:
            return
        table = network.codec_embedding[0].weight  # [V, width]
        for rows in range(1, most + 1):
            self._traces[rows] = self._traced(torch.zeros_like(table[:rows]))

    def _traced(self, hidden: Tensor) -> Callable[..., Drawn]:
        def draw(hidden: Tensor, first: Tensor, *rest: Tensor) -> Drawn:
            *own, uniforms = rest
            return self._plain(hidden, first, SamplingTensors(*own), uniforms, CANDIDATES)

        column = hidden.new_ones(len(hidden), 1)
        uniforms = column.expand(-1, len(self._predictor.lm_head)) / 2
        sample = (hidden, hidden, column, column, column, column, uniforms)
        with warnings.catch_warnings():  # of sizes that become constants, as they should
            warnings.simplefilter("ignore")
            trace = torch.jit.trace(draw, sample, check_trace=False)
        _replay(trace, *sample)  # a first time takes long
        return trace

    def _plain(
        self,
        hidden: Tensor,
        first: Tensor,
        own: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> Drawn:
        def choose(book: int, logits: Tensor) -> Tensor:
            return pick(logits, own, uniforms[:, book - 1 : book], count)

        return self._predictor.sample(hidden, first, choose)


def _fused(predictor: Predictor) -> PredictorKernels | None:
    """None where only the plain form runs."""
    if predictor.model.norm.weight.device.type != "cuda":
        return None
    fused: PredictorKernels | None
    try:
        fused = import_module("engine.worker.kernels.cuda.predictor_kernels").fused(predictor)
    except RuntimeError as error:
        log.warning("The predictor has no kernels here (%s): frames take longer.", error)
        return None
    if fused is None:
        log.warning("The predictor has no kernels for this GPU or model: frames take longer.")
    return fused


def _replay(trace: Callable[..., Drawn], *inputs: Tensor) -> Drawn:
    with torch.jit.optimized_execution(False):  # optimising would take half a second, twice
        return trace(*inputs)
