"""The predictor's part of a frame in CUDA kernels: codebooks 1–15.

Up to 32 rows run in one persistent launch, up to 64 in one with two partitions of the GPU, more
through cuBLAS products with kernels between them. All sample the same codes from logits that
differ by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from engine.model.predictor import Predictor
from engine.worker.backends import Candidate, select_backend
from engine.worker.kernels.cuda import nvrtc
from engine.worker.kernels.cuda.constants import predictor_tables
from engine.worker.kernels.cuda.launch_config import MAX_ROWS, find_launch_config, shared_memory
from engine.worker.kernels.cuda.predictor_persistent import PersistentPredictor
from engine.worker.kernels.cuda.predictor_tiled import TiledPredictor
from engine.worker.kernels.verify import TOLERANCE, SampleFrame, predictor_difference

PARTITIONS = 2


class PredictorKernels:
    """The kernels that run here and agree with the plain form."""

    def __init__(self, predictor: Predictor) -> None:
        check_supported(predictor)
        self._predictor = predictor
        # kernels read these tables by address, so they must stay alive
        self._embeddings = [table.weight.detach() for table in predictor.model.codec_embedding]
        tables = predictor_tables(predictor)
        most = PARTITIONS * MAX_ROWS
        self.persistent = self._select(
            "persistent kernel", lambda: self._persistent(tables, 1), (3, MAX_ROWS)
        )
        self.partitioned = self._select(
            "partitioned kernel", lambda: self._persistent(tables, PARTITIONS), (MAX_ROWS, most - 3)
        )
        self.tiled = self._select(
            "tiled kernels", lambda: TiledPredictor(predictor, tables), (3, most)
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
        predictor = self._predictor
        device = torch.cuda.get_device_properties(predictor.model.norm.weight.device)
        if device.major < 9:
            return None
        config = find_launch_config(
            predictor.model.config,
            device.multi_processor_count // partitions,
            shared_memory(device),
            predictor.lm_head[0].out_features,
        )
        if config is None:
            return None
        try:
            return PersistentPredictor(predictor, tables, config, partitions)
        except torch.OutOfMemoryError as error:  # the other kernels need no copy of the weights
            raise nvrtc.KernelError("too little memory for packed weights") from error

    def _select(
        self, name: str, build: Callable[[], SampleFrame | None], rows: Sequence[int]
    ) -> SampleFrame | None:
        def difference(form: SampleFrame) -> float:
            return max(predictor_difference(self._predictor, form, count) for count in rows)

        candidate = Candidate(f"the predictor's {name}", build, difference)
        return select_backend([candidate], None, TOLERANCE)


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
