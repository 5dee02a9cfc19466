"""Work on the device that is recorded once and replayed: thousands of launches become one.

A recording reads and writes the same memory every time. What changes between two replays
lies in tensors that stay; a graph belongs to one shape. The first time, work is run as it
is written, which also warms up whatever it calls, and recorded; from then on it is replayed.
Where nothing can be recorded it goes on as it is written. Knows no slots and no networks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

import torch

Made = TypeVar("Made")

log = logging.getLogger("timbre")


class Record(Protocol):
    """Turns work into something that does the same again."""

    def __call__(self, work: Callable[[], Made]) -> Callable[[], Made]: ...


class Recorder:
    """Records on one device; all its graphs share memory, so they run one after the other."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()
        self._first: torch.cuda.CUDAGraph | None = None  # keeps the pool
        self._failed = False

    def __call__(self, work: Callable[[], Made]) -> Callable[[], Made]:
        """What the work returns is filled anew by every replay."""
        if self._failed:
            return work
        try:
            return self._record(work)
        except Exception as error:
            self._failed = True
            log.warning("Steps cannot be recorded here (%s): they run slower.", error)
            return work

    def _record(self, work: Callable[[], Made]) -> Callable[[], Made]:
        graph, outside = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        self._stream.wait_stream(outside)
        with torch.cuda.stream(self._stream):
            # other threads load and encode meanwhile
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                made = work()
            finally:
                graph.capture_end()
        outside.wait_stream(self._stream)
        self._first = self._first or graph

        def replay() -> Made:
            graph.replay()
            return made

        return replay


class GraphCache:
    """Work by key: as it is written the first time, replayed from then on."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._known: dict[Hashable, Callable[[], object]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def run(self, key: Hashable, work: Callable[[], Made]) -> Made:
        if key in self._known:
            return self._known[key]()  # type: ignore[return-value]
        made = work()
        self._known[key] = self._record(work)
        return made


def finish(device: torch.device) -> None:
    """Until all that was launched is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def recorder(device: torch.device) -> Record | None:
    """None where there is nothing to record with."""
    return Recorder(device) if device.type == "cuda" else None
