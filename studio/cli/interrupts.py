"""Ctrl-C, at whatever moment: a word where something was begun, none where nothing was.

Python raises KeyboardInterrupt, also between two imports, and prints a traceback where nobody
expects one. So until a command runs, and once it has, the system ends the process, as it does with
programs that do not listen; a shell sees the same exit code.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def end_at_once() -> None:
    """End at once on Ctrl-C while the program starts; where SIGINT is ignored, it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def raised() -> Iterator[None]:
    """Meanwhile Ctrl-C raises KeyboardInterrupt, so that what was begun ends in order."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
