"""A cluster in this process: replicas on fake engines, and a transport that can be cut."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from engine import Clone, Engine, SpeechRequest, Stats, TimbreError, Waveform
from engine.cluster.cluster_engine import ReplicaLost
from engine.cluster.replica import Parts, Replica

T = TypeVar("T")


def carried(value: T) -> T:
    """What a network would make of it."""
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

    async def speak(self, key: str, request: SpeechRequest, avoid: frozenset[str]) -> Parts:
        left = [name for name in self.there if name not in avoid] or list(self.there)
        if not left:
            raise ReplicaLost
        name = min(left, key=lambda each: self.speaking[each])
        self.asked.append(name)
        self.speaking[name] += 1
        try:
            async with aclosing(self.there[name].speak(key, carried(request))) as parts:
                async for part in parts:
                    if name not in self.there:
                        raise ReplicaLost
                    yield carried(part)
        finally:
            self.speaking[name] -= 1

    async def append(self, key: str, text: str | None) -> None:
        for each in tuple(self.there.values()):
            await each.append(key, text)

    async def clone(
        self, audio: Waveform, transcript: str, model: str | None
    ) -> Clone | TimbreError:
        return carried(next(iter(self.there.values())).clone(audio, transcript, model))

    async def load(self, model: str, wanted: bool) -> TimbreError | None:
        loop = asyncio.get_running_loop()
        works = [
            loop.run_in_executor(None, each.load, model, wanted) for each in self.there.values()
        ]
        errors: list[Any] = await asyncio.gather(*works)
        return next((carried(error) for error in errors if error), None)

    async def look(self) -> Mapping[str, Stats]:
        return {name: carried(each.engine.stats()) for name, each in self.there.items()}
