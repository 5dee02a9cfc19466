"""A frame's new positions through all of the talker's layers in one launch, for few rows.

The weights are kept a second time, in the order of use. Calls share their buffers: they belong
on one stream.
"""

from __future__ import annotations

import ctypes
import logging

import torch
from torch import Tensor

from engine.model.configs import TransformerConfig
from engine.model.layers import Block
from engine.model.talker import TalkerModel
from engine.worker.kernels.cuda import nvrtc, weight_packing
from engine.worker.kernels.cuda.constants import block_constants
from engine.worker.kernels.cuda.launch_config import BLOCKS, THREADS, Fit, fit
from engine.worker.state.slot_state import Slots

PARTS = ("primitives", "products", "attention", "grid", "talker")
SPAN = 16  # positions that a warp reads at a time
ROWS = 16  # at most
ROOM = 2.5  # times the layers' weights must be free: a second order, and what comes after
_POINTERS = (
    *("layers", "norms", "turns", "last", "input", "index", "position", "keys", "values"),
    *("hidden", "x", "qkv", "mixed", "gated", "barrier"),
)

log = logging.getLogger("timbre")


class Pass(ctypes.Structure):
    """What the kernel is told; talker.cu has the same and says what each is."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _POINTERS),
        ("rows", ctypes.c_int),
    )


class PersistentTalker:
    def __init__(
        self, stack: TalkerModel, slots: Slots, turn: tuple[Tensor, Tensor], fit: Fit
    ) -> None:
        self._fit, self._cache = fit, slots.cache
        self._kept = packed(stack, turn, fit)
        self._kept |= weight_packing.between(stack.config, ROWS, slots.hidden)
        compiled = nvrtc.constants(constants(stack.config, fit, 1, slots.cache.keys))
        self._kernel = nvrtc.Module(nvrtc.source(*PARTS), compiled).kernel("talk", fit.shared)

    def __call__(self, x: Tensor, index: Tensor, position: Tensor) -> Tensor:
        """As `TalkerForward.__call__`, for up to ROWS rows."""
        assert len(x) <= ROWS
        hidden = torch.empty_like(x)
        given = x.contiguous(), index.contiguous(), position.contiguous()
        told = pass_of(self._kept, given, self._cache.tensors, hidden)
        self._kernel.together(self._fit.blocks, THREADS, told)
        return hidden


def pass_of(
    kept: dict[str, Tensor],
    given: tuple[Tensor, Tensor, Tensor],
    cache: tuple[Tensor, ...],
    hidden: Tensor,
) -> Pass:
    """What the kernel is told. All these tensors stay in use until it has run."""
    x, index, position = given
    keys, values = cache
    tensors = kept | dict(
        input=x, index=index, position=position, keys=keys, values=values, hidden=hidden
    )
    pointers = (tensors[name].data_ptr() for name in _POINTERS)
    return Pass(*pointers, len(x))


def constants(
    config: TransformerConfig, fit: Fit, tiles: int, kept: Tensor
) -> dict[str, int | float]:
    """What the kernel is compiled for. `kept`: keys, or values, in whatever order they lie."""
    names = ("LAYER_STEP", "SLOT_STEP", "HEAD_STEP", "KEPT_STEP", "DIMENSION_STEP")
    steps = dict(zip(names, kept.stride(), strict=True))
    assert steps.pop("DIMENSION_STEP") == 1
    return fit.constants(config, tiles) | block_constants(config) | steps | dict(POSITIONS=SPAN)


def packed(stack: TalkerModel, turn: tuple[Tensor, Tensor], fit: Fit) -> dict[str, Tensor]:
    """Weights in the order of use, norms, and turns [positions, 2, d]."""
    blocks: list[Block] = list(stack.layers)  # type: ignore[arg-type]
    return dict(
        layers=weight_packing.layers(blocks, fit),
        norms=weight_packing.norms(blocks),
        turns=torch.stack(turn, 1).float(),
        last=stack.norm.weight.detach(),
    )


def few(stack: TalkerModel, slots: Slots, turn: tuple[Tensor, Tensor]) -> PersistentTalker | None:
    """None where the kernel does not know the device or the shapes, or has no room."""
    like, config = slots.hidden, stack.config
    device = torch.cuda.get_device_properties(like.device)
    recent = device.major >= 9 and like.dtype == torch.bfloat16
    here = like.device.index in (None, torch.cuda.current_device())  # launches go there
    if not recent or not here or config.hidden_size % 512:
        return None
    found = fit(config, device.multi_processor_count, device.shared_memory_per_block_optin)
    if found is None or found.blocks < BLOCKS:  # with fewer, layers one by one are quicker
        return None
    weights = sum(weight.nbytes for weight in stack.layers.parameters())
    if ROOM * weights > torch.cuda.mem_get_info(like.device)[0]:
        log.info("There is no room for the talker's weights in a second order.")
        return None
    try:
        return PersistentTalker(stack, slots, turn, found)
    except nvrtc.KernelError as error:
        log.warning("A kernel of the talker cannot be used here: %s", error)
        return None
