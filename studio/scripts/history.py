"""Undo history: the last states of each script, bounded in number and bytes.

A state is kept as compressed JSON: its size is known, and a long script takes little room; with it
goes the name of the change that it was before. Knows no folders.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict, deque
from typing import Final, NamedTuple

from engine import Message
from studio.scripts import Project

MOST_STEPS: Final = 30  # of one script
MOST_BYTES: Final = 64 << 20  # of all


class State(NamedTuple):
    """A script before a change."""

    data: bytes
    change: Message  # what changed: the voice of Maya


class History:
    """States by script; the script that was changed longest ago is dropped first."""

    def __init__(self) -> None:
        self._past: OrderedDict[str, deque[State]] = OrderedDict()
        self.size = 0  # bytes

    def __contains__(self, number: str) -> bool:
        return number in self._past

    def last(self, number: str) -> Message | None:
        """The name of the latest change; None if there is none."""
        states = self._past.get(number)
        return states[-1].change if states else None

    def push(self, number: str, project: Project, change: Message) -> None:
        state = State(zlib.compress(project.model_dump_json().encode(), 1), change)
        states = self._past.setdefault(number, deque())
        self._past.move_to_end(number)
        states.append(state)
        self.size += len(state.data)
        if len(states) > MOST_STEPS:
            self._drop_oldest(number)
        while self.size > MOST_BYTES:
            self._drop_oldest(next(iter(self._past)))

    def latest(self, number: str) -> Project:
        """The last state. Raises KeyError."""
        return _unpacked(self._past[number][-1])

    def drop_latest(self, number: str) -> None:
        """Forget the last state, once a script is in it again. Raises KeyError."""
        states = self._past[number]
        self.size -= len(states.pop().data)
        if not states:
            del self._past[number]

    def states(self, number: str) -> list[Project]:
        return [_unpacked(state) for state in self._past.get(number, ())]

    def _drop_oldest(self, number: str) -> None:
        states = self._past[number]
        self.size -= len(states.popleft().data)
        if not states:
            del self._past[number]


def _unpacked(state: State) -> Project:
    return Project.model_validate_json(zlib.decompress(state.data))
