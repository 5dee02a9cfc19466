"""Tensors whose memory is mapped as slots need it.

All addresses are reserved from the start, so shape, strides and pointers never change, as CUDA
graphs and kernels require. Memory is mapped in pages. Unmapped addresses must not be accessed, not
even read and masked: an illegal access makes the device unusable for the process.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod

import torch
from torch import Tensor

from engine.worker.state.cuda_vmm import Driver, DriverError, Span, cuda_driver, growable

__all__ = ["GrowingTensor", "Memory", "Pages", "growable"]

log = logging.getLogger("timbre")


class Pages:
    """Which pages of a storage [outer, slots, positions, width] are mapped; width in bytes.

    A slot has a run of positions in each of `outer`. Runs need not start or end at a page
    boundary: a page may belong to several.
    """

    def __init__(self, outer: int, slots: int, positions: int, width: int, page: int) -> None:
        self.held = [0] * slots  # positions of each slot that have memory
        self.page, self.positions = page, positions
        self._width, self._run = width, positions * width
        self.size = outer * slots * self._run
        self._mapped = bytearray(-(-self.size // page))

    @property
    def bytes(self) -> int:
        return self._mapped.count(1) * self.page

    @property
    def reserved(self) -> int:
        """Bytes of all pages."""
        return len(self._mapped) * self.page

    def missing(self, row: int, positions: int) -> list[range]:
        """Unmapped pages that a slot's first positions need, as contiguous ranges."""
        if not (0 <= row < len(self.held) and positions <= self.positions):
            raise ValueError(f"Slot {row} cannot have {positions} positions.")
        pieces: list[range] = []
        if positions <= self.held[row]:
            return pieces
        for page in self._needed(row, positions):
            last = pieces[-1] if pieces else range(0)
            if self._mapped[page] or page < last.stop:
                continue
            if page == last.stop and pieces:
                pieces[-1] = range(last.start, page + 1)
            else:
                pieces.append(range(page, page + 1))
        return pieces

    def add(self, row: int, positions: int, pieces: Iterable[range]) -> None:
        """Record that pages are mapped for a slot's first positions."""
        for piece in pieces:
            self._mapped[piece.start : piece.stop] = b"\1" * len(piece)
        if positions > self.held[row]:
            self.held[row] = self._covered(row, positions)

    def beyond(self, row: int, kept: int) -> list[range]:
        """Pages that belong to a slot alone and are past its first positions, by run."""
        starts = [self._end(start, kept) for start in self._starts(row)]
        ends = [(start + self._run) // self.page for start in self._starts(row)]
        return [range(first, last) for first, last in zip(starts, ends, strict=True)]

    def remove(self, row: int, kept: int, pages: Iterable[range]) -> None:
        """Record that pages are unmapped; the slot keeps its first positions."""
        for piece in pages:
            self._mapped[piece.start : piece.stop] = bytes(len(piece))
        self.held[row] = min(self.held[row], self._covered(row, kept))

    def clear(self) -> None:
        self._mapped = bytearray(len(self._mapped))
        self.held = [0] * len(self.held)

    def _starts(self, row: int) -> range:
        """The first byte of every run of a slot."""
        return range(row * self._run, self.size, len(self.held) * self._run)

    def _needed(self, row: int, positions: int) -> Iterator[int]:
        """Pages in ascending order; a page that two runs share comes twice."""
        for start in self._starts(row):
            yield from range(start // self.page, self._end(start, positions))

    def _end(self, start: int, positions: int) -> int:
        """The page after the last one of these positions."""
        return -(-(start + positions * self._width) // self.page)

    def _covered(self, row: int, positions: int) -> int:
        """Positions that fit into the pages of `positions`, in every run."""
        ends = ((s, self._end(s, positions) * self.page) for s in self._starts(row))
        return min(self.positions, *((end - start) // self._width for start, end in ends))


class Memory:
    """Reserved addresses, and the memory mapped to some of them."""

    def __init__(self, driver: Driver, size: int) -> None:
        self._driver, self._size = driver, size
        self._pieces: list[tuple[int, int, int]] = []  # address, size, handle
        self._closed = False
        with driver.current_context():
            self.base = driver.reserve(size)

    def grow(self, spans: Sequence[tuple[int, int]]) -> None:
        """Map zeroed memory to unmapped spans (offset, size): to all, or none."""
        if self._closed:
            raise ValueError("This memory was given back.")
        kept = len(self._pieces)
        with self._driver.current_context():
            try:
                for offset, size in spans:
                    self._map(self.base + offset, size)
            except BaseException:
                self._release_after(kept)  # not used yet
                raise
            self._zero(kept)

    def shrink(self, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Wait for the device, release pieces that are inside spans (offset, size), and return
        them."""
        bounds = [(self.base + offset, self.base + offset + size) for offset, size in spans]
        given = [
            piece
            for piece in self._pieces
            if any(low <= piece[0] and piece[0] + piece[1] <= high for low, high in bounds)
        ]
        if given:
            with self._driver.current_context():
                self._driver.wait()
                for piece in given:
                    self._release(piece)
        return [(address - self.base, size) for address, size, _ in given]

    def _release(self, piece: tuple[int, int, int]) -> None:
        address, size, handle = piece
        self._pieces.remove(piece)
        self._driver.unmap(address, size)
        self._driver.release(handle)

    def close(self) -> None:
        """Wait for the device, then release everything."""
        if self._closed:
            return
        self._closed = True
        try:
            with self._driver.current_context():
                self._driver.wait()
                self._release_after(0)
                self._driver.free(self.base, self._size)
        except DriverError as error:  # the device has failed
            log.warning("GPU memory was not released: %s", error)

    def _map(self, address: int, size: int) -> None:
        handle = self._driver.create(size)
        try:
            self._driver.map(address, size, handle)
        except BaseException:
            self._driver.release(handle)
            raise
        self._pieces.append((address, size, handle))
        self._driver.set_access(address, size)

    def _zero(self, kept: int) -> None:
        """Set pieces after the first `kept` to zero; release them if that fails."""
        try:
            for address, size, _ in self._pieces[kept:]:
                self._driver.zero(address, size)
        except BaseException:
            self._driver.wait()  # for zeroing in flight
            self._release_after(kept)
            raise

    def _release_after(self, kept: int) -> None:
        """Release pieces after the first `kept`."""
        for piece in reversed(self._pieces[kept:]):
            self._release(piece)


class GrowingTensor:
    """A tensor [*outer, slots, positions, *inner] whose memory grows slot by slot.

    `slots` is the slots' dimension; positions follow it, so that a slot's first positions are
    contiguous. Other orders are views. `full` is called when memory runs out, before one retry.

    The memory lives as long as this object or any view of the tensor, or until `close`. One thread
    grows it; another may create and close it, but not while it grows.
    """

    tensor: Tensor

    def __init__(
        self,
        shape: Sequence[int],
        slots: int,
        dtype: torch.dtype,
        device: torch.device,
        driver: Driver | None = None,
        full: Callable[[], None] = torch.cuda.empty_cache,
    ) -> None:
        driver, self._full = driver or cuda_driver(device), full
        outer, inner = shape[:slots], shape[slots + 2 :]
        width = prod(inner) * dtype.itemsize
        self._pages = Pages(prod(outer), shape[slots], shape[slots + 1], width, driver.page)
        self._memory = Memory(driver, self._pages.reserved)
        span = Span(self._memory.base, self._pages.size)
        self._finalizer = weakref.finalize(span, self._memory.close)
        self._finalizer.atexit = False  # the driver releases it at exit
        # Torch and Triton query the driver for a tensor's pointer, so the first page of the tensor
        # and of each part of `outer` must be mapped. All of them are in slot 0.
        self.ensure(0, 1)
        self.tensor = driver.tensor(span).view(dtype).view(*shape)

    @property
    def bytes(self) -> int:
        """Bytes of mapped memory."""
        return self._pages.bytes

    @property
    def held(self) -> Sequence[int]:
        """Positions of each slot that have memory."""
        return self._pages.held

    def ensure(self, row: int, positions: int) -> None:
        """Map zeroed memory for the first positions of a slot.

        Raises torch.OutOfMemoryError without a change. Not allowed during a graph capture.
        """
        if positions <= self._pages.held[row]:
            return
        pieces, page = self._pages.missing(row, positions), self._pages.page
        spans = [(piece.start * page, len(piece) * page) for piece in pieces]
        try:
            self._memory.grow(spans)
        except torch.OutOfMemoryError:
            self._full()
            self._memory.grow(spans)
        self._pages.add(row, positions, pieces)

    def shrink(self, rows: Sequence[int], positions: int) -> None:
        """Release memory of slots past their first positions. Only work in flight may still read
        it."""
        page = self._pages.page
        for row in rows:
            beyond = self._pages.beyond(row, positions)
            gone = self._memory.shrink(
                [(pages.start * page, len(pages) * page) for pages in beyond]
            )
            ranges = [range(at // page, (at + size) // page) for at, size in gone]
            self._pages.remove(row, positions, ranges)

    def close(self) -> None:
        """Release the memory. The tensor and its views must not be used any more."""
        self._finalizer()
        self._pages.clear()
