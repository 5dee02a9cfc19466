"""Prevents pauses of the whole process: garbage collection, and a late import.

A full garbage collection visits every object while all threads wait, a fifth of a second with the
page's libraries. Objects that exist when serving starts are permanent, so they are frozen. Models
that are unloaded later are freed by reference counts (tests/engine/worker/test_worker_faults.py).

Gradio imports matplotlib with the first message if it is installed, which takes a second. It is not
used here, so the import is blocked.

Python hands its lock from one thread to another every 5 ms. A step of the engine releases it for
most operations and wants it back, so the event loop's work could cost a step 5 ms an operation.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, Final

USUAL: Final = gc.get_threshold()
WHILE_STARTING: Final = (1_000_000, 50, 100)  # a server with its page has half as many objects
SWITCH_INTERVAL: Final = 0.0005  # seconds for which a thread may keep Python's lock


def collect_rarely() -> None:
    """Called before libraries are imported: a fifth of that time is the search for garbage in what
    is there to stay. What it would find is 2 MB."""
    gc.set_threshold(*WHILE_STARTING)


def settle() -> None:
    """Called once everything permanent is loaded, in a process that only serves."""
    if "gradio" in sys.modules:
        modules: dict[str, Any] = sys.modules
        modules.setdefault("matplotlib", None)  # makes the import fail at once
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.set_threshold(*USUAL)
    if "torch" in sys.modules:  # what loading a model left may hold a device's memory
        gc.collect()  # a third of a second
    gc.freeze()
