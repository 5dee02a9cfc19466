"""A cluster in this process: replicas on fake engines, and a transport that can be cut."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from engine import Engine, Parts, Replica, ReplicaLost, Sequence

T = TypeVar("T")


def carried(value: T) -> T:
    """A copy, as a network would deliver it."""
    copy: T = pickle.loads(pickle.dumps(value))
    return copy


class LocalReplicas:
    """Asks the replica with the fewest requests first."""

    def __init__(self, engines: Mapping[str, Engine]) -> None:
        self.dashboard = ""
        self.there = {name: Replica(name, engine) for name, engine in engines.items()}
        self.asked: list[str] = []  # replicas, in order of requests
        self.speaking: dict[str, int] = dict.fromkeys(engines, 0)
        self._cut: dict[str, asyncio.Event] = {}

    def kill(self, name: str) -> None:
        """Stop a replica, from any thread; its streams get no more."""
        self.there.pop(name).engine.close()

    async def speak(self, key: str, sequence: Sequence, avoid: frozenset[str]) -> Parts:
        left = [name for name in self.there if name not in avoid] or list(self.there)
        if not left:
            raise ReplicaLost
        name = min(left, key=lambda each: self.speaking[each])
        self.asked.append(name)
        self.speaking[name] += 1
        try:
            async with aclosing(self.there[name].speak(key, carried(sequence))) as parts:
                async for part in parts:
                    if name not in self.there:
                        raise ReplicaLost
                    yield carried(part)
        finally:
            self.speaking[name] -= 1

    async def ask(self, method: str, *arguments: Any, each: bool = True) -> list[Any]:
        there = tuple(self.there.values()) if each else (next(iter(self.there.values())),)
        loop = asyncio.get_running_loop()
        answers = (partial(one.ask, method, *carried(arguments)) for one in there)
        return carried(
            list(await asyncio.gather(*(loop.run_in_executor(None, one) for one in answers)))
        )
