"""An engine without a model: the real one with a fake worker and fake checkpoints.

For tests of everything above the worker, and for trying the pages without weights. It speaks a tone
for each letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from engine.config import EngineSettings
from engine.engine import Engine
from engine.testing.fake_checkpoint import FakeCheckpoint, fake_capabilities
from engine.testing.fake_worker import Clock, Costs, FakeWorker, VirtualClock

__all__ = [
    "Clock",
    "Costs",
    "FakeCheckpoint",
    "FakeEngine",
    "FakeWorker",
    "VirtualClock",
    "fake_capabilities",
]


class FakeEngine(Engine):
    """Generates tones at the speed that `costs` give; by default at once."""

    def __init__(
        self,
        checkpoints: Sequence[FakeCheckpoint] = (FakeCheckpoint(),),
        settings: EngineSettings | None = None,
        costs: Costs | None = None,
        clock: Clock | None = None,
        loaded: bool = True,
        room: int = 8,
        start: bool = True,
    ) -> None:
        """`loaded`: all talkers are loaded from the start. `room`: talkers that fit the device."""
        settings = settings or EngineSettings(max_num_seqs=8)
        clock = clock or Clock()
        self._make = partial(FakeWorker, settings.max_num_seqs, costs, clock, room)
        self.worker = self._make()
        named = {each.capabilities.name: each for each in checkpoints}
        for name in named if loaded else ():
            self.worker.load(name)
        super().__init__(self.worker, named, settings, clock.now, start, self._replace)

    def _replace(self, checkpoints: object) -> FakeWorker:
        """A new worker with nothing loaded, and without the faults that tests have set."""
        self.worker = self._make()
        return self.worker
