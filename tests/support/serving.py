"""A server on a port of its own, and waiting for what should happen soon."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import uvicorn
from starlette.types import ASGIApp

PATIENCE = 60.0  # seconds that a busy machine may take
LOOK = 0.005  # seconds between two looks


def on_loop() -> bool:
    """Whether this runs on an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class ClosingServer(uvicorn.Server):
    """Cuts off at its end whoever is still connected: a socket left open is a warning."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # transports close in the loop's next turn


@contextmanager
def serving(app: ASGIApp, lifespan: Literal["on", "off"] = "off") -> Iterator[str]:
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan=lifespan)
    with running(config) as server:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"


@contextmanager
def running(
    config: uvicorn.Config, sockets: list[socket.socket] | None = None
) -> Iterator[uvicorn.Server]:
    """A server in a thread, on these sockets or on what its settings say."""
    server = ClosingServer(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets}, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    yield server
    server.should_exit = server.force_exit = True
    thread.join(30)


def wait_until(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until it is true. Looks are counted, since a machine that stood still has lost none."""
    for _ in range(round(seconds / LOOK)):
        if true():
            return
        time.sleep(LOOK)
    assert true(), "it did not happen in time"


class OwnTime:
    """Seconds in which this process ran, told by its own short waits: a machine may stand still."""

    def __enter__(self) -> OwnTime:
        self._over, self._looks = threading.Event(), 0
        self._thread = threading.Thread(target=self._count, daemon=True)
        self._thread.start()
        return self

    def _count(self) -> None:
        while not self._over.wait(LOOK):
            self._looks += 1

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        return LOOK * self._looks
