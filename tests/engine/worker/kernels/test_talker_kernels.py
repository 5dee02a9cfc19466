"""The talker's persistent kernel, compiled for the CPU, equals the plain talker."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.model.configs import TalkerConfig, TransformerConfig
from engine.model.layers import rotary_embedding
from engine.model.talker import TalkerModel
from engine.worker.kernels.cuda import talker_kernels, weight_packing
from engine.worker.kernels.cuda.launch_config import MAX_ROWS, LaunchConfig
from engine.worker.state.kv_cache import KeyValueCache, SlotAttend
from engine.worker.state.slot_state import Slots
from tests.engine.worker.kernels.small import compiled, distance

WIDE, LIMIT = 512, 320
ORDERS = (0, 1, 2, 3, 4), (1, 3, 0, 2, 4)  # of layers, slots, heads, positions, dimensions
BLOCK = TransformerConfig(WIDE, 512, 2, 4, 2, 128, 1e6, 1e-6)
SHAPE = TalkerConfig(BLOCK, BLOCK, 2048, 512, 4, 9, 9, 99)
ENTRY = """
extern "C" bool run_talk(const TalkerArguments* args, unsigned long shared) {
  return run_grid(GRID, shared, [=] { talk(*args); });
}
"""
# Positions of rows: the first, within a warp's span, at its edges, past all warps' first spans.
PLACES = (0, 15, 16, 17, 127, 128, 200, 5, 31, 60, 3, 144, 300, 129, 64, 40, 250, 1, 90)


def stack() -> TalkerModel:
    made = TalkerModel(SHAPE).bfloat16().requires_grad_(False)
    random = torch.Generator().manual_seed(0)
    for weight in made.parameters():
        if weight.dim() > 1:
            weight.normal_(0, weight.shape[1] ** -0.5, generator=random)
        else:
            weight.uniform_(0.5, 1.5, generator=random)
    return made


class Twin:
    def __init__(
        self,
        folder: Path,
        tiles: int,
        launch: LaunchConfig,
        order: Sequence[int],
        posted: bool,
    ) -> None:
        self.launch, self.order, self.rows = launch, order, 16 * tiles
        keys = begun(0, order)[0].cache.keys
        constants = talker_kernels.constants(BLOCK, launch, tiles, keys, posted)
        self.posted = weight_packing.allocate_posted(BLOCK, 1, 0, keys.device)  # of all launches
        library = compiled(folder, f"talk{tiles}", talker_kernels.SOURCES, ENTRY, constants)
        self._run = ctypes.CDLL(str(library)).run_talk
        self._run.restype, self._run.argtypes = ctypes.c_bool, (ctypes.c_void_p, ctypes.c_ulong)

    def __call__(
        self, network: TalkerModel, slots: Slots, x: Tensor, index: Tensor, position: Tensor
    ) -> Tensor:
        cos, sin = (
            part[0, 0].bfloat16() for part in rotary_embedding(torch.arange(LIMIT)[None], 128, 1e6)
        )
        weights = talker_kernels.pack_weights(network, (cos, sin), self.launch)
        scratch = weight_packing.allocate_scratch(BLOCK, MAX_ROWS, x)
        for name, tensor in scratch.items():
            if name != "barrier":
                tensor.fill_(float("nan"))
        hidden = torch.full_like(x, float("nan"))
        arguments = talker_kernels.kernel_arguments(
            weights | scratch | self.posted, (x, index, position), slots.cache.tensors, hidden
        )
        assert self._run(ctypes.addressof(arguments), self.launch.shared), "blocks wait forever"
        assert not scratch["barrier"].any()
        return hidden


def launch_configs() -> list[LaunchConfig]:
    """Products whole, in a ring that holds all weights, and in parts, in one that wraps around."""
    parts = (1, 1, 1, 1), (8, 4, 8, 8)
    return [
        LaunchConfig(2, 256, stages, 8 * columns * 512 + 512, MAX_ROWS * WIDE, part)
        for stages, columns, part in zip((140, 21), (64, 16), parts, strict=True)
    ]


FORMS = {
    "one tile": (1, 0, False), "posted": (1, 0, True), "posted in parts": (1, 1, True),
    "two tiles in parts": (2, 1, False),
}  # fmt: skip


@pytest.fixture(scope="module", params=FORMS.values(), ids=FORMS)
def twin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Twin:
    tiles, which, posted = request.param
    folder = tmp_path_factory.mktemp("twin")
    return Twin(folder, tiles, launch_configs()[which], ORDERS[which], posted)


def ordered(cache: KeyValueCache, order: Sequence[int]) -> KeyValueCache:
    """A tensor of the same values with this order of dimensions in memory."""
    back = [order.index(dimension) for dimension in range(len(order))]
    moved = (kept.permute(*order).contiguous().permute(*back) for kept in cache.tensors)
    return KeyValueCache(*moved)


def begun(seed: int, order: Sequence[int]) -> tuple[Slots, Tensor, Tensor, Tensor]:
    """Slots with earlier positions, and a new one for some of them."""
    random = torch.Generator().manual_seed(seed)
    slots = Slots.allocate(SHAPE, len(PLACES), LIMIT, torch.device("cpu"), torch.bfloat16)
    slots = replace(slots, cache=ordered(slots.cache, order))
    for tensor in slots.cache.tensors:
        tensor.copy_(torch.randn(tensor.shape, generator=random))
    index = torch.randperm(len(PLACES), generator=random)
    x = torch.randn(len(PLACES), WIDE, generator=random).bfloat16()
    return slots, x, index, torch.tensor(PLACES)


def plain(network: TalkerModel, slots: Slots, x: Tensor, index: Tensor, position: Tensor) -> Tensor:
    """What FrameStep.run computes, row by row."""
    made = []
    for row, at, one in zip(index, position, x, strict=True):
        attend = SlotAttend(slots.cache, row[None], row[None], at[None, None], int(at) + 1)
        turn = network.rotary_embedding(at[None, None], x.dtype)
        made.append(network.run(one[None, None], turn, attend)[0, 0])
    return torch.stack(made)


@torch.inference_mode()
def test_one_launch_equals_the_plain_talker(twin: Twin) -> None:
    network = stack()
    rows = slice(0, twin.rows)
    slots, x, index, position = begun(3, twin.order)
    other, *_ = begun(3, ORDERS[0])
    x, index, position = x[rows], index[rows], position[rows]
    found = twin(network, slots, x, index, position)
    wanted = plain(network, other, x, index, position)
    exact, *_ = begun(3, ORDERS[0])
    precise = Slots.allocate(SHAPE, len(PLACES), LIMIT, torch.device("cpu"), torch.float64)
    for kept, same in zip(precise.cache.tensors, exact.cache.tensors, strict=True):
        kept.copy_(same)
    truth = plain(stack().double(), precise, x.double(), index, position)
    assert distance(found, truth) < 1.2 * distance(wanted, truth) < 0.03
    for ours, theirs, old in zip(
        slots.cache.tensors, other.cache.tensors, exact.cache.tensors, strict=True
    ):
        new = torch.zeros_like(ours, dtype=torch.bool)
        new[:, index, :, position] = True
        assert torch.equal(ours[~new], old[~new])
        assert distance(ours[new], theirs[new].double()) < 0.02


@torch.inference_mode()
def test_a_row_alone_equals_the_row_in_a_batch(twin: Twin) -> None:
    network, (slots, x, index, position) = stack(), begun(4, twin.order)
    whole = twin(network, slots, x[:16], index[:16], position[:16])
    for row in (0, 6, 12):
        slots, *_ = begun(4, twin.order)
        one = slice(row, row + 1)
        alone = twin(network, slots, x[one], index[one], position[one])
        assert torch.equal(alone, whole[one])
