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


def start_lean() -> None:
    """Called before libraries are imported: a fifth of that time is the search for garbage in what
    is there to stay (it would find 2 MB), a tenth of a second httpx's own command line."""
    gc.set_threshold(*WHILE_STARTING)
    _leave_out("httpx._main")


def _leave_out(module: str) -> None:
    """An import of it fails at once, which those who try it expect."""
    modules: dict[str, Any] = sys.modules
    modules.setdefault(module, None)


def settle() -> None:
    """Called once everything permanent is loaded, in a process that only serves."""
    if "gradio" in sys.modules:
        _leave_out("matplotlib")
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.set_threshold(*USUAL)
    if "torch" in sys.modules:  # what loading a model left may hold a device's memory
        gc.collect()  # a third of a second
    gc.freeze()
