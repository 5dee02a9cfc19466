"""The device that networks run on, and how it is set."""

from __future__ import annotations

import ctypes
import os

import torch


def pick_device(name: str | None) -> torch.device:
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def leave_a_core(device: torch.device) -> None:
    """On a CPU one core stays with the listeners: threads that wait for each other's turn on a
    busy core make a step five times as long."""
    if device.type == "cpu":
        torch.set_num_threads(max(1, min(torch.get_num_threads(), (os.cpu_count() or 2) - 1)))


def keep_float32(device: torch.device) -> None:
    """On GPUs convolutions in float32 are rounded by default, which can make other codes of a
    recording, and no quicker ones."""
    if device.type == "cuda":
        torch.backends.cudnn.allow_tf32 = False


def pick_dtype(device: torch.device) -> torch.dtype:
    known = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if known else torch.float32


def nvidia_library(error: type[Exception], *names: str) -> ctypes.CDLL:
    """The first that is there, by its names on one system or another, or the error."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise error(f"{names[0]} is not installed")
