"""A server that ends well: asked to stop, it takes nobody new and serves who is here to the end.

SIGTERM is what service managers and containers send; a second one, or Ctrl-C, stops at once.
Knows no engine: it is handed the call that drains it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

import uvicorn


class DrainingServer(uvicorn.Server):
    """Answers while it drains: /ready says that it closes, new requests are refused plainly."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], object]) -> None:
        super().__init__(config)
        self._drain = drain
        self._draining = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig != signal.SIGTERM or self._draining:
            return super().handle_exit(sig, frame)
        self._draining = True
        threading.Thread(target=self._end, name="timbre-drain", daemon=True).start()
        return None

    def _end(self) -> None:
        try:
            self._drain()
        finally:
            self.should_exit = True
