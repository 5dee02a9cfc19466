"""What stops everybody's sound for a while in a server's process, kept from happening.

A full collection of Python's looks at every object there is, and all threads wait: a fifth of a
second with the page's libraries, and a crowd's sessions bring it about. What is there when
serving begins stays, so it need not be looked at again. Models that are unloaded later go by
their reference counts (tests/engine/worker/test_worker_faults.py).

Gradio looks for matplotlib twice for every message, and with the first one loads it where it is
installed, which takes a second. Nothing here draws with it.
"""

from __future__ import annotations

import gc
import sys
from typing import Any


def settle() -> None:
    """To be called when all is loaded that stays, in a process that does nothing but serve."""
    if "gradio" in sys.modules:
        modules: dict[str, Any] = sys.modules
        modules.setdefault("matplotlib", None)  # importing it fails at once
    gc.collect()
    gc.freeze()
