"""The predictor's part of a frame: codebooks 1–15, sampled one after the other.

On a GPU, CUDA kernels sample the same codes from logits that differ by rounding, and on a CPU
numba's. Without these a small predictor on a CPU runs about three thousand operators per frame and
spends half of its time in Python between them; a trace runs them without Python and gives the same
codes as the plain form.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor, nn

from engine.model.predictor import Predictor
from engine.worker.backends import Candidate, select_backend
from engine.worker.device import runs_cuda
from engine.worker.kernels.verify import TOLERANCE, SampleFrame, predictor_difference
from engine.worker.lean_torch import whole
from engine.worker.state.sampling import CANDIDATES, SamplingTensors, pick

if TYPE_CHECKING:
    from engine.worker.kernels.cuda.predictor_kernels import PredictorKernels

Frame: TypeAlias = tuple[Tensor, Tensor]  # codes [R, 15], the sum of all 16 embeddings [R, width]
Trace: TypeAlias = Callable[..., Frame]
TRACE_LIMIT = 128 << 20  # bytes of all layers: larger predictors spend little time in Python


_TRACES: dict[tuple[int, tuple[object, ...]], Trace] = {}  # by rows and shapes of weights


class CodePredictor:
    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._kernels: PredictorKernels | None = select_backend(
            # PredictorKernels compares each kernel with the plain form
            [Candidate("the predictor's kernels", self._build_kernels, lambda _: 0.0)], None, 0.0
        )  # fmt: skip
        self._traces: dict[int, SampleFrame] = {}  # by rows
        self._form: SampleFrame | None = None

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        sampling: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> Frame:
        """hidden and first [R, width], uniforms [R, 15]; `count` ids are ranked for each draw."""
        form = self._kernels.form(len(hidden)) if self._kernels else self._form
        if form is None and count == CANDIDATES:
            form = self._traces.get(len(hidden))
        return (form or self._plain)(hidden, first, sampling, uniforms, count)

    def use(self, form: SampleFrame) -> None:
        """Sample with this form instead, for any number of rows."""
        self._form = form

    def trace(self, max_rows: int) -> None:
        """Trace steps of up to `max_rows` rows, where that is faster."""
        network = self._predictor.model
        tensors = (*network.layers.parameters(), *network.layers.buffers())
        if sum(weight.nbytes for weight in tensors) > TRACE_LIMIT:
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
        if not runs_cuda(self._predictor.model.norm.weight.device):
            return None
        from engine.worker.kernels.cuda.predictor_kernels import PredictorKernels

        return PredictorKernels(self._predictor)

    def _traced(self, rows: int) -> SampleFrame:
        frame = _PlainFrame(self._predictor)
        weights = {**dict(frame.named_parameters()), **dict(frame.named_buffers())}
        shapes = tuple((name, each.shape, each.dtype) for name, each in weights.items())
        tensors = tuple(weights.values())
        trace = _TRACES.get((rows, shapes)) or _trace(frame, tuple(weights), tensors, rows)
        _TRACES[rows, shapes] = trace
        return lambda hidden, first, sampling, uniforms, _: _replay(
            trace, *tensors, hidden, first, *sampling.tensors, uniforms
        )

    def _plain(
        self,
        hidden: Tensor,
        first: Tensor,
        sampling: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> Frame:
        return _sample(self._predictor, hidden, first, sampling, uniforms, count)


class _PlainFrame(nn.Module):
    """The plain form as a module."""

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        self.predictor = predictor

    def forward(self, hidden: Tensor, first: Tensor, *rest: Tensor) -> Frame:
        *sampling, uniforms = rest
        tensors = SamplingTensors(*sampling)
        return _sample(self.predictor, hidden, first, tensors, uniforms, CANDIDATES)


def _sample(
    predictor: Predictor,
    hidden: Tensor,
    first: Tensor,
    sampling: SamplingTensors,
    uniforms: Tensor,
    count: int | None,
) -> Frame:
    def choose(book: int, logits: Tensor) -> Tensor:
        return pick(logits, sampling, uniforms[:, book - 1 : book], count)

    return predictor.sample(hidden, first, choose)


def _trace(
    frame: _PlainFrame, names: tuple[str, ...], weights: tuple[Tensor, ...], rows: int
) -> Trace:
    """A trace with the weights as inputs, so that models share it: torch never frees a trace."""

    twin = copy.deepcopy(frame)

    def sample(*inputs: Tensor) -> Frame:
        for name, weight in zip(names, inputs, strict=False):
            _set_weight(twin, name, weight)
        return twin(*inputs[len(names) :])

    table = frame.predictor.model.codec_embedding[0].weight  # [V, width]
    hidden = torch.zeros_like(table[:rows], dtype=frame.predictor.dtype)
    column = hidden.new_ones(rows, 1)
    uniforms = column.expand(-1, len(frame.predictor.lm_head)) / 2
    inputs = (*weights, hidden, hidden, column, column, column, column, uniforms)
    whole()
    with warnings.catch_warnings():  # sizes become constants, which is intended
        warnings.simplefilter("ignore")
        trace: Trace = torch.jit.trace(sample, inputs, check_trace=False)
    _replay(trace, *inputs)  # the first call is slow
    return trace


def _set_weight(network: nn.Module, name: str, weight: Tensor) -> None:
    """Replace a parameter or buffer with a plain tensor."""
    path, _, leaf = name.rpartition(".")
    owner = network.get_submodule(path)
    owner._parameters.pop(leaf, None)
    owner._buffers.pop(leaf, None)
    setattr(owner, leaf, weight)


def _replay(trace: Trace, *inputs: Tensor) -> Frame:
    with torch.jit.optimized_execution(False):  # type: ignore[attr-defined]  # optimizing takes half a second, twice
        return trace(*inputs)
