"""How many threads a step gets on a CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.worker import device
from engine.worker.device import LARGE_WEIGHTS, step_threads, usable_cores


@pytest.mark.parametrize(
    ("cores", "small", "large"), [(1, 1, 1), (2, 1, 2), (4, 3, 3), (16, 15, 15)]
)
def test_a_core_is_left_for_streaming_where_a_step_can_spare_it(
    cores: int, small: int, large: int
) -> None:
    assert step_threads(cores, 0) == small
    assert step_threads(cores, LARGE_WEIGHTS) == large


@pytest.mark.parametrize(
    ("quota", "most"),
    [("100000 100000", 1), ("50000 100000", 1), ("max 100000", None), ("", None), (None, None)],
)
def test_a_containers_quota_bounds_the_cores(
    quota: str | None, most: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "CPU_QUOTA", tmp_path / "none")
    free, file = usable_cores(), tmp_path / "cpu.max"
    if quota is not None:
        file.write_text(quota)
    monkeypatch.setattr(device, "CPU_QUOTA", file)
    assert usable_cores() == (most or free)


def test_a_second_worker_counts_the_same_cores() -> None:
    before, threads = usable_cores(), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert usable_cores() == before
    finally:
        torch.set_num_threads(threads)
