"""A connection that a test cuts, slows down and moves to another server, and a studio behind it."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from gradio.context import Context

from engine import Library
from engine.testing import Costs, FakeEngine
from studio.context import open_studio
from studio.takes.take_store import Takes
from tests.support.browser import OpenPage, Tap, free_door, serve_page


class Wire:
    """A port of this machine that leads to another one, while it is whole."""

    def __init__(self, url: str) -> None:
        self._target = _port(url)
        self._whole = True
        self.delay = 0.0  # seconds that each piece takes longer
        self._ends: set[socket.socket] = set()
        self._door = free_door()
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        """End open connections, and accept no new one."""
        self._whole = False
        for end in list(self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self, url: str = "") -> None:
        """Let them through again; `url`: to another server."""
        self._target = _port(url) if url else self._target
        self._whole = True

    def close(self) -> None:
        self.cut()
        self._door.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._door.accept()
                threading.Thread(target=self._connect, args=(caller,), daemon=True).start()

    def _connect(self, caller: socket.socket) -> None:
        if not self._whole:
            caller.close()
            return
        with (
            caller,
            suppress(OSError),
            socket.create_connection(("127.0.0.1", self._target)) as far,
        ):
            self._ends |= {caller, far}
            back = threading.Thread(target=self._pass, args=(far, caller), daemon=True)
            back.start()
            self._pass(caller, far)
            back.join()
            self._ends -= {caller, far}

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65_536):
                time.sleep(self.delay)
                sink.sendall(piece)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def _port(url: str) -> int:
    return int(url.rsplit(":", 1)[1])


class Servers:
    """Servers on one data folder, and the wire that leads to one of them."""

    def __init__(
        self, folder: Path, stack: ExitStack, guests: bool = True, step: float = 0.02
    ) -> None:
        self.takes = Takes(folder / "takes")
        self._folder, self._stack, self._guests, self._step = folder, stack, guests, step
        self._engine: FakeEngine | None = None
        self.wire = Wire(self.start())
        stack.callback(self.wire.close)

    def start(self) -> str:
        Context.id = 0  # as in a process of its own
        engine = self._stack.enter_context(FakeEngine(costs=Costs(step=self._step)))
        library = Library(self._folder / "voices")
        studio = open_studio(engine, library, self.takes, guests=self._guests)
        return self._stack.enter_context(serve_page(studio))


# Gradio imports what hidden tabs need after the page is ready; a cut before would break that off.
QUIET = """() => {
    const count = performance.getEntriesByType("resource").length, now = performance.now()
    if (window.counted?.count !== count) window.counted = {count, now}
    return now - window.counted.now > 1000
}"""


SEEN = "document.querySelector('.timbre-unseen :is(input, textarea)')?.value"


def opened(open_page: OpenPage, url: str, quiet: bool = True) -> Tap:
    """A page that is ready; with `quiet` also for a cut."""
    page = open_page(url)
    tap = Tap(page, 0)
    page.wait_for_function(SEEN)
    if quiet:
        page.wait_for_function(QUIET, polling=100)
    return tap


def fill(page: Any, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).locator("visible=true").fill(text)
