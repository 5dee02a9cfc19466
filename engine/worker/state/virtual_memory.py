"""Tensors whose memory is there as far as slots have needed it.

All addresses are reserved from the start, so shape, strides and pointers stay for ever, as
recordings and kernels want it. Memory comes in pages that are mapped when a slot gets that
far, and stays until the end. What has no memory must not be touched, not even read and
masked: the device stops for good with an illegal access.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod

import torch
from torch import Tensor

from engine.worker.state.cuda_vmm import Driver, DriverError, Span, cuda_driver, growable

__all__ = ["Growing", "Memory", "Pages", "growable"]

log = logging.getLogger("timbre")


class Pages:
    """Which pages of storage [outer, slots, positions, width] are there; the width is in bytes.

    A slot has a run of positions in each of `outer`. Runs need not begin or end with a page:
    one page may belong to several.
    """

    def __init__(self, outer: int, slots: int, positions: int, width: int, page: int) -> None:
        self.held = [0] * slots  # how many positions of a slot are there
        self.page, self.positions = page, positions
        self._width, self._run = width, positions * width
        self.size = outer * slots * self._run
        self._there = bytearray(-(-self.size // page))

    @property
    def bytes(self) -> int:
        return self._there.count(1) * self.page

    @property
    def reserved(self) -> int:
        """Bytes of all pages."""
        return len(self._there) * self.page

    def missing(self, row: int, positions: int) -> list[range]:
        """Pages that the first positions of a slot still need, in as few pieces as there are."""
        if not (0 <= row < len(self.held) and positions <= self.positions):
            raise ValueError(f"There is no room for {positions} positions of slot {row}.")
        pieces: list[range] = []
        if positions <= self.held[row]:
            return pieces
        for page in self._needed(row, positions):
            last = pieces[-1] if pieces else range(0)
            if self._there[page] or page < last.stop:
                continue
            if page == last.stop and pieces:
                pieces[-1] = range(last.start, page + 1)
            else:
                pieces.append(range(page, page + 1))
        return pieces

    def add(self, row: int, positions: int, pieces: Iterable[range]) -> None:
        """These pages are there, and with them so many positions of a slot."""
        for piece in pieces:
            self._there[piece.start : piece.stop] = b"\1" * len(piece)
        if positions > self.held[row]:
            self.held[row] = self._covered(row, positions)

    def padding_row(self, row: int, kept: int) -> list[range]:
        """Pages of a slot's own behind its first positions, in every run."""
        starts = [self._end(start, kept) for start in self._starts(row)]
        ends = [(start + self._run) // self.page for start in self._starts(row)]
        return [range(first, last) for first, last in zip(starts, ends, strict=True)]

    def remove(self, row: int, kept: int, pages: Iterable[range]) -> None:
        """These are gone; the slot has its first positions."""
        for piece in pages:
            self._there[piece.start : piece.stop] = bytes(len(piece))
        self.held[row] = min(self.held[row], self._covered(row, kept))

    def clear(self) -> None:
        self._there = bytearray(len(self._there))
        self.held = [0] * len(self.held)

    def _starts(self, row: int) -> range:
        """The first byte of every run of a slot."""
        return range(row * self._run, self.size, len(self.held) * self._run)

    def _needed(self, row: int, positions: int) -> Iterator[int]:
        """In rising order; a page that two runs share comes twice."""
        for start in self._starts(row):
            yield from range(start // self.page, self._end(start, positions))

    def _end(self, start: int, positions: int) -> int:
        """The page after the last one of these positions."""
        return -(-(start + positions * self._width) // self.page)

    def _covered(self, row: int, positions: int) -> int:
        """Positions that fit into the pages of these, in every run."""
        ends = ((s, self._end(s, positions) * self.page) for s in self._starts(row))
        return min(self.positions, *((end - start) // self._width for start, end in ends))


class Memory:
    """Reserved addresses, and the memory that is mapped to some of them."""

    def __init__(self, driver: Driver, size: int) -> None:
        self._driver, self._size = driver, size
        self._pieces: list[tuple[int, int, int]] = []  # address, size, handle
        self._closed = False
        with driver.entered():
            self.base = driver.reserve(size)

    def grow(self, spans: Sequence[tuple[int, int]]) -> None:
        """Put zeros behind spans (offset, size), which have nothing: behind all, or none."""
        if self._closed:
            raise ValueError("This memory was given back.")
        kept = len(self._pieces)
        with self._driver.entered():
            try:
                for offset, size in spans:
                    self._back(self.base + offset, size)
            except BaseException:
                self._drop(kept)  # nothing has used it yet
                raise
            self._zero(kept)

    def shrink(self, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Give back the pieces that lie within spans (offset, size), once the device is done with
        them -> these."""
        bounds = [(self.base + offset, self.base + offset + size) for offset, size in spans]
        given = [
            piece
            for piece in self._pieces
            if any(low <= piece[0] and piece[0] + piece[1] <= high for low, high in bounds)
        ]
        if given:
            with self._driver.entered():
                self._driver.wait()
                for piece in given:
                    self._give(piece)
        return [(address - self.base, size) for address, size, _ in given]

    def _give(self, piece: tuple[int, int, int]) -> None:
        address, size, handle = piece
        self._pieces.remove(piece)
        self._driver.unmap(address, size)
        self._driver.release(handle)

    def close(self) -> None:
        """Give everything back, once the device is done with it."""
        if self._closed:
            return
        self._closed = True
        try:
            with self._driver.entered():
                self._driver.wait()
                self._drop(0)
                self._driver.free(self.base, self._size)
        except DriverError as error:  # a device that has failed does nothing any more
            log.warning("Memory of the GPU was not given back: %s", error)

    def _back(self, address: int, size: int) -> None:
        handle = self._driver.create(size)
        try:
            self._driver.map(address, size, handle)
        except BaseException:
            self._driver.release(handle)
            raise
        self._pieces.append((address, size, handle))
        self._driver.allow(address, size)

    def _zero(self, kept: int) -> None:
        """All but the first pieces, or drop them: even this may want memory for its kernel."""
        try:
            for address, size, _ in self._pieces[kept:]:
                self._driver.zero(address, size)
        except BaseException:
            self._driver.wait()  # for the zeros that are on their way
            self._drop(kept)
            raise

    def _drop(self, kept: int) -> None:
        """All but the first pieces."""
        for piece in reversed(self._pieces[kept:]):
            self._give(piece)


class Growing:
    """A tensor [*outer, slots, positions, *inner] with memory behind what slots have needed.

    `slots` is the dimension that counts slots; positions follow right behind it, so that the
    first positions of a slot lie together. Other orders are views of it. `full` is called
    once when there is no memory, before it is asked for again.

    The memory lives as long as this or any view of the tensor, or until `close`. One thread
    grows it; it may be made and closed by others, while nobody grows it.
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
        self._finalizer.atexit = False  # a process that ends gives everything back by itself
        # Torch and Triton ask the driver about a pointer before they take it: that of the
        # whole, and of each part of `outer`, must have memory. All begin in slot 0.
        self.ensure(0, 1)
        self.tensor = driver.tensor(span).view(dtype).view(*shape)

    @property
    def bytes(self) -> int:
        """Of memory that is there."""
        return self._pages.bytes

    @property
    def held(self) -> Sequence[int]:
        """Positions of each slot that have memory."""
        return self._pages.held

    def ensure(self, row: int, positions: int) -> None:
        """Let the first positions of a slot have memory; what is new is zero.

        Raises torch.OutOfMemoryError, and nothing has changed then. Not while work is recorded.
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
        """Give back what slots have for more than their first positions. Nothing reads it any more,
        but for work that is under way."""
        page = self._pages.page
        for row in rows:
            padding_row = self._pages.padding_row(row, positions)
            gone = self._memory.shrink([(own.start * page, len(own) * page) for own in padding_row])
            ranges = [range(at // page, (at + size) // page) for at, size in gone]
            self._pages.remove(row, positions, ranges)

    def close(self) -> None:
        """Give the memory back. The tensor and all that was made of it are dead from then on."""
        self._finalizer()
        self._pages.clear()
