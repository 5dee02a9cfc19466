"""What this machine may have, told by its files, without torch; where kernels are kept on it."""

from __future__ import annotations

import sys
from pathlib import Path

DEVICES = Path("/dev")
INSTALLED = __package__ != "engine"  # as timbre.engine, among other packages


def may_have_gpu() -> bool:
    """Whether there may be a GPU: files of its driver are there, or this is not Linux."""
    files = ("nvidia*", "nvhost*", "nvmap", "dxg", "kfd")
    return sys.platform != "linux" or any(any(DEVICES.glob(each)) for each in files)


def kernel_folder() -> Path | None:
    """Where compiled kernels are kept unless NUMBA_CACHE_DIR says so: beside their sources in a
    checkout (None), and where Timbre is installed, in the user's cache: pip would leave them."""
    if not INSTALLED:
        return None
    from platformdirs import user_cache_path

    return user_cache_path("timbre", appauthor=False) / "kernels"
