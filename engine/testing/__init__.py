"""Torch-free fakes of the worker and of a checkpoint, for tests alone."""

from engine.testing.fake_checkpoint import FakeCheckpoint, fake_capabilities
from engine.testing.fake_engine import FakeEngine
from engine.testing.fake_worker import Clock, Costs

__all__ = ["Clock", "Costs", "FakeCheckpoint", "FakeEngine", "fake_capabilities"]
