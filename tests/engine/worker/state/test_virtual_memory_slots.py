"""Slots with growing memory give the same speech as others, and write nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import engine.worker.model_runner as runner_module
import engine.worker.state.slot_state as slots_module
import engine.worker.state.virtual_memory as growing_module
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.plan import Admit, Prefill
from engine.worker.loading.model_loader import load_talker
from engine.worker.model_runner import ModelRunner
from engine.worker.state.memory_budget import slot_bytes
from tests.engine.worker.driver import DRAWN
from tests.engine.worker.state.fake_cuda_vmm import JUNK, FakeDriver
from tests.support.golden_cases import speech_cases

CASE = speech_cases()[0]
CPU = torch.device("cpu")
SLOTS, POSITIONS, INITIAL_POSITIONS, FRAMES, PAGE = 3, 300, 20, 24, 1024


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = FakeDriver(PAGE)
    monkeypatch.setattr(growing_module, "cuda_driver", lambda device: made)
    monkeypatch.setattr(runner_module, "check_reserve", lambda device: None)
    monkeypatch.setattr(slots_module, "INITIAL_POSITIONS", INITIAL_POSITIONS)
    return made


def runner(grows: bool) -> ModelRunner:
    checkpoint = LocalCheckpoint(CASE.folder)
    talker = load_talker(CASE.folder, CPU, torch.float64)
    return ModelRunner(talker, checkpoint.ids, SLOTS, POSITIONS, CPU, torch.float64, grows)


def spoken(model_runner: ModelRunner, row: int) -> torch.Tensor:
    prompt = CASE.prompt(LocalCheckpoint(CASE.folder))
    model_runner.admit([(row, Admit(row, CASE.folder.name, prompt, DRAWN, 7, FRAMES))])
    model_runner.prefill([(row, Prefill(row, 0, len(prompt)))])
    return torch.stack([model_runner.frames([row]).codes for _ in range(FRAMES)])


@torch.inference_mode()
def test_they_speak_like_others_and_write_nowhere_else(driver: FakeDriver) -> None:
    growing = runner(True)
    assert [growing.slots.held(row) >= INITIAL_POSITIONS for row in range(SLOTS + 1)] == [True] * 4
    first = growing.slots.bytes
    assert torch.equal(spoken(growing, 1), spoken(runner(False), 1))
    assert growing.slots.held(1) >= 15 + FRAMES > growing.slots.held(2)
    assert first < growing.slots.bytes < runner(False).slots.bytes
    for address, array in driver.ranges.items():
        there = np.zeros(len(array), bool)
        there[: address - array.ctypes.data] = True
        for piece, (size, _) in driver.mapped.items():
            start = piece - array.ctypes.data
            if 0 <= start < len(array):
                there[start : start + size] = True
        assert (array[~there] == JUNK).all()


@torch.inference_mode()
def test_who_finds_no_memory_changes_nothing(driver: FakeDriver) -> None:
    growing = runner(True)
    driver.room, before = growing.slots.cache.bytes, growing.slots.bytes
    growing.slots.cache.growing[0]._full = lambda: None
    with pytest.raises(torch.OutOfMemoryError):
        spoken(growing, 1)
    assert growing.slots.bytes == before
    assert not growing.row_states
    driver.room = 1 << 40
    assert len(spoken(growing, 1)) == FRAMES


@torch.inference_mode()
def test_free_rows_give_back_what_somebody_needs(driver: FakeDriver) -> None:
    """A long request after another row was long; earlier positions are kept."""
    growing, plain = runner(True), runner(False)
    spoken(growing, 1)
    growing.release(1)
    driver.room = growing.slots.cache.bytes
    beside = spoken(growing, 0)
    assert torch.equal(spoken(growing, 2), spoken(plain, 2))
    assert growing.slots.held(1) < 15 + FRAMES <= growing.slots.held(2)
    assert torch.equal(beside, spoken(plain, 0))
    again = [runner.frames([0]).codes for runner in (growing, plain)]
    assert torch.equal(*again)
    with pytest.raises(torch.OutOfMemoryError):
        spoken(growing, 1)


@torch.inference_mode()
def test_rows_that_are_given_together_take_nothing_from_each_other(driver: FakeDriver) -> None:
    growing, prompt = runner(True), CASE.prompt(LocalCheckpoint(CASE.folder))
    before = growing.slots.cache.bytes
    growing._reach(1, admission := Admit(1, "", prompt, DRAWN, 7, FRAMES), {1})
    one = growing.slots.cache.bytes - before
    growing.slots.shrink([1])
    driver.room = before + one
    with pytest.raises(torch.OutOfMemoryError):
        growing.admit([(row, replace(admission, slot=row)) for row in (1, 2)])
    assert growing.slots.held(1) >= len(prompt) + FRAMES
    assert not growing.row_states


@torch.inference_mode()
def test_one_alone_always_has_room(driver: FakeDriver) -> None:
    growing = runner(True)
    driver.room = growing.slots.cache.bytes
    assert growing.slots.held(0) == POSITIONS
    assert len(spoken(growing, 0)) == FRAMES


def test_a_slot_that_grows_is_counted_as_it_begins() -> None:
    config = load_talker(CASE.folder, CPU, torch.float32).config
    small, large = (slot_bytes(config, 4096, torch.float32, way) for way in (True, False))
    assert small < large == slot_bytes(config, 4096, torch.float32)
    assert slot_bytes(config, 100, torch.float32, True) == slot_bytes(config, 100, torch.float32)
