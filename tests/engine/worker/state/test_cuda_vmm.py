"""On a GPU: memory that is mapped by the real driver, seen through torch."""

from __future__ import annotations

import gc

import pytest
import torch

from engine.worker.state.cuda_vmm import DriverError
from engine.worker.state.virtual_memory import GrowingTensor, growable

pytestmark = pytest.mark.skipif(
    not growable(torch.device("cuda", 0)), reason="there is no GPU here that maps memory"
)
MIB = 1 << 20
SHAPE = (2, 3, 4096, 8, 128)  # of 16 bits: 8 MiB a slot and layer, 1,024 positions a page


def free() -> int:
    torch.cuda.synchronize()
    return torch.cuda.mem_get_info()[0]


def on_device() -> GrowingTensor:
    return GrowingTensor(SHAPE, 1, torch.bfloat16, torch.device("cuda"))


def test_a_gpu_keeps_what_is_old_and_gets_zeros_where_it_is_new() -> None:
    growing = on_device()
    pointer = growing.tensor.data_ptr()
    view = growing.tensor.transpose(2, 3)
    assert growing.tensor.is_cuda
    assert view.shape == (2, 3, 8, 4096, 128)
    growing.ensure(1, 1000)
    assert list(growing.held) == [1024, 1024, 0]
    assert not growing.tensor[:, 1, :1024].any()
    written = torch.randn(2, 8, 1000, 128, device="cuda").bfloat16()
    view[:, 1, :, :1000] = written
    growing.ensure(1, 3000)
    growing.ensure(2, 4096)
    assert torch.equal(view[:, 1, :, :1000], written)
    assert not growing.tensor[:, 1, 1000:3072].any()
    assert not growing.tensor[:, 2].any()
    assert growing.tensor.data_ptr() == pointer
    growing.close()


def test_a_gpu_has_as_much_less_as_is_there() -> None:
    torch.zeros(1, device="cuda")
    before = free()
    growing = on_device()
    first = growing.bytes
    assert first == 2 * 2 * MIB
    growing.ensure(1, 4096)
    growing.ensure(2, 1025)
    assert growing.bytes == first + 2 * (8 + 4) * MIB
    assert before - free() == pytest.approx(growing.bytes, abs=8 * MIB)
    view = growing.tensor[1, 1, :2]
    del growing
    gc.collect()
    assert before - free() > 16 * MIB
    del view
    gc.collect()
    assert before - free() == pytest.approx(0, abs=8 * MIB)


def test_a_replay_reaches_what_was_mapped_after_it_was_recorded() -> None:
    growing = on_device()
    at, graph = torch.zeros(1, dtype=torch.long, device="cuda"), torch.cuda.CUDAGraph()
    growing.ensure(1, 1)
    row, value = growing.tensor[:, 1], torch.ones(2, 1, 8, 128, device="cuda").bfloat16()
    row.index_copy_(1, at, value)  # warm
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        row.index_copy_(1, at, value)
        with pytest.raises(DriverError, match="graph capture"):
            growing.ensure(2, 1)
        growing.ensure(1, 1024)  # there is nothing to do
    for position in (5, 1030, 4095):
        growing.ensure(1, position + 1)
        at.fill_(position)
        graph.replay()
        assert row[:, position].eq(1).all()
        assert not row[:, position - 1].any()
    growing.close()


def test_triton_takes_a_layer_whose_other_slots_have_memory() -> None:
    pytest.importorskip("triton")
    from engine.worker.kernels.triton import linear

    growing = GrowingTensor((2, 3, 4096, 1024), 1, torch.bfloat16, torch.device("cuda"))
    growing.ensure(0, 4)
    layer = growing.tensor[1].flatten(0, 1)[:4]
    weight = torch.ones(1024, device="cuda", dtype=torch.bfloat16)
    _, normed = linear.add_norm(layer, None, weight, 1e-6)
    assert not normed.any()


def test_a_gpu_that_is_full_says_so_and_goes_on() -> None:
    total = torch.cuda.mem_get_info()[1]
    page = 2 * MIB
    growing = GrowingTensor((1, 2, 2 * total // page, page), 1, torch.uint8, torch.device("cuda"))
    growing.ensure(1, 2)
    growing.tensor[0, 1, :2] = 3
    kept = growing.bytes
    with pytest.raises(torch.OutOfMemoryError):
        growing.ensure(1, 2 * total // page)
    assert growing.bytes == kept
    growing.ensure(1, 3)
    assert growing.tensor[0, 1, :2].eq(3).all()
    assert not growing.tensor[0, 1, 2].any()
    growing.close()
