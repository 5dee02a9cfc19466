"""An engine on a virtual clock with an audience of listeners. No threads, no torch, no waiting.

The listeners keep their own books on when sound came and when it was played, so what the
engine says about itself is not what it is judged by.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine import Busy, Chunk, EngineSettings, Preset, SpeechRequest
from engine.stream import SpeechStream
from engine.testing import Costs, FakeCheckpoint, FakeEngine, fake_capabilities
from engine.testing.fake_engine import VirtualClock

# About an H200 with the published 1.7B model as it might be: 64 rows in 40 ms, sound included.
FAST = Costs(step=0.010, row=0.0002, prefill_row=0.00005, decoded_frame=0.0003)
# Real time up to about ten rows.
SLOW = Costs(step=0.010, row=0.005, prefill_row=0.0005, decoded_frame=0.001)


@dataclass
class Listener:
    """Plays from the first chunk on and pauses only where no sound is there."""

    request: SpeechRequest
    arrived: float
    stream: SpeechStream
    chunks: list[Chunk] = field(default_factory=list)
    first: float | None = None
    ended: float | None = None
    played_until: float = 0.0
    gaps: list[float] = field(default_factory=list)

    def listen(self, now: float) -> None:
        while (chunk := self.stream._output.take()) is not None:
            self._hear(chunk, now)
        if self.stream.end and self.ended is None:
            self.ended = now

    def _hear(self, chunk: Chunk, now: float) -> None:
        if self.first is None:
            self.first = self.played_until = now
        if now > self.played_until + 1e-9 and self.request.live:
            self.gaps.append(now - self.played_until)
        self.played_until = max(self.played_until, now) + chunk.seconds
        self.chunks.append(chunk)

    @property
    def frames(self) -> int:
        return sum(chunk.frames for chunk in self.chunks)


class Simulation:
    """Turns the engine's loop and lets the audience in."""

    def __init__(self, costs: Costs = FAST, max_letters: int = 100_000, **settings: object) -> None:
        self.clock = VirtualClock()
        chosen = EngineSettings(**{"max_num_seqs": 64, "pipeline_depth": 1, **settings})  # type: ignore[arg-type]
        checkpoint = FakeCheckpoint(fake_capabilities(max_letters=max_letters))
        self.engine = FakeEngine(
            [checkpoint], settings=chosen, costs=costs, clock=self.clock, start=False
        )
        self.listeners: list[Listener] = []
        self.refused: list[Busy] = []
        self.most_running = 0

    @property
    def worker(self):  # type: ignore[no-untyped-def]
        return self.engine.worker

    def ask(self, request: SpeechRequest) -> Listener | None:
        """The listener of a new request, or None when the engine is busy."""
        try:
            stream = self.engine.submit(request)
        except Busy as busy:
            self.refused.append(busy)
            return None
        self.listeners.append(Listener(request, self.clock.now(), stream))
        return self.listeners[-1]

    def turn(self) -> bool:
        busy = self.engine.loop.run_once(wait=False)
        self.most_running = max(self.most_running, len(self.engine.loop.scheduler.attempts))
        for listener in self.listeners:
            if listener.ended is None:
                listener.listen(self.clock.now())
        return busy

    def play(self, arrivals: Iterable[tuple[float, SpeechRequest]]) -> None:
        """Send requests at their times, until all have ended."""
        for when, request in arrivals:
            while self.clock.now() < when:
                if not self.turn():
                    self.clock.sleep(when - self.clock.now())
            self.ask(request)
        self.finish()

    def finish(self) -> None:
        while self.turn():
            pass


def ask(simulation: Simulation, words: str = "hello there", **more: Any) -> Listener:
    """A listener of a preset's speech, whom the engine does not refuse."""
    listener = simulation.ask(SpeechRequest(words, Preset("ryan"), **more))
    assert listener is not None
    return listener


def text(length: int, source: random.Random) -> str:
    return "".join(source.choice("abcdefgh ijklmnop") for _ in range(length - 1)) + "."


def poisson(
    count: int, rate: float, source: random.Random, files: float = 0.0
) -> Iterator[tuple[float, SpeechRequest]]:
    """Requests of 25 to 90 frames; `files`: the share of them that are not live."""
    now = 0.0
    for _ in range(count):
        now += source.expovariate(rate)
        live = source.random() >= files
        words, seed = text(source.randint(25, 90), source), source.randrange(1000)
        yield now, SpeechRequest(words, Preset("ryan"), live=live, seed=seed)
