"""A server that ends well: asked to stop, it takes nobody new and serves who is here to the end.

SIGTERM is what service managers and containers send, SIGHUP what a terminal does that is closed; a
second one, or Ctrl-C, stops at once. Under nohup SIGHUP stays ignored.
Knows no engine: it is handed the call that drains it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import uvicorn

HANG_UP: Final = getattr(signal, "SIGHUP", None)  # not on Windows


class DrainingServer(uvicorn.Server):
    """Answers while it drains: /ready says that it closes, new requests are refused plainly."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], object]) -> None:
        super().__init__(config)
        self._drain = drain
        self._draining = False

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
            return super().handle_exit(sig, frame)
        self._draining = True
        threading.Thread(target=self._end, name="timbre-drain", daemon=True).start()
        return None

    def _end(self) -> None:
        try:
            self._drain()
        finally:
            self.should_exit = True
