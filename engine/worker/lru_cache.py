"""The most recently used values of a kind, bounded by their size."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LRUCache(Generic[Key, Value]):
    """Values up to a limit of their sizes: bytes, or whatever they are counted in. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit, self.size = limit, 0
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key, make: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        """The value of a key; a missing one is computed outside the lock."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = make()
        with self._lock:
            self._put(key, value, size(value))
        return value

    def peek(self, key: Key) -> Value | None:
        with self._lock:
            return self._values[key][0] if key in self._values else None

    def _put(self, key: Key, value: Value, size: int) -> None:
        _, before = self._values.pop(key, (None, 0))  # another thread may have stored it first
        self._values[key] = value, size
        self.size += size - before
        while self.size > self._limit and len(self._values) > 1:
            self.size -= self._values.popitem(last=False)[1][1]
