"""Memory of large blocks goes back to the system when they are freed, on glibc.

By itself glibc keeps blocks as large as the largest that was freed, so uploads of some megabytes
leave a heap with holes. A process without steps does not need them back at once.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

MMAP_THRESHOLD: Final = -3  # a parameter of mallopt
LARGE: Final = 1 << 20  # bytes


def return_large_blocks() -> None:
    """Called once, in a process that serves."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(MMAP_THRESHOLD, LARGE)
