"""Slots are planned from what is free, and never from more."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.checkpoints.files import read_json
from engine.errors import OutOfMemory
from engine.model.configs import TalkerConfig
from engine.worker.state.memory_budget import (
    MAX_RESERVED,
    RESERVED_SHARE,
    fitting_slots,
    slot_bytes,
    slots_for,
)
from engine.worker.state.slot_state import Slots
from tests.conftest import golden_folders

GIB = 1 << 30


@given(
    wanted=st.integers(1, 1024),
    each=st.integers(1 << 20, 2 * GIB),
    free=st.integers(0, 140 * GIB),
    total=st.integers(4 * GIB, 140 * GIB),
)
def test_what_is_planned_fits(wanted: int, each: int, free: int, total: int) -> None:
    free = min(free, total)
    if 2 * each > free - min(MAX_RESERVED, int(RESERVED_SHARE * total)):
        with pytest.raises(OutOfMemory, match="fewer positions"):
            fitting_slots(wanted, each, free, total)
        return
    slots = fitting_slots(wanted, each, free, total)
    assert 1 <= slots <= wanted
    assert (slots + 1) * each < free
    if slots < wanted:  # one more would leave too little
        assert (slots + 2) * each > free - 0.1 * total - 1


@pytest.mark.parametrize("folder", golden_folders(), ids=lambda folder: folder.name)
def test_a_slot_takes_what_is_said(folder) -> None:
    config = TalkerConfig.from_dict(read_json(folder / "config.json")["talker_config"])
    cpu = torch.device("cpu")
    real = Slots.allocate(config, 3, 100, cpu, torch.float32)
    assert real.bytes == 4 * slot_bytes(config, 100, torch.float32)
    assert slots_for(config, 7, 100, cpu, torch.float32) == 7
