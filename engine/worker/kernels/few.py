"""The predictor's part of a frame in one launch: codebooks 1-15 for up to 32 rows.

The weights are kept a second time, in the order of use. Calls share their buffers: they belong on
one stream.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from engine.model.predictor import Predictor
from engine.worker.kernels import nvrtc, packing
from engine.worker.kernels.fitting import MOST_ROWS, THREADS, TILES, Fit
from engine.worker.kernels.tables import shape_constants
from engine.worker.sampling import Knobs

PARTS = ("primitives", "products", "attention", "sampling", "grid", "predictor")
_POINTERS = (
    *("layers", "heads", "norms", "turns", "inputs", "embeddings", "begin", "first"),
    *("inverse_temperature", "top_k", "top_p", "luck", "lots", "codes", "total"),
    *("x", "qkv", "mixed", "gated", "logits", "keys", "values", "barrier"),
)
_NUMBERS = ("rows", "count", "knob_stride", "lot_stride")


class Frame(ctypes.Structure):
    """What the kernel is told; predictor.cu has the same and says what each is."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _POINTERS),
        *((name, ctypes.c_int) for name in _NUMBERS),
    )


class FewRows:
    def __init__(self, predictor: Predictor, tables: dict[str, Tensor], fit: Fit) -> None:
        self._predictor, self._fit = predictor, fit
        self._kept = packed(predictor, fit) | tables
        self.between = scratch(predictor, predictor.model.norm.weight)
        text = nvrtc.source(*PARTS)
        self._kernels = {
            tiles: nvrtc.Module(text, nvrtc.constants(constants(predictor, fit, tiles))).kernel(
                "predict", fit.shared
            )
            for tiles in TILES
        }

    def __call__(
        self, hidden: Tensor, first: Tensor, own: Knobs, lots: Tensor, count: int | None
    ) -> tuple[Tensor, Tensor]:
        """As `Predictor.sample`, with the draws of `pick`, for up to MOST_ROWS rows."""
        rows, books = len(hidden), len(self._predictor.lm_head)
        codes = torch.empty(rows, books, dtype=torch.long, device=hidden.device)
        begin = self._predictor.small_to_mtp_projection(torch.stack((hidden, first)))
        begin, first = begin.contiguous(), first.contiguous()
        total = torch.empty_like(first)
        frame = frame_of(self._kept | self.between, begin, first, own, lots, count, (codes, total))
        tiles = next(tiles for tiles in TILES if rows <= 16 * tiles)
        self._kernels[tiles].together(self._fit.blocks, THREADS, frame)
        return codes, total


def frame_of(
    kept: dict[str, Tensor],
    begin: Tensor,
    first: Tensor,
    own: Knobs,
    lots: Tensor,
    count: int | None,
    made: tuple[Tensor, Tensor],
) -> Frame:
    """What the kernel is told. All these tensors stay in use until it has run."""
    codes, total = made
    tensors = kept | dict(
        begin=begin, first=first, lots=lots, codes=codes, total=total,
        inverse_temperature=own.inverse_temperature, top_k=own.top_k, top_p=own.top_p,
        luck=own.luck,
    )  # fmt: skip
    strides = own.luck.stride(0), lots.stride(0)
    vocabulary = kept["inputs"].shape[1]
    pointers = (tensors[name].data_ptr() for name in _POINTERS)
    return Frame(*pointers, len(first), min(count or vocabulary, vocabulary), *strides)


def constants(predictor: Predictor, fit: Fit, tiles: int) -> dict[str, int | float]:
    """What the kernel is compiled for."""
    return shape_constants(predictor) | fit.constants(predictor.model.shape, tiles)


def packed(predictor: Predictor, fit: Fit) -> dict[str, Tensor]:
    """Weights in the order of use."""
    norm = predictor.model.norm.weight
    heads = [packing.folded(head.weight, norm) for head in predictor.lm_head]
    return dict(
        layers=packing.layers(list(predictor.model.layers), fit),  # type: ignore[arg-type]
        heads=torch.stack([packing.stages(head, fit.blocks, fit.slab) for head in heads]),
    )


def scratch(predictor: Predictor, like: Tensor) -> dict[str, Tensor]:
    """What lies between the phases, for the most rows, and the barrier, which starts at zero."""
    shape, books = predictor.model.shape, len(predictor.lm_head)
    past = shape.layers * shape.kv_heads * (books + 1) * shape.head_dim
    widths = dict(logits=predictor.lm_head[0].out_features, keys=past, values=past)
    made = {name: like.new_empty(MOST_ROWS, width) for name, width in widths.items()}
    return made | packing.between(shape, MOST_ROWS, like)


def last_logits(between: dict[str, Tensor], rows: int) -> Tensor:
    """Of the last codebook, as the last launch left them: [rows, V]."""
    return between["logits"][:rows]
