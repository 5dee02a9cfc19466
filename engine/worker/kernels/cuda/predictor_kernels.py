"""The predictor's part of a frame in CUDA kernels: codebooks 1–15.

Up to 32 rows run in one persistent launch, up to 64 in one with two partitions of the GPU, more
through cuBLAS products with kernels between them. All sample the same codes from logits that
differ by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from engine.model.predictor import Predictor
from engine.worker.backends import Candidate, select_backend
from engine.worker.kernels.cuda import nvrtc, predictor_persistent, predictor_tiled
from engine.worker.kernels.cuda.constants import predictor_tables
from engine.worker.kernels.cuda.launch_config import (
    MAX_ROWS,
    LaunchConfig,
    find_launch_config,
    shared_memory,
)
from engine.worker.kernels.cuda.predictor_persistent import PersistentPredictor, kernel_form
from engine.worker.kernels.cuda.predictor_tiled import TiledPredictor
from engine.worker.kernels.verify import TOLERANCE, SampleFrame, predictor_difference

PARTITIONS = 2
TRIED = (3, MAX_ROWS), (MAX_ROWS, PARTITIONS * MAX_ROWS - 3)  # rows, by partitions less one


class PredictorKernels:
    """The kernels that run here and agree with the plain form."""

    def __init__(self, predictor: Predictor) -> None:
        check_supported(predictor)
        self._predictor = predictor
        # kernels read these tables by address, so they must stay alive
        self._embeddings = [table.weight.detach() for table in predictor.model.codec_embedding]
        tables = predictor_tables(predictor)
        self.persistent = self._select(
            "persistent kernel", lambda: self._persistent(tables, 1), TRIED[0]
        )
        self.partitioned = self._select(
            "partitioned kernel", lambda: self._persistent(tables, PARTITIONS), TRIED[1]
        )
        self.tiled = self._select(
            "tiled kernels",
            lambda: TiledPredictor(predictor, tables),
            (3, PARTITIONS * MAX_ROWS),
        )

    def form(self, rows: int) -> SampleFrame | None:
        """The fastest kernel for `rows`; None: use the plain form."""
        if self.persistent and rows <= MAX_ROWS:
            return self.persistent
        return (
            self.partitioned if self.partitioned and rows <= PARTITIONS * MAX_ROWS else self.tiled
        )

    def _persistent(
        self, tables: dict[str, torch.Tensor], partitions: int
    ) -> PersistentPredictor | None:
        config = _launch_config(self._predictor, partitions)
        if config is None:
            return None
        try:
            return PersistentPredictor(self._predictor, tables, config, partitions)
        except torch.OutOfMemoryError as error:  # the other kernels need no copy of the weights
            raise nvrtc.KernelError("too little memory for packed weights") from error

    def _select(
        self, name: str, build: Callable[[], SampleFrame | None], rows: Sequence[int]
    ) -> SampleFrame | None:
        def difference(form: SampleFrame) -> float:
            return max(predictor_difference(self._predictor, form, count) for count in rows)

        candidate = Candidate(f"the predictor's {name}", build, difference)
        return select_backend([candidate], None, TOLERANCE)


def sources(predictor: Predictor) -> Iterator[nvrtc.Source]:
    """All that `PredictorKernels` compiles."""
    check_supported(predictor)
    for partitions, tried in enumerate(TRIED, 1):
        if config := _launch_config(predictor, partitions):
            for form in sorted({kernel_form(rows) for rows in tried}):
                yield predictor_persistent.source(predictor, config, *form)
    yield predictor_tiled.source(predictor)


def _launch_config(predictor: Predictor, partitions: int) -> LaunchConfig | None:
    """Of a persistent launch; None: not on this device, or not for these sizes."""
    device = torch.cuda.get_device_properties(predictor.model.norm.weight.device)
    if device.major < 9:
        return None
    return find_launch_config(
        predictor.model.config,
        device.multi_processor_count // partitions,
        shared_memory(device),
        predictor.lm_head[0].out_features,
    )


def check_supported(predictor: Predictor) -> None:
    """Raises KernelError where no kernel supports the device or the sizes."""
    weight, config = predictor.model.norm.weight, predictor.model.config
    codes, books = predictor.lm_head[0].out_features, len(predictor.lm_head)
    if not (
        weight.dtype == torch.bfloat16
        and torch.cuda.get_device_capability(weight.device) >= (8, 0)
        # launches go to the current device
        and weight.device.index in (None, torch.cuda.current_device())
    ):
        raise nvrtc.KernelError("kernels need bfloat16 and a GPU that supports it")
    known = config.head_dim == 128 and config.heads <= 2 * config.kv_heads
    if not known or config.hidden_size % 512 or config.intermediate_size % 2 or codes % 512:
        raise nvrtc.KernelError("no kernel for a predictor of these sizes")
    if books > 15:
        raise nvrtc.KernelError(f"no kernel for {books + 1} codebooks")
