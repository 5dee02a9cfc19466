"""Threads that run one kernel together, and the barrier between its parts.

A kernel is called by every thread with its number. It ends with a barrier, so when the first thread
returns, the work of all is done. Knows no networks.
"""

from __future__ import annotations

import _thread
import math
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.worker.kernels.cpu import llvm
from engine.worker.kernels.cpu.compiler import compiled

Kernel: TypeAlias = Callable[[int, int], object]  # called with the thread's number, and how many
THREADS = (1, 2, 4, 6, 8, 12, 16, 24, 32)  # that are tried
TRIALS, MOST_TRIALS = 3, 9
LOST_A_SECOND = 100  # cores, on a quiet machine 20 to 60; beside another process 500 and more
SPINS = 2000  # before a waiting thread offers its core to others
ARRIVED, OPENINGS, SYNC = 0, 8, 16  # places in a sync: each on a cache line of its own
_yield_core = types.ExternalFunction(
    "SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32()
)


@dataclass
class _Work:
    """What a team's threads share. They hold no reference to the team, so they end with it."""

    kernel: Kernel | None = None  # None: they are to end
    threads: int = 1


class ThreadTeam:
    """The calling thread and `size - 1` others, which sleep between kernels."""

    def __init__(self, size: int) -> None:
        self.size = self.most = size  # `most`: that a kernel takes now, as others have the cores
        self._work, self._running = _Work(), threading.Lock()
        self._wake = [_thread.allocate_lock() for _ in range(size - 1)]
        self._end = weakref.finalize(self, _release, self._wake)
        self._end.atexit = False
        for number, lock in enumerate(self._wake, 1):
            lock.acquire()
            threading.Thread(
                target=_serve, args=(number, lock, self._work), name=f"kernel {number}", daemon=True
            ).start()

    def run(self, kernel: Kernel, threads: int) -> None:
        """Call the kernel on the first `threads` threads; it ends with a barrier."""
        with self._running:
            threads = min(threads, self.most, 1 + len(self._wake))
            self._work.kernel, self._work.threads = kernel, threads
            try:
                _release(self._wake[: threads - 1])
                kernel(0, threads)
            finally:
                self._work.kernel = None  # it may hold the team

    def close(self) -> None:
        """End the threads."""
        with self._running:
            self._end()
            self._wake = []


def _serve(number: int, lock: Any, work: _Work) -> None:
    """The life of a thread."""
    while True:
        lock.acquire()
        if work.kernel is None:
            return
        work.kernel(number, work.threads)


def _release(locks: Sequence[Any]) -> None:
    for lock in locks:
        lock.release()


def fastest(run: Callable[[int], object], most: int) -> int:
    """How many threads, at most `most`, `run` is fastest with: a product of one row is so short
    that waiting for many threads can take longer than it. While others use the cores no count can
    be told from another, and all threads are taken: what is found is kept for later starts."""
    seconds = tried(run, counts_to(most)) if most > 1 else {}
    if not seconds or math.inf in seconds.values():
        return most
    return min(seconds, key=seconds.__getitem__)


def counts_to(most: int) -> list[int]:
    """The numbers of threads that are tried where there are so many."""
    return sorted({most, *(count for count in THREADS if count < most)})


def tried(run: Callable[[int], object], counts: Iterable[int]) -> dict[int, float]:
    """Seconds of a run by number of threads; infinite: others had the cores meanwhile, and no more
    are tried, since listeners may be among them. Runs on many threads, which are short, come first.
    """
    found: dict[int, float] = {}
    for count in sorted(counts, reverse=True):
        found[count] = _undisturbed(run, count)
        if math.isinf(found[count]):
            break
    return dict(sorted(found.items()))


def timed(run: Callable[..., object], *given: object) -> tuple[float, bool]:
    """Seconds of a run, and whether this process hardly lost a core meanwhile."""
    lost, seconds = _lost_cores(), _seconds(run, *given)
    return seconds, _lost_cores() - lost <= 1 + LOST_A_SECOND * seconds


def _undisturbed(run: Callable[[int], object], count: int) -> float:
    """The least of some runs' seconds, of those that hardly lost a core; infinite: each did."""
    found: list[float] = []
    for _ in range(MOST_TRIALS):
        seconds, quiet = timed(run, count)
        if quiet:
            found.append(seconds)
        if len(found) == TRIALS:
            break
    return min(found, default=math.inf)


def _lost_cores() -> int:
    """How often this process has lost a core to another one; 0 where no system counts that."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _seconds(run: Callable[..., object], *given: object) -> float:
    begun = perf_counter()
    run(*given)
    return perf_counter() - begun


@intrinsic
def _arrive(typing: Any, sync: Any) -> Any:
    """Count one more thread; how many had come before."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        arrived = _pointer(context, builder, signature, given, ARRIVED)
        return builder.atomic_rmw("add", arrived, llvm.LONG(1), "seq_cst")

    return types.int64(sync), generate


@intrinsic
def _openings(typing: Any, sync: Any) -> Any:
    """How many times the barrier has opened."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        openings = _pointer(context, builder, signature, given, OPENINGS)
        return builder.load_atomic(openings, "seq_cst", 8)

    return types.int64(sync), generate


@intrinsic
def _open(typing: Any, sync: Any) -> Any:
    """Count from zero again, then open the barrier."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        arrived, openings = (
            _pointer(context, builder, signature, given, at) for at in (ARRIVED, OPENINGS)
        )
        builder.store_atomic(llvm.LONG(0), arrived, "seq_cst", 8)
        return builder.atomic_rmw("add", openings, llvm.LONG(1), "seq_cst")

    return types.int64(sync), generate


def _pointer(context: Any, builder: Any, signature: Any, given: Any, at: int) -> Any:
    """A pointer to number `at` of the array that an intrinsic was given."""
    (array,) = llvm.arrays(context, builder, signature, given, 0)
    return builder.gep(array.data, [llvm.LONG(at)])


def new_sync() -> NDArray[np.int64]:
    """The counters of a team's barriers. They are zero between two barriers, so kernels with
    different numbers of threads can share them."""
    return np.zeros(SYNC, np.int64)


@compiled()
def barrier(sync, threads):
    """Wait until all threads have come here."""
    if threads == 1:
        return
    before = _openings(sync)
    if _arrive(sync) == threads - 1:
        _open(sync)
        return
    spins = 0
    while _openings(sync) == before:
        spins += 1
        if spins > SPINS:
            _yield_core()
