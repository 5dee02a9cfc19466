"""A server that ends well: asked to stop, it takes nobody new and serves who is here to the end.

SIGTERM is what service managers and containers send, SIGHUP what a terminal does that is closed; a
second one, or Ctrl-C, stops at once. Under nohup SIGHUP stays ignored.

When its grace is over the process is gone, whatever its threads and children do: one that waits for
a thread would never end. Knows no engine: it is handed the call that drains it.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn

HANG_UP: Final = getattr(signal, "SIGHUP", None)  # not on Windows
CLOSING: Final = 5.0  # of the grace: seconds for answers that were cut off, connections, engine
AT_ONCE: Final = 8.0  # seconds for the same where nobody is waited for
LEAST: Final = 2.0  # seconds, if the grace is shorter
HELD: Final = 0.5  # seconds later, for a thread that holds Python's lock


class DrainingServer(uvicorn.Server):
    """Answers while it drains: /ready says that it closes, new requests are refused plainly."""

    def __init__(
        self, config: uvicorn.Config, drain: Callable[[float], object], grace: float
    ) -> None:
        """`drain` waits so many seconds for the requests that run, then ends them."""
        super().__init__(config)
        self._drain, self._grace = drain, grace
        self._draining = False
        self._deadline = Deadline()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        with super().capture_signals(), self._capturing_hang_up():
            yield

    @contextmanager
    def _capturing_hang_up(self) -> Generator[None, None, None]:
        on_main = threading.current_thread() is threading.main_thread()
        if HANG_UP is None or not on_main or signal.getsignal(HANG_UP) is signal.SIG_IGN:
            yield
            return
        before = signal.signal(HANG_UP, self.handle_exit)
        try:
            yield
        finally:
            signal.signal(HANG_UP, before)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig not in (signal.SIGTERM, HANG_UP) or self._draining:
            self._deadline.set(AT_ONCE)
            return super().handle_exit(sig, frame)
        self._draining = True
        self._deadline.set(max(LEAST, self._grace))
        threading.Thread(target=self._end, name="timbre-drain", daemon=True).start()
        return None

    def _end(self) -> None:
        try:
            self._drain(self._grace - min(CLOSING, self._grace / 2))
        finally:
            self.should_exit = True


class Deadline:
    """Ends the process and its children at a moment, if it has not ended by itself."""

    def __init__(self) -> None:
        self._due = float("inf")

    def set(self, seconds: float) -> None:
        """Again: the earlier moment holds."""
        due = time.monotonic() + seconds
        if due >= self._due:
            return
        self._due = due
        threading.Thread(target=self._wait, args=(due,), name="timbre-end", daemon=True).start()
        # Needs no lock of Python's, which a thread of compiled code may hold.
        faulthandler.dump_traceback_later(seconds + HELD, exit=True, file=2)

    def _wait(self, due: float) -> None:
        time.sleep(max(0.0, due - time.monotonic()))
        if due == self._due:
            end_now()


def end_now() -> None:
    """End this process and what it has started; says what was still going on."""
    names = sorted(thread.name for thread in threading.enumerate() if thread.name != "timbre-end")
    children = [*descendants(os.getpid())]
    words = f"The grace is over: ended with {', '.join(names)}; processes {children}.\n"
    with suppress(OSError):
        os.write(2, words[:1000].encode())
    for child in children:
        with suppress(OSError):
            os.kill(child, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    os._exit(0)


def descendants(process: int) -> Iterator[int]:
    """The processes that a process has started, and theirs; none where the system has no /proc."""
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(each) for each in tasks.read_text().split()]
        except OSError:  # it has ended
            continue
        for child in children:
            yield child
            yield from descendants(child)
