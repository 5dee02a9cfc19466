"""One new position per row through all of the talker's layers in one launch, for a few rows.

The weights are stored a second time, in the order of use. Calls share scratch buffers, so they
must be on one stream.
"""

from __future__ import annotations

import ctypes
import logging

import torch
from torch import Tensor

from engine.model.configs import TransformerConfig
from engine.model.talker import TalkerModel
from engine.worker.kernels.cuda import nvrtc, weight_packing
from engine.worker.kernels.cuda.constants import transformer_constants
from engine.worker.kernels.cuda.launch_config import (
    MAX_BLOCKS,
    THREADS,
    LaunchConfig,
    find_launch_config,
    shared_memory,
)
from engine.worker.state.slot_state import Slots

SOURCES = ("primitives", "products", "attention", "grid", "talker")
SPAN = 16  # positions that a warp reads at a time
MAX_ROWS = 16
MEMORY = 2.5  # required free memory, in times the layers' weights: the copy, and some reserve
_POINTERS = (
    *("layers", "norms", "rotary", "last_norm", "input", "index", "position", "keys", "values"),
    *("hidden", "x", "qkv", "attended", "gated", "posted", "launches", "barrier"),
)

log = logging.getLogger("timbre")


class TalkerArguments(ctypes.Structure):
    """The kernel's arguments; talker.cu has the same struct, with descriptions."""

    _fields_ = (*((name, ctypes.c_void_p) for name in _POINTERS), ("rows", ctypes.c_int))


class PersistentTalker:
    def __init__(
        self,
        model: TalkerModel,
        slots: Slots,
        rotary: tuple[Tensor, Tensor],
        launch: LaunchConfig,
    ) -> None:
        self._launch, self._cache = launch, slots.cache
        self._buffers = pack_weights(model, rotary, launch)
        self._buffers |= weight_packing.allocate_scratch(model.config, MAX_ROWS, slots.hidden)
        self._buffers |= weight_packing.allocate_posted(model.config, 1, 0, slots.hidden.device)
        module = nvrtc.Module(source(model.config, launch, slots.cache.keys))
        self._kernel = module.kernel("talk", launch.shared)

    def __call__(self, x: Tensor, index: Tensor, position: Tensor) -> Tensor:
        """As `TalkerForward.__call__`, for up to MAX_ROWS rows."""
        assert len(x) <= MAX_ROWS
        hidden = torch.empty_like(x)
        inputs = x.contiguous(), index.contiguous(), position.contiguous()
        arguments = kernel_arguments(self._buffers, inputs, self._cache.tensors, hidden)
        self._kernel.launch_cooperative(self._launch.blocks, THREADS, arguments)
        return hidden


def source(config: TransformerConfig, launch: LaunchConfig, keys: Tensor) -> nvrtc.Source:
    """The kernel for a cache's keys."""
    return nvrtc.read_source(SOURCES, constants(config, launch, 1, keys, True))


def kernel_arguments(
    buffers: dict[str, Tensor],
    inputs: tuple[Tensor, Tensor, Tensor],
    cache: tuple[Tensor, ...],
    hidden: Tensor,
) -> TalkerArguments:
    """The tensors must stay alive until the kernel has run."""
    x, index, position = inputs
    keys, values = cache
    tensors = buffers | dict(
        input=x, index=index, position=position, keys=keys, values=values, hidden=hidden
    )
    pointers = (tensors[name].data_ptr() for name in _POINTERS)
    return TalkerArguments(*pointers, len(x))


def constants(
    config: TransformerConfig,
    launch: LaunchConfig,
    tiles: int,
    keys: Tensor,
    posted: bool = False,
) -> dict[str, int | float]:
    """Compile-time constants. `keys` (and values) of the cache may have any strides."""
    names = ("LAYER_STRIDE", "SLOT_STRIDE", "HEAD_STRIDE", "KV_STRIDE", "DIMENSION_STRIDE")
    strides = dict(zip(names, keys.stride(), strict=True))
    assert strides.pop("DIMENSION_STRIDE") == 1
    sizes = transformer_constants(config) | launch.constants(config, tiles, posted)
    return sizes | strides | dict(POSITIONS=SPAN)


def pack_weights(
    model: TalkerModel, rotary: tuple[Tensor, Tensor], launch: LaunchConfig
) -> dict[str, Tensor]:
    """Weights in the order of use, norms, and rotary cos and sin [positions, 2, d]."""
    blocks = list(model.layers)
    return dict(
        layers=weight_packing.pack_layers(blocks, launch),
        norms=weight_packing.stack_norms(blocks),
        rotary=torch.stack(rotary, 1).float(),
        last_norm=model.norm.weight.detach(),
    )


def build(
    model: TalkerModel, slots: Slots, rotary: tuple[Tensor, Tensor]
) -> PersistentTalker | None:
    """None where the kernel does not support the device or the sizes, or memory is short."""
    like = slots.hidden
    launch = find_launch(model.config, like)
    if launch is None:
        return None
    weights = sum(weight.nbytes for weight in model.layers.parameters())
    if MEMORY * weights > torch.cuda.mem_get_info(like.device)[0]:
        log.info("Too little memory for a second copy of the talker's weights.")
        return None
    return PersistentTalker(model, slots, rotary, launch)


def find_launch(config: TransformerConfig, like: Tensor) -> LaunchConfig | None:
    """How the layers are launched at once on the device and in the type of `like`; None: not."""
    device = torch.cuda.get_device_properties(like.device)
    recent = device.major >= 9 and like.dtype == torch.bfloat16
    here = like.device.index in (None, torch.cuda.current_device())  # where launches go
    if not recent or not here or config.hidden_size % 512:
        return None
    launch = find_launch_config(config, device.multi_processor_count, shared_memory(device))
    # of fewer blocks, one launch per layer is faster
    return launch if launch and launch.blocks >= MAX_BLOCKS else None
