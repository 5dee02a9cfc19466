"""Memory is mapped where slots need it, and nowhere else; new memory is zero."""

from __future__ import annotations

import ctypes
import gc
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.worker.state import cuda_vmm
from engine.worker.state.cuda_vmm import Access, Allocation, DriverError, Location
from engine.worker.state.virtual_memory import GrowingTensor, Pages, growable
from tests.engine.worker.state.fake_cuda_vmm import FakeDriver

CPU = torch.device("cpu")
Decoder = list[tuple[int, int]]


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, int, int, int, int], Decoder]:
    """[outer, slots, positions, inner] and a page, and how far which slot gets."""
    sizes = [draw(st.integers(1, most)) for most in (4, 4, 24, 20)]
    page = draw(st.sampled_from((8, 16, 64, 256)))
    step = st.tuples(st.integers(0, sizes[1] - 1), st.integers(0, sizes[2]))
    return (*sizes, page), draw(st.lists(step, max_size=8))


def overlapped(sizes: tuple[int, int, int, int, int], row: int, positions: int) -> set[int]:
    """Pages with a byte of the first positions of a slot, byte by byte."""
    outer, slots, most, width, page = sizes
    runs = ((part * slots + row) * most * width for part in range(outer))
    return {byte // page for run in runs for byte in range(run, run + positions * width)}


@given(cases())
def test_pages_are_those_that_positions_touch_and_no_others(case: tuple[Any, Decoder]) -> None:
    sizes, steps = case
    pages, there = Pages(*sizes), set[int]()
    for row, positions in steps:
        needed = overlapped(sizes, row, positions)
        pieces = pages.missing(row, positions)
        flat = [page for piece in pieces for page in piece]
        assert flat == sorted(needed - there)
        # pieces are as long as can be
        assert all(a.stop < b.start for a, b in pairwise(pieces))
        pages.add(row, positions, pieces)
        there |= needed
        assert pages.bytes == len(there) * pages.page <= pages.reserved
        assert positions <= pages.held[row] <= sizes[2]
        assert all(overlapped(sizes, slot, held) <= there for slot, held in enumerate(pages.held))


@given(cases())
def test_what_was_written_stays_and_what_is_new_is_zero(case: tuple[Any, Decoder]) -> None:
    (outer, slots, positions, inner, page), steps = case
    driver = FakeDriver(page)
    growing = GrowingTensor((outer, slots, positions, inner), 1, torch.uint8, CPU, driver)
    pointer, base = growing.tensor.data_ptr(), next(iter(driver.ranges))
    wanted = torch.zeros(outer, slots, positions, inner, dtype=torch.uint8)
    there = overlapped((outer, slots, positions, inner, page), 0, 1)
    for number, (row, length) in enumerate(steps, 1):
        growing.ensure(row, length)
        there |= overlapped((outer, slots, positions, inner, page), row, length)
        for part in (growing.tensor, wanted):
            part[:, row, length // 2 : length] = number
        for slot, held in enumerate(growing.held):
            assert torch.equal(growing.tensor[:, slot, :held], wanted[:, slot, :held])
        assert driver.pages(base) == there
        assert growing.bytes == len(there) * page
    assert growing.tensor.data_ptr() == pointer
    growing.close()


@given(cases())
def test_nothing_is_done_twice(case: tuple[Any, Decoder]) -> None:
    (*shape, page), steps = case
    growing = GrowingTensor(shape, 1, torch.uint8, CPU, driver := FakeDriver(page))
    for row, positions in steps:
        growing.ensure(row, positions)
        calls = driver.calls
        for fewer in (positions, positions // 2, growing.held[row]):
            growing.ensure(row, fewer)
        assert driver.calls == calls
    growing.close()


def small(driver: FakeDriver, **how: Any) -> GrowingTensor:
    """[2 layers, 3 slots, 64 positions, 2 heads, 8] of 16 bits: 32 bytes a position."""
    return GrowingTensor((2, 3, 64, 2, 8), 1, torch.bfloat16, CPU, driver, **how)


def test_a_view_in_another_order_has_the_same_memory() -> None:
    growing = small(FakeDriver(256))
    assert growing.tensor.shape == (2, 3, 64, 2, 8)
    assert growing.tensor.dtype == torch.bfloat16
    view = growing.tensor.transpose(2, 3)  # [layers, slots, heads, positions, dim]
    growing.ensure(1, 9)
    assert growing.held == [8, 16, 0]  # 8 positions are a page, and slot 0 has its first
    view[1, 1, :, 8] = 3
    assert growing.tensor[1, 1, 8].eq(3).all()
    assert not growing.tensor[:, 1, :8].any()


def test_pages_that_follow_each_other_are_mapped_at_once() -> None:
    growing = small(driver := FakeDriver(256))
    before = len(driver.handles)
    growing.ensure(2, 64)
    assert len(driver.handles) == before + 2  # a piece for each layer
    growing.ensure(1, 64)
    assert growing.bytes == 2 * 17 * 256


@pytest.mark.parametrize("row", [-1, 3])
def test_only_slots_that_there_are(row: int) -> None:
    with pytest.raises((ValueError, IndexError)):
        small(FakeDriver(256)).ensure(row, 20)


def test_only_positions_that_there_are() -> None:
    with pytest.raises(ValueError, match="Slot 1 cannot have 65 positions"):
        small(FakeDriver(256)).ensure(1, 65)


@given(st.integers(0, 7), st.integers(1, 64))
def test_without_memory_nothing_changes(pages: int, positions: int) -> None:
    driver, grown = FakeDriver(256), []
    growing = small(driver, full=lambda: grown.append(driver.room))
    growing.tensor[:, 0, :8] = 7
    driver.room = growing.bytes + pages * 256
    state = dict(driver.mapped), dict(driver.handles), growing.bytes
    if (needed := 2 * -(-positions // 8)) <= pages:
        growing.ensure(1, positions)
        assert growing.bytes == state[2] + needed * 256
        assert not grown
        return
    with pytest.raises(torch.OutOfMemoryError):
        growing.ensure(1, positions)
    assert len(grown) == 1
    assert (driver.mapped, driver.handles, growing.bytes) == state
    assert list(growing.held) == [8, 0, 0]
    assert growing.tensor[:, 0, :8].eq(7).all()
    driver.room = 1 << 40
    growing.ensure(1, positions)
    assert not growing.tensor[:, 1, :positions].any()


def test_memory_that_others_give_back_is_taken() -> None:
    def more() -> None:
        driver.room = 1 << 40

    growing = small(driver := FakeDriver(256, room=512), full=more)
    growing.ensure(2, 64)
    assert growing.held[2] == 64


@pytest.mark.parametrize("name", ["create", "map", "set_access", "zero"])
@pytest.mark.parametrize("error", [DriverError("no"), KeyboardInterrupt()], ids=str)
def test_a_call_that_fails_in_the_middle_leaves_nothing(name: str, error: BaseException) -> None:
    growing = small(driver := FakeDriver(256))
    state = dict(driver.mapped), dict(driver.handles), growing.bytes
    calls: list[str] = []

    def breaks(called: str) -> None:
        calls.append(called)
        if calls.count(name) == 2 and called == name:
            raise error

    driver.breaks = breaks
    with pytest.raises(type(error)):
        growing.ensure(1, 64)
    assert (driver.mapped, driver.handles, growing.bytes) == state
    growing.ensure(1, 64)


def test_closing_gives_all_back_after_the_device_is_done() -> None:
    growing, names = small(driver := FakeDriver(256)), []
    growing.ensure(1, 30)
    driver.breaks = names.append
    growing.close()
    growing.close()
    assert driver.empty
    assert not growing.bytes
    assert names[0] == "wait"
    assert names.count("free") == 1
    with pytest.raises(ValueError, match="given back"):
        growing.ensure(1, 1)


def test_memory_lives_as_long_as_a_view() -> None:
    growing = small(driver := FakeDriver(256))
    view = growing.tensor[0, 0, :2]
    del growing
    gc.collect()
    assert driver.mapped
    del view
    gc.collect()
    assert driver.empty


def test_what_could_not_be_made_leaves_nothing() -> None:
    driver = FakeDriver(256, room=256)
    with pytest.raises(torch.OutOfMemoryError):
        small(driver)
    gc.collect()
    assert driver.empty


def test_a_device_that_has_failed_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    def breaks(name: str) -> None:
        raise DriverError("an illegal access")

    growing = small(driver := FakeDriver(256))
    driver.breaks = breaks
    growing.close()
    assert "an illegal access" in caplog.text


def test_structures_are_those_of_the_driver() -> None:
    """Sizes and offsets as a C compiler finds them in cuda.h."""
    assert [ctypes.sizeof(kind) for kind in (Location, Allocation, Access)] == [8, 32, 12]
    fields = ("type", "requested_handle_types", "location", "win32_handle_metadata", "flags")
    assert [getattr(Allocation, field).offset for field in fields] == [0, 4, 8, 16, 24]
    assert [Access.location.offset, Access.flags.offset] == [0, 8]
    assert cuda_vmm.AllocationFlags.usage.offset == 2


def test_a_cpu_cannot_do_it() -> None:
    assert not growable(CPU)
    with pytest.raises(DriverError, match="cpu cannot"):
        GrowingTensor((1, 1, 1, 1), 1, torch.float32, CPU)
