"""Time and memory that an attack may take, measured: of the whole process, decoders too."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

SECONDS, MEGABYTES = 5.0, 400  # of work, not on the wall; docs/reliability.md has what was measured
_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


class Worst:
    """The most that anything took so far, to be printed (`pytest -s`)."""

    def __init__(self, what: str) -> None:
        self.what, self.count, self.seconds, self.megabytes = what, 0, 0.0, 0
        _collect_all()
        gc.collect(1)  # what the test before left

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Fails when the block takes more than the bounds."""
        before, started = _start(), time.process_time()
        yield
        self._note(time.process_time() - started, _megabytes("VmHWM") - before)

    def _note(self, seconds: float, megabytes: int) -> None:
        self.count += 1
        self.seconds = max(self.seconds, seconds)
        self.megabytes = max(self.megabytes, megabytes)
        assert seconds < SECONDS, f"{seconds:.1f} s"
        assert megabytes < MEGABYTES, f"{megabytes} MB"

    def tell(self) -> None:
        print(
            f"\n{self.what}: {self.count} tried, "
            f"worst {self.seconds * 1e3:.0f} ms and {self.megabytes} MB"
        )


@cache
def _collect_all() -> None:
    """Once: with all that a worker of the tests keeps it takes half a second."""
    gc.collect()


def _start() -> int:
    """Megabytes in use now; the peak is counted from here on."""
    if _CLEAR.exists():
        _CLEAR.write_text("5")
    return _megabytes("VmRSS")


def _megabytes(name: str) -> int:
    """A field of the process's status; 0 without /proc, where only time is bounded."""
    if not _STATUS.exists():
        return 0
    found = re.search(rf"{name}:\s+(\d+) kB", _STATUS.read_text())
    return int(found[1]) // 1024 if found else 0
