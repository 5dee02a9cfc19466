"""Starts Python for an engine's process, perhaps before it is known what the engine shall do.

Torch and the kernels take that process a second or two to import. Meanwhile this one reads its
settings and checks what was asked for. Knows no engine, and imports nothing that takes long.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Python's path is this process's, so that both run the same files.
BOOT = (
    "import sys; sys.path[:] = {path!r}; from {package}.process import main; main({fd}, {first!r})"
)
WORKER = f"{__package__.rpartition('.')[0]}.worker"
FIRST = {True: f"{WORKER}.early_imports", False: f"{WORKER}.early_gpu_imports"}  # for a CPU


class BootedProcess:
    """A process that waits to be told what to open, and this side's end of its socket.

    `first`: a module that it imports while it waits.
    """

    def __init__(self, first: str = "") -> None:
        self.first = first
        here, there = socket.socketpair()
        with there:
            boot = BOOT.format(path=sys.path, package=__package__, fd=there.fileno(), first=first)
            with _no_interrupts():
                self.process = subprocess.Popen(
                    [sys.executable, "-c", boot],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[there.fileno()],
                )
        self._socket = here

    def is_for(self, on_cpu: bool) -> bool:
        """Whether it imports what an engine there needs."""
        return self.first == FIRST[on_cpu]

    def take(self) -> int:
        """The end of the socket; who takes it looks after the process, too."""
        return self._socket.detach()

    def discard(self) -> None:
        """End the process unless it was taken."""
        if self._socket.fileno() >= 0:
            self._socket.close()
            self.process.kill()
            self.process.wait()


@contextmanager
def boot_ahead(on_cpu: bool) -> Iterator[BootedProcess]:
    """A process for `open_process`, which already imports what a CPU needs, or a GPU."""
    booted = BootedProcess(FIRST[on_cpu])
    try:
        yield booted
    finally:
        booted.discard()


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """What is started here never hears Ctrl-C, which this process hears a moment later."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
