"""The predictor's part of a frame in one launch: codebooks 1-15 for some rows.

One crew of blocks takes up to 32 of them; two crews, each on its half of the card, read the same
weights at about the same time. The weights are kept once more, in the order of use. Calls share
their buffers: they belong on one stream.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from engine.model.predictor import Predictor
from engine.worker.kernels.cuda import nvrtc, weight_packing
from engine.worker.kernels.cuda.constants import shape_constants
from engine.worker.kernels.cuda.launch_config import MOST_ROWS, THREADS, TILES, Fit
from engine.worker.state.sampling import SamplingTensors

PARTS = ("primitives", "products", "attention", "sampling", "grid", "predictor")
_POINTERS = (
    *("layers", "heads", "norms", "turns", "inputs", "embeddings", "begin", "talked"),
    *("inverse_temperature", "top_k", "top_p", "sample_mask", "uniforms", "codes", "total"),
    *("x", "qkv", "mixed", "gated", "logits", "keys", "values", "barrier"),
)
_NUMBERS = ("rows", "each", "count", "knob_stride", "uniform_stride")


class Frame(ctypes.Structure):
    """What the kernel is told; predictor.cu has the same and says what each is."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _POINTERS),
        *((name, ctypes.c_int) for name in _NUMBERS),
    )


class PersistentPredictor:
    """For up to `most` rows."""

    def __init__(
        self, predictor: Predictor, tables: dict[str, Tensor], fit: Fit, crews: int = 1
    ) -> None:
        self._predictor, self._fit, self.most = predictor, fit, crews * MOST_ROWS
        self._kept = packed(predictor, fit) | tables
        self.between = scratch(predictor, predictor.model.norm.weight, crews)
        self._kernels: dict[int, nvrtc.Kernel] = {}  # by tiles, compiled when first asked for

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        own: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> tuple[Tensor, Tensor]:
        """As `Predictor.sample`, with the draws of `pick`."""
        rows, books = len(hidden), len(self._predictor.lm_head)
        crews = -(-rows // MOST_ROWS)
        each = -(-rows // crews)
        codes = torch.empty(rows, books, dtype=torch.long, device=hidden.device)
        begin = self._predictor.small_to_mtp_projection(torch.stack((hidden, first)))
        begin, first = begin.contiguous(), first.contiguous()
        total = torch.empty_like(first)
        tensors = self._kept | self.between
        frame = frame_of(tensors, begin, first, own, uniforms, count, (codes, total), each)
        tiles = next(tiles for tiles in TILES if each <= 16 * tiles)
        self._kernel(tiles).together(crews * self._fit.blocks, THREADS, frame)
        return codes, total

    def _kernel(self, tiles: int) -> nvrtc.Kernel:
        if tiles not in self._kernels:
            known = nvrtc.constants(constants(self._predictor, self._fit, tiles))
            module = nvrtc.Module(nvrtc.source(*PARTS), known)
            self._kernels[tiles] = module.kernel("predict", self._fit.shared)
        return self._kernels[tiles]


def frame_of(
    kept: dict[str, Tensor],
    begin: Tensor,
    first: Tensor,
    own: SamplingTensors,
    uniforms: Tensor,
    count: int | None,
    made: tuple[Tensor, Tensor],
    each: int,
) -> Frame:
    """What the kernel is told, `each` rows a crew. These tensors stay in use until it has run."""
    codes, total = made
    tensors = kept | dict(
        begin=begin, talked=first, uniforms=uniforms, codes=codes, total=total,
        inverse_temperature=own.inverse_temperature, top_k=own.top_k, top_p=own.top_p,
        sample_mask=own.sample_mask,
    )  # fmt: skip
    strides = own.sample_mask.stride(0), uniforms.stride(0)
    vocabulary = kept["inputs"].shape[1]
    pointers = (tensors[name].data_ptr() for name in _POINTERS)
    return Frame(*pointers, len(first), each, min(count or vocabulary, vocabulary), *strides)


def constants(predictor: Predictor, fit: Fit, tiles: int) -> dict[str, int | float]:
    """What the kernel is compiled for."""
    return shape_constants(predictor) | fit.constants(predictor.model.config, tiles)


def packed(predictor: Predictor, fit: Fit) -> dict[str, Tensor]:
    """Weights in the order of use."""
    norm = predictor.model.norm.weight
    heads = [weight_packing.folded(head.weight, norm) for head in predictor.lm_head]
    return dict(
        layers=weight_packing.layers(list(predictor.model.layers), fit),  # type: ignore[arg-type]
        heads=torch.stack([weight_packing.stages(head, fit.blocks, fit.slab) for head in heads]),
    )


def scratch(predictor: Predictor, like: Tensor, crews: int = 1) -> dict[str, Tensor]:
    """What lies between the phases, for the most rows, and the barriers, which start at zero."""
    config, books = predictor.model.config, len(predictor.lm_head)
    past = config.layers * config.kv_heads * (books + 1) * config.head_dim
    widths = dict(logits=predictor.lm_head[0].out_features, keys=past, values=past)
    rows = crews * MOST_ROWS
    made = {name: like.new_empty(rows, width) for name, width in widths.items()}
    return made | weight_packing.between(config, rows, like, crews)


def last_logits(between: dict[str, Tensor], rows: int) -> Tensor:
    """Of the last codebook, as the last launch left them: [rows, V]."""
    return between["logits"][:rows]
