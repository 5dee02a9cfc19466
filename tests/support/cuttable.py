"""A way to a server that can be cut, changed over to another server, and mended."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress


class Wire:
    """A port of this machine that leads to another one, while it is whole."""

    def __init__(self, url: str) -> None:
        self._target = _port(url)
        self._whole = True
        self.delay = 0.0  # seconds that each piece takes longer
        self._ends: set[socket.socket] = set()
        self._door = socket.create_server(("127.0.0.1", 0))
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
