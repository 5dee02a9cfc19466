"""Computes how many slots fit into the device's memory."""

from __future__ import annotations

import logging
from importlib.util import find_spec

import torch

from engine.errors import OutOfMemory
from engine.model.configs import TalkerConfig
from engine.worker.state.slot_state import INITIAL_POSITIONS, Slots
from engine.worker.state.virtual_memory import growable

RESERVED_SHARE = 0.1  # of a GPU's memory, for graphs, encoders and libraries
MAX_RESERVED = 3 << 30  # bytes

log = logging.getLogger("timbre")


def slots_for(
    config: TalkerConfig,
    wanted: int,
    positions: int,
    device: torch.device,
    dtype: torch.dtype,
    talkers: int = 1,
    grows: bool = False,
) -> int:
    """The number of slots: `wanted`, or as many as fit into this talker's share of free memory.

    `talkers`: how many are still to be loaded, this one included. If slots grow, memory for one
    full slot is kept free. Raises OutOfMemory if none fits.
    """
    if device.type != "cuda":
        return wanted
    each, whole = (slot_bytes(config, positions, dtype, way) for way in (grows, False))
    free, total = _memory(device)
    slots = fitting_slots(wanted, each, free // talkers - (whole - each), total)
    log.info(
        "%d slots of %d positions take %.1f GiB of this GPU, and %.1f when all are full.",
        slots, positions, (slots + 1) * each / 2**30, (slots + 1) * whole / 2**30,
    )  # fmt: skip
    if slots < wanted:
        log.warning("%d slots do not fit into memory. More fit with a smaller max_seq_len.", wanted)
    return slots


def slot_bytes(
    config: TalkerConfig, positions: int, dtype: torch.dtype, grows: bool = False
) -> int:
    """Bytes of one slot; if it grows, its initial size."""
    whole, first = (
        Slots.allocate(config, 0, count, torch.device("meta"), dtype)
        for count in (positions, min(positions, INITIAL_POSITIONS))
    )
    return whole.bytes - grows * (whole.cache.bytes - first.cache.bytes)


def can_grow(device: torch.device) -> bool:
    """Whether slots can grow: only the Triton kernels never read past a row's length."""
    return find_spec("triton") is not None and growable(device)


def check_reserve(device: torch.device) -> None:
    """Raises torch.OutOfMemoryError if growing slots would use the memory of other work."""
    for look in (0, 1):
        free, total = torch.cuda.mem_get_info(device)
        if free >= min(MAX_RESERVED, int(RESERVED_SHARE * total)) // 2:
            return
        if look == 0:
            torch.cuda.empty_cache()
    raise torch.OutOfMemoryError("The remaining memory is reserved for other work.")


def fitting_slots(wanted: int, each: int, free: int, total: int) -> int:
    """How many slots of `each` bytes fit, besides the padding row."""
    left = min(MAX_RESERVED, int(RESERVED_SHARE * total))
    fitting = (free - left) // each - 1
    if fitting < 1:
        raise OutOfMemory(
            "A slot takes {each:.0f} MiB, and {free:.0f} MiB are free. "
            "Use fewer positions, a smaller model, or free the device.",
            each=each / 2**20,
            free=free / 2**20,
        )
    return min(wanted, fitting)


def _memory(device: torch.device) -> tuple[int, int]:
    """Free bytes, including those cached by torch's allocator, and total bytes."""
    free, total = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + kept, total
