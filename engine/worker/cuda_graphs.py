"""Captures device work in CUDA graphs and replays it by bucket: thousands of launches become one.

A graph always reads and writes the same memory, so inputs are copied to static tensors, and a graph
has one shape: the smallest bucket that holds the rows, padded. At first use the work runs eagerly,
which also warms up the libraries, and is captured; later it is replayed. If capture fails, work
stays eager. Knows no slots and no networks.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, TypeVar

import torch

from engine.worker.device import runs_cuda

Result = TypeVar("Result")

log = logging.getLogger("timbre")


class Capture(Protocol):
    """Runs work and returns a function that repeats it."""

    def __call__(self, work: Callable[[], Result]) -> Callable[[], Result]: ...


class GraphCapture:
    """Captures on one device; its graphs share a memory pool, so they must not overlap."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()
        self._first: torch.cuda.CUDAGraph | None = None  # keeps the pool alive
        self._failed = False

    def __call__(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Each replay overwrites the returned tensors."""
        if self._failed:
            return work
        try:
            return self._capture(work)
        except Exception as error:
            self._failed = True
            log.warning("CUDA graphs cannot be captured here (%s): steps run slower.", error)
            return work

    def _capture(self, work: Callable[[], Result]) -> Callable[[], Result]:
        graph, outside = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        self._stream.wait_stream(outside)
        with torch.cuda.stream(self._stream):
            # other threads load and encode at the same time
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                result = work()
            finally:
                graph.capture_end()
        outside.wait_stream(self._stream)
        self._first = self._first or graph

        def replay() -> Result:
            graph.replay()
            return result

        return replay


class GraphRunner:
    """Runs work by key, eagerly the first time and replayed afterwards.

    `sizes`: row buckets in ascending order; the largest is captured first, so that the others
    reuse its memory.
    """

    def __init__(self, capture: Capture, sizes: Sequence[int] = ()) -> None:
        self._capture, self.sizes = capture, sizes
        self._graphs: dict[Hashable, Callable[[], object]] = {}

    def __len__(self) -> int:
        return len(self._graphs)

    def bucket(self, count: int) -> int:
        """The smallest bucket that holds `count` rows."""
        return self.sizes[bisect_left(self.sizes, count)]

    def run(self, key: Hashable, work: Callable[[], Result]) -> Result:
        if key in self._graphs:
            return self._graphs[key]()  # type: ignore[return-value]
        result = work()
        self._graphs[key] = self._capture(work)
        return result

    def warm(self, run: Callable[[int], object]) -> None:
        """Capture every bucket."""
        for size in reversed(self.sizes):
            run(size)


def synchronize(device: torch.device) -> None:
    """Wait for all work launched so far."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def graph_capture(device: torch.device) -> Capture | None:
    """A capture function; None on devices without CUDA graphs."""
    return GraphCapture(device) if runs_cuda(device) else None
