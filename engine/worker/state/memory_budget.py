"""How many slots a talker gets: what one takes, and what the device has left for them."""

from __future__ import annotations

import logging
from importlib.util import find_spec

import torch

from engine.errors import OutOfMemory
from engine.model.configs import TalkerConfig
from engine.worker.state.slot_state import FIRST, Slots
from engine.worker.state.virtual_memory import growable

LEFT = 0.1  # of a GPU's memory, for recordings, encoders and what the libraries want
MOST_LEFT = 3 << 30  # bytes

log = logging.getLogger("timbre")


def slots_for(
    config: TalkerConfig,
    wanted: int,
    positions: int,
    device: torch.device,
    dtype: torch.dtype,
    among: int = 1,
    grows: bool = False,
) -> int:
    """As many as are wanted, or as many as fit into a fair part of what is free.

    `among`: talkers that it is for, those still to come. Where slots grow there is room for one
    with all its positions besides. Raises OutOfMemory where none fits.
    """
    if device.type != "cuda":
        return wanted
    each, whole = (slot_bytes(config, positions, dtype, way) for way in (grows, False))
    free, total = _memory(device)
    slots = affordable(wanted, each, free // among - (whole - each), total)
    log.info(
        "%d slots of %d positions take %.1f GiB of this GPU, and %.1f when all are full.",
        slots, positions, (slots + 1) * each / 2**30, (slots + 1) * whole / 2**30,
    )  # fmt: skip
    if slots < wanted:
        log.warning("There is no room for %d slots. More fit with fewer positions.", wanted)
    return slots


def slot_bytes(
    config: TalkerConfig, positions: int, dtype: torch.dtype, grows: bool = False
) -> int:
    """Of one slot; where it grows, before it does."""
    whole, first = (
        Slots.allocate(config, 0, count, torch.device("meta"), dtype)
        for count in (positions, min(positions, FIRST))
    )
    return whole.bytes - grows * (whole.cache.bytes - first.cache.bytes)


def grows_on(device: torch.device) -> bool:
    """Whether slots can have memory as they need it: kernels read no further, plain torch does."""
    return find_spec("triton") is not None and growable(device)


def check_left(device: torch.device) -> None:
    """Raises torch.OutOfMemoryError where slots would grow into what other work needs."""
    for look in (0, 1):
        free, total = torch.cuda.mem_get_info(device)
        if free >= min(MOST_LEFT, int(LEFT * total)) // 2:
            return
        if look == 0:
            torch.cuda.empty_cache()
    raise torch.OutOfMemoryError("What is left of the memory is for other work.")


def affordable(wanted: int, each: int, free: int, total: int) -> int:
    """Slots of so many bytes each, and a spare one, on a device with this memory."""
    left = min(MOST_LEFT, int(LEFT * total))
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
    """Bytes free, those kept by the allocator among them, and in all."""
    free, total = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + kept, total
