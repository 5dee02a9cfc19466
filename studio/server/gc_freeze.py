"""Prevents pauses of the whole process: garbage collection, and a late import.

A full garbage collection visits every object while all threads wait, a fifth of a second with the
page's libraries. Objects that exist when serving starts are permanent, so they are frozen. Models
that are unloaded later are freed by reference counts (tests/engine/worker/test_worker_faults.py).

Gradio imports matplotlib with the first message if it is installed, which takes a second. It is not
used here, so the import is blocked.
"""

from __future__ import annotations

import gc
import sys
from typing import Any


def settle() -> None:
    """Called once everything permanent is loaded, in a process that only serves."""
    if "gradio" in sys.modules:
        modules: dict[str, Any] = sys.modules
        modules.setdefault("matplotlib", None)  # makes the import fail at once
    gc.collect()
    gc.freeze()
