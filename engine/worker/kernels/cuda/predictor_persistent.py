"""The predictor's part of a frame in one persistent launch: codebooks 1–15 for a few rows.

One partition of blocks takes up to 32 rows; two, each on half of the GPU, read the same weights at
about the same time. The weights are stored a second time, in the order of use. Calls share scratch
buffers, so they must be on one stream.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from engine.model.predictor import Predictor
from engine.worker.kernels.cuda import nvrtc, weight_packing
from engine.worker.kernels.cuda.constants import predictor_constants
from engine.worker.kernels.cuda.launch_config import (
    MAX_ROWS,
    POSTED_ROWS,
    THREADS,
    TILES,
    LaunchConfig,
)
from engine.worker.state.sampling import SamplingTensors

SOURCES = ("primitives", "products", "attention", "sampling", "grid", "predictor")
_POINTERS = (
    *("layers", "heads", "norms", "rotary", "inputs", "embeddings", "begin", "first"),
    *("inverse_temperature", "top_k", "top_p", "sample_mask", "uniforms", "codes", "total"),
    *("x", "qkv", "attended", "gated", "logits", "keys", "values", "posted", "launches"),
    "barrier",
)
_NUMBERS = ("rows", "partition_rows", "count", "setting_stride", "uniform_stride")


class PredictorArguments(ctypes.Structure):
    """The kernel's arguments; predictor.cu has the same struct, with descriptions."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _POINTERS),
        *((name, ctypes.c_int) for name in _NUMBERS),
    )


class PersistentPredictor:
    """For up to `max_rows` rows."""

    def __init__(
        self,
        predictor: Predictor,
        tables: dict[str, Tensor],
        launch: LaunchConfig,
        partitions: int = 1,
    ) -> None:
        self._predictor, self._launch = predictor, launch
        self.max_rows = partitions * MAX_ROWS
        self._weights = pack_weights(predictor, launch) | tables
        self.scratch = allocate_scratch(predictor, predictor.model.norm.weight, partitions)
        self._kernels: dict[tuple[int, bool], nvrtc.Kernel] = {}  # compiled at first use

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        sampling: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> tuple[Tensor, Tensor]:
        """As `Predictor.sample`, with codes as `pick` draws them."""
        rows, books = len(hidden), len(self._predictor.lm_head)
        partitions = -(-rows // MAX_ROWS)
        each = -(-rows // partitions)
        codes = torch.empty(rows, books, dtype=torch.long, device=hidden.device)
        begin = self._predictor.small_to_mtp_projection(torch.stack((hidden, first)))
        begin, first = begin.contiguous(), first.contiguous()
        total = torch.empty_like(first)
        arguments = kernel_arguments(
            self._weights | self.scratch, begin, first, sampling, uniforms, count, codes, total,
            each,
        )  # fmt: skip
        blocks = partitions * self._launch.blocks
        self._kernel(rows).launch_cooperative(blocks, THREADS, arguments)
        return codes, total

    def _kernel(self, rows: int) -> nvrtc.Kernel:
        key = kernel_form(rows)
        if key not in self._kernels:
            module = nvrtc.Module(source(self._predictor, self._launch, *key))
            self._kernels[key] = module.kernel("predict", self._launch.shared)
        return self._kernels[key]


def kernel_form(rows: int) -> tuple[int, bool]:
    """Tiles of a launch's partition, and whether its blocks wait for numbers."""
    each = -(-rows // -(-rows // MAX_ROWS))
    return next(tiles for tiles in TILES if each <= 16 * tiles), rows <= POSTED_ROWS


def source(predictor: Predictor, launch: LaunchConfig, tiles: int, posted: bool) -> nvrtc.Source:
    """The kernel for this form of a launch."""
    return nvrtc.read_source(SOURCES, constants(predictor, launch, tiles, posted))


def kernel_arguments(
    buffers: dict[str, Tensor],
    begin: Tensor,
    first: Tensor,
    sampling: SamplingTensors,
    uniforms: Tensor,
    count: int | None,
    codes: Tensor,
    total: Tensor,
    partition_rows: int,
) -> PredictorArguments:
    """The tensors must stay alive until the kernel has run."""
    tensors = buffers | dict(
        begin=begin, first=first, uniforms=uniforms, codes=codes, total=total,
        inverse_temperature=sampling.inverse_temperature, top_k=sampling.top_k,
        top_p=sampling.top_p, sample_mask=sampling.sample_mask,
    )  # fmt: skip
    strides = sampling.sample_mask.stride(0), uniforms.stride(0)
    vocabulary = buffers["inputs"].shape[1]
    ranked = min(count or vocabulary, vocabulary)
    pointers = (tensors[name].data_ptr() for name in _POINTERS)
    return PredictorArguments(*pointers, len(first), partition_rows, ranked, *strides)


def constants(
    predictor: Predictor, launch: LaunchConfig, tiles: int, posted: bool = False
) -> dict[str, int | float]:
    """Compile-time constants of the kernel."""
    return predictor_constants(predictor) | launch.constants(predictor.model.config, tiles, posted)


def pack_weights(predictor: Predictor, launch: LaunchConfig) -> dict[str, Tensor]:
    """Weights of layers and heads in the order of use."""
    norm = predictor.model.norm.weight
    heads = [weight_packing.fold_norm(head.weight, norm) for head in predictor.lm_head]
    packed = [weight_packing.pack_stages(head, launch.blocks, launch.slab) for head in heads]
    blocks = list(predictor.model.layers)
    return dict(
        layers=weight_packing.pack_layers(blocks, launch),
        heads=torch.stack(packed),
    )


def allocate_scratch(predictor: Predictor, like: Tensor, partitions: int = 1) -> dict[str, Tensor]:
    """Buffers for activations between phases, and the barriers, which start at zero."""
    config, books = predictor.model.config, len(predictor.lm_head)
    past = config.layers * config.kv_heads * (books + 1) * config.head_dim
    widths = dict(logits=predictor.lm_head[0].out_features, keys=past, values=past)
    rows = partitions * MAX_ROWS
    scratch = {name: like.new_empty(rows, width) for name, width in widths.items()}
    drawn = widths["logits"] + config.hidden_size
    scratch |= weight_packing.allocate_posted(config, books + 1, drawn, like.device)
    return scratch | weight_packing.allocate_scratch(config, rows, like, partitions)


def last_logits(scratch: dict[str, Tensor], rows: int) -> Tensor:
    """Logits of the last codebook after a launch: [rows, V]."""
    return scratch["logits"][:rows]
