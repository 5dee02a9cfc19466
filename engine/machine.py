"""What this machine may have, told by its files, without torch."""

from __future__ import annotations

import sys
from pathlib import Path

DEVICES = Path("/dev")


def may_have_gpu() -> bool:
    """Whether there may be a GPU: files of its driver are there, or this is not Linux."""
    files = ("nvidia*", "nvhost*", "nvmap", "dxg", "kfd")
    return sys.platform != "linux" or any(any(DEVICES.glob(each)) for each in files)
