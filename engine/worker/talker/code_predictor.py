"""the predictor's part of a frame: codebooks 1–15, sampled one after the other.

On a GPU, CUDA kernels sample the same codes from logits that differ by rounding. A small
predictor on a CPU spends as long in Python, between some three thousand kernels a frame, as in
the kernels: a trace runs them without Python, and gives the same codes as the plain form.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from engine.model.predictor import Predictor
from engine.worker.backends import Candidate, select_backend
from engine.worker.kernels.verify import TOLERANCE, SampleFrame, predictor_difference
from engine.worker.state.sampling import CANDIDATES, SamplingTensors, pick

if TYPE_CHECKING:
    from engine.worker.kernels.cuda.predictor_kernels import PredictorKernels

Frame: TypeAlias = tuple[Tensor, Tensor]  # codes [R, 15], the sum of all 16 embeddings [R, width]
TRACE_LIMIT = 64 << 20  # bytes of all layers: larger ones keep the kernels busy


class CodePredictor:
    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._kernels: PredictorKernels | None = select_backend(
            # each of the kernels is compared with the plain form on its own
            [Candidate("the predictor's kernels", self._build_kernels, lambda _: 0.0)], None, 0.0
        )  # fmt: skip
        self._traces: dict[int, SampleFrame] = {}  # by rows

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        sampling: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> Frame:
        """hidden and first [R, width], uniforms [R, 15]; `count` ids are ranked for each draw."""
        form = self._kernels.form(len(hidden)) if self._kernels else None
        if form is None and count == CANDIDATES:
            form = self._traces.get(len(hidden))
        return (form or self._plain)(hidden, first, sampling, uniforms, count)

    def trace(self, max_rows: int) -> None:
        """Trace steps of up to `max_rows` rows, where that is faster."""
        network = self._predictor.model
        if sum(weight.nbytes for weight in network.layers.parameters()) > TRACE_LIMIT:
            return
        for rows in range(1, max_rows + 1):
            trace = Candidate(
                f"the predictor's trace of {rows} rows",
                lambda: self._traced(rows),  # noqa: B023 - called at once
                lambda form: predictor_difference(self._predictor, form, rows),  # noqa: B023
            )
            if form := select_backend([trace], None, TOLERANCE):
                self._traces[rows] = form

    def _build_kernels(self) -> PredictorKernels | None:
        if self._predictor.model.norm.weight.device.type != "cuda":
            return None
        from engine.worker.kernels.cuda.predictor_kernels import PredictorKernels

        return PredictorKernels(self._predictor)

    def _traced(self, rows: int) -> SampleFrame:
        def sample(hidden: Tensor, first: Tensor, *rest: Tensor) -> Frame:
            *sampling, uniforms = rest
            return self._plain(hidden, first, SamplingTensors(*sampling), uniforms, CANDIDATES)

        table = self._predictor.model.codec_embedding[0].weight  # [V, width]
        hidden = torch.zeros_like(table[:rows])
        column = hidden.new_ones(rows, 1)
        uniforms = column.expand(-1, len(self._predictor.lm_head)) / 2
        inputs = (hidden, hidden, column, column, column, column, uniforms)
        with warnings.catch_warnings():  # of sizes that become constants, as they should
            warnings.simplefilter("ignore")
            trace = torch.jit.trace(sample, inputs, check_trace=False)
        _replay(trace, *inputs)  # the first call takes long
        return lambda hidden, first, sampling, uniforms, _: _replay(
            trace, hidden, first, *sampling.tensors, uniforms
        )

    def _plain(
        self,
        hidden: Tensor,
        first: Tensor,
        sampling: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> Frame:
        def choose(book: int, logits: Tensor) -> Tensor:
            return pick(logits, sampling, uniforms[:, book - 1 : book], count)

        return self._predictor.sample(hidden, first, choose)


def _replay(trace: Callable[..., Frame], *inputs: Tensor) -> Frame:
    with torch.jit.optimized_execution(False):  # optimising would take half a second, twice
        return trace(*inputs)
