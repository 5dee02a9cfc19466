"""How many threads a step gets on a CPU, and which devices run what is written for CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from numba import config

from engine.worker import device
from engine.worker.cuda_graphs import graph_capture
from engine.worker.device import LARGE_WEIGHTS, runs_cuda, step_threads, usable_cores
from engine.worker.state.cuda_vmm import growable


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


def test_amds_gpus_run_nothing_that_is_written_for_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch for ROCm calls them cuda and says that one is available."""
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    gpu = torch.device("cuda")
    assert not runs_cuda(gpu)
    assert graph_capture(gpu) is None
    assert not growable(gpu)


@pytest.mark.parametrize("name", ["cpu", "mps", "xpu", "meta"])
def test_other_devices_run_nothing_that_is_written_for_cuda(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert not runs_cuda(torch.device(name))


def test_nvidias_gpus_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert runs_cuda(torch.device("cuda", 1))


def test_what_kernels_are_told_to_leave_out_is_not_multiplied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True, raising=False)
    monkeypatch.setattr(config, "CPU_FEATURES", None)
    monkeypatch.setattr(config, "ENABLE_AVX", 1)
    assert device.multiplies_bfloat16()
    monkeypatch.setattr(config, "CPU_FEATURES", "+avx2,+avx512bf16")
    assert device.multiplies_bfloat16()
    monkeypatch.setattr(config, "CPU_FEATURES", "+avx2,+avx512vnni")
    assert not device.multiplies_bfloat16()
    monkeypatch.setattr(config, "CPU_FEATURES", None)
    monkeypatch.setattr(config, "ENABLE_AVX", 0)
    assert not device.multiplies_bfloat16()
