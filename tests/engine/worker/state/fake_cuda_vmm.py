"""A driver over the host's memory that holds its caller to the rules of the real one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch

from engine.worker.state.cuda_vmm import Span

JUNK = 0xA5  # the content of memory that was never written


class Exported:
    """A span as NumPy takes it."""

    def __init__(self, span: Span) -> None:
        self.span, self.__array_interface__ = span, span.__cuda_array_interface__


class FakeDriver:
    """`room` is how many bytes there are; `breaks` is called with the name of every call."""

    def __init__(self, page: int, room: int = 1 << 40) -> None:
        self.page, self.room, self.calls = page, room, 0
        self.breaks: Callable[[str], None] = lambda name: None
        self.ranges: dict[int, np.ndarray] = {}
        self.handles: dict[int, int] = {}  # to size
        self.mapped: dict[int, tuple[int, int]] = {}  # address to size, handle
        self.allowed: set[int] = set()
        self._within, self._next = False, 1

    @contextmanager
    def current_context(self) -> Iterator[None]:
        assert not self._within
        self._within = True
        try:
            yield
        finally:
            self._within = False

    def _called(self, name: str, *numbers: int) -> None:
        assert self._within
        assert not any(number % self.page for number in numbers)
        self.calls += 1
        self.breaks(name)

    def reserve(self, size: int) -> int:
        self._called("reserve", size)
        array = np.full(size + self.page, JUNK, np.uint8)
        address = -(-array.ctypes.data // self.page) * self.page
        self.ranges[address] = array
        return address

    def free(self, address: int, size: int) -> None:
        self._called("free", address, size)
        assert self.ranges.pop(address).nbytes == size + self.page
        assert not any(address <= at < address + size for at in self.mapped)

    def create(self, size: int) -> int:
        self._called("create", size)
        if sum(self.handles.values()) + size > self.room:
            raise torch.OutOfMemoryError("full")
        self._next += 1
        self.handles[self._next] = size
        return self._next

    def release(self, handle: int) -> None:
        self._called("release")
        del self.handles[handle]

    def map(self, address: int, size: int, handle: int) -> None:
        self._called("map", address, size)
        assert self.handles[handle] == size > 0
        assert all(address + size <= at or at + n <= address for at, (n, _) in self.mapped.items())
        self.mapped[address] = size, handle

    def set_access(self, address: int, size: int) -> None:
        self._called("set_access", address, size)
        assert self.mapped[address][0] == size
        self.allowed.add(address)

    def unmap(self, address: int, size: int) -> None:
        self._called("unmap", address, size)
        assert self.mapped.pop(address)[0] == size
        self.allowed.discard(address)

    def zero(self, address: int, size: int) -> None:
        self._called("zero", address, size)
        assert address in self.allowed
        ctypes.memset(address, 0, size)

    def wait(self) -> None:
        self._called("wait")

    def tensor(self, span: Span) -> torch.Tensor:
        assert not self._within
        assert span.__cuda_array_interface__["data"][0] in self.mapped
        return torch.from_numpy(np.asarray(Exported(span)))

    @property
    def empty(self) -> bool:
        return not (self.mapped or self.handles or self.ranges)

    def pages(self, base: int) -> set[int]:
        """The pages that are mapped, counted from an address."""
        first = {at: (at - base) // self.page for at in self.mapped}
        return {
            first[at] + n for at, (size, _) in self.mapped.items() for n in range(size // self.page)
        }
