"""Which slots are free; integers only."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush


class SlotAllocator:
    """The slots of every loaded talker; the lowest free slot is taken first."""

    def __init__(self) -> None:
        self._free: dict[str, list[int]] = {}
        self._talker: dict[int, str] = {}
        self._released: list[int] = []  # not in a plan yet

    @property
    def total(self) -> int:
        return len(self._talker)

    @property
    def free(self) -> int:
        return sum(len(heap) for heap in self._free.values())

    @property
    def talkers(self) -> tuple[str, ...]:
        return tuple(self._free)

    def free_of(self, talker: str) -> int:
        return len(self._free.get(talker, ()))

    def is_idle(self, talker: str) -> bool:
        """Whether no slot is taken, and the worker was told of every release."""
        taken = sum(owner == talker for owner in self._talker.values()) - self.free_of(talker)
        return not taken and not any(self._talker[slot] == talker for slot in self._released)

    def add(self, talker: str, slots: Iterable[int]) -> None:
        heap = list(slots)
        heapify(heap)
        self._free[talker] = heap
        self._talker.update(dict.fromkeys(heap, talker))

    def remove(self, talker: str) -> None:
        del self._free[talker]
        self._talker = {slot: owner for slot, owner in self._talker.items() if owner != talker}
        self._released = [slot for slot in self._released if slot in self._talker]

    def take(self, talker: str) -> int:
        return heappop(self._free[talker])

    def release(self, slot: int) -> None:
        """Free a slot; the next plan tells the worker."""
        heappush(self._free[self._talker[slot]], slot)
        self._released.append(slot)

    def drain_released(self) -> tuple[int, ...]:
        """Slots released since the last plan."""
        released, self._released = tuple(self._released), []
        return released
