"""Kernels that are called by their machine code give what numba's do, or numba takes over."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config, float32, njit
from numpy.typing import NDArray

from engine.worker.kernels.cpu import entries
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.entries import Entry, are_kept
from engine.worker.kernels.cpu.layers import multiply_all
from engine.worker.kernels.cpu.machine_code import SUPPORTED, MachineCode, UnknownObject
from engine.worker.kernels.cpu.threads import ThreadTeam, new_sync

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="numba alone calls kernels here")


class Inner(NamedTuple):
    bits: NDArray[np.uint16]
    factor: np.float32


class Outer(NamedTuple):
    inner: Inner
    shape: int


def mixed() -> Any:
    """A kernel of arguments of all kinds, as another process finds it."""

    def mix(number, threads, given, flag, count, out):  # type: ignore[no-untyped-def]
        for row in range(number, len(out), threads):
            for n in range(out.shape[1]):
                value = float32(given.inner.bits[n]) * given.inner.factor + float32(given.shape)
                out[row, n] = value + float32(count) if flag else -value

    return compiled()(mix)


def arguments(flag: bool = True, shape: Any = 7) -> tuple[Any, ...]:
    bits = np.arange(5, dtype=np.uint16)
    return Outer(Inner(bits, np.float32(0.3)), shape), flag, 3, np.zeros((4, 5), np.float32)


def results(entry: Entry, *given: Any) -> NDArray[np.float32]:
    for number in range(2):
        entry(*given)(number, 2)
    found: NDArray[np.float32] = given[-1]
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("flag", [True, False])
def test_a_later_start_gives_the_same_without_numba(folder: Path, flag: bool) -> None:
    first, later = Entry(mixed()), Entry(mixed())
    wanted = results(first, *arguments(flag))
    assert wanted.all()
    assert are_kept(later.kernel)
    assert np.array_equal(results(first, *arguments(flag)), wanted)
    assert np.array_equal(results(later, *arguments(flag)), wanted)
    assert not later.kernel.overloads, "numba was asked for nothing"


def test_numbers_of_numpy_are_numbers(folder: Path) -> None:
    entry = Entry(mixed())
    wanted = results(entry, *arguments())
    assert np.array_equal(results(entry, *arguments(shape=np.int64(7))), wanted)
    assert np.array_equal(results(entry, *arguments(shape=np.int64(7))), wanted)


@pytest.mark.parametrize("left", [0, 20, 2000, -1])
def test_code_that_is_damaged_is_made_again(folder: Path, left: int) -> None:
    wanted = results(Entry(mixed()), *arguments())
    (file,) = folder.rglob(f"*{entries.ENDING}")
    whole = file.read_bytes()
    file.write_bytes(whole[:left] if left >= 0 else bytes([*whole[:-1], whole[-1] ^ 1]))
    entry = Entry(mixed())
    assert np.array_equal(results(entry, *arguments()), wanted)
    assert entry.kernel.overloads
    assert file.read_bytes() == whole


def test_code_of_another_processor_is_not_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = results(Entry(mixed()), *arguments())
    monkeypatch.setattr(entries, "_processor", lambda: ["another one"])
    entry = Entry(mixed())
    assert np.array_equal(results(entry, *arguments()), wanted)
    assert entry.kernel.overloads


@pytest.mark.parametrize(
    ("name", "value"), [("CPU_NAME", "haswell"), ("CPU_FEATURES", "+avx2"), ("ENABLE_AVX", None)]
)
def test_what_numba_is_told_to_compile_for_is_another_processor(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    entry = Entry(mixed())
    before = entry._path(())
    entries._processor.cache_clear()
    monkeypatch.setattr(config, name, not config.ENABLE_AVX if value is None else value)
    try:
        assert entry._path(()) != before
    finally:
        entries._processor.cache_clear()


def test_kernels_of_one_name_in_two_modules_are_two(folder: Path) -> None:
    one, other = mixed(), mixed()
    other.__module__ = "engine.worker.kernels.cpu.another"
    assert Entry(one)._path(()) != Entry(other)._path(())


def remembers(number, threads, out):  # type: ignore[no-untyped-def]
    own = np.empty(len(out), np.float32)
    for n in range(len(out)):
        own[n] = n
    for n in range(len(out)):
        out[n] = own[len(out) - 1 - n]


def draws(number, threads, out):  # type: ignore[no-untyped-def]
    for n in range(len(out)):
        out[n] = len(out) - 1 - n + (np.random.random() - 0.5) / 1000


def answers(number, threads, out):  # type: ignore[no-untyped-def]
    for n in range(len(out)):
        out[n] = len(out) - 1 - n
    return out[0], out[1], out[2], out[3]


@pytest.mark.parametrize("kernel", [remembers, draws, answers])
def test_a_kernel_that_needs_more_than_it_is_given_is_left_to_numba(
    folder: Path, kernel: Any
) -> None:
    entry = Entry(compiled()(kernel))
    for _ in range(2):
        out = np.zeros(4, np.float32)
        entry(out)(0, 1)
        assert out.round().tolist() == [3, 2, 1, 0]
    assert not are_kept(entry.kernel)


def test_a_kernel_runs_where_nothing_can_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(entries, "write_atomic", full)
    entry = Entry(mixed())
    wanted = results(entry, *arguments())
    assert np.array_equal(results(entry, *arguments()), wanted)


def test_a_kernel_runs_where_numba_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: object) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr("engine.worker.kernels.cpu.compiler.njit", refuse)
    entry = Entry(mixed())
    wanted = results(entry, *arguments())
    assert wanted.all()
    assert np.array_equal(results(entry, *arguments()), wanted)
    assert not are_kept(entry.kernel)


def test_threads_meet_at_barriers_of_machine_code() -> None:
    draw = np.random.default_rng(0)
    weights = draw.integers(-127, 128, (96, 128)).astype(np.int8)
    scales, x = draw.random(96, np.float32), draw.random((3, 128), np.float32)
    wanted = np.zeros((3, 96), np.float32)
    multiply_all(0, 1, weights, scales, x, 3, wanted, new_sync())
    entry, team = Entry(multiply_all), ThreadTeam(2)
    for threads in (2, 1, 2, 2):
        out = np.zeros_like(wanted)
        team.run(entry(weights, scales, x, 3, out, new_sync()), threads)
        assert np.array_equal(out, wanted)
    team.close()


@given(st.binary(max_size=300), st.booleans())
def test_what_is_no_object_file_is_refused(noise: bytes, begins_well: bool) -> None:
    start = b"\x7fELF\x02\x01" if begins_well else b""
    with pytest.raises(UnknownObject):
        MachineCode(start + noise, "function")
