"""Picks the device and dtype, and sets device-wide options."""

from __future__ import annotations

import ctypes
import os

import torch


def pick_device(name: str | None) -> torch.device:
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def limit_threads(device: torch.device) -> None:
    """On a CPU leave one core free for streaming: oversubscribed threads make a step up to five
    times as long."""
    if device.type == "cpu":
        torch.set_num_threads(max(1, min(torch.get_num_threads(), (os.cpu_count() or 2) - 1)))


def disable_tf32(device: torch.device) -> None:
    """Keep float32 convolutions exact on GPUs: TF32 can change the codes of a reference, and is
    not faster here."""
    if device.type == "cuda":
        torch.backends.cudnn.allow_tf32 = False


def pick_dtype(device: torch.device) -> torch.dtype:
    known = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if known else torch.float32


def load_library(error: type[Exception], *names: str) -> ctypes.CDLL:
    """Load the first library that exists among its names on different systems, or raise."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise error(f"{names[0]} is not installed")
