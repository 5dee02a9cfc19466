"""The priority of threads that work beside the engine's steps."""

from __future__ import annotations

import os
import sys
import threading
from typing import Final

NICENESS: Final = 10  # background work yields to the thread of the steps


def lower_thread_priority() -> None:
    """Lower this thread's priority; only Linux has priorities per thread."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        priority = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(priority + NICENESS, 19))
