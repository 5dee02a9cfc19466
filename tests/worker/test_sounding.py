"""Sound that is replayed by size is the sound of the plain form, whatever shares a recording."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.model.codec import CodecState
from engine.model.convs import Memory
from engine.worker.networks import load_codec
from engine.worker.sounding import (
    FEW,
    FRAMES,
    MOST,
    PIECE,
    ROWS,
    PlainSounding,
    PlainStep,
    ReplayedSounding,
    pieces,
    sizes,
)
from tests.conftest import golden_folders
from tests.worker.playing import record

SLOTS = 6
CPU = torch.device("cpu")


def played(work: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """Nothing is recorded before it is played again: what runs can be counted."""
    return work


@pytest.fixture(scope="module")
def step() -> PlainStep:
    return PlainStep(load_codec(golden_folders()[0], CPU, torch.float64), torch.float64)


@st.composite
def schedule(draw: st.DrawFn) -> list[tuple[list[int], int]]:
    """Batches of rows, each with the frames that they go on by."""
    rows = st.lists(st.integers(0, SLOTS - 1), min_size=1, max_size=SLOTS, unique=True)
    return draw(st.lists(st.tuples(rows, st.integers(1, 15)), min_size=1, max_size=5))


@settings(max_examples=15, deadline=None)
@given(plan=schedule(), seed=st.integers(0, 99))
@torch.inference_mode()
def test_replayed_is_as_written(
    step: PlainStep, plan: list[tuple[list[int], int]], seed: int
) -> None:
    shape = step._codec.shape
    states = [CodecState.allocate(shape, SLOTS + 1, CPU, torch.float64) for _ in range(2)]
    plain = PlainSounding(step, states[0])
    replayed = ReplayedSounding(step, states[1], SLOTS, record)
    draw, made = torch.Generator().manual_seed(seed), []
    for rows, frames in plan:
        size = (len(rows), frames, shape.codebooks)
        codes = torch.randint(0, shape.codebook_size, size, generator=draw)
        made.append((plain(rows, codes), replayed(rows, codes)))
    for one, two in made:  # only now: what was handed out stays as it was
        assert one.dtype == two.dtype == torch.int16
        assert (one.int() - two.int()).abs().max() <= 1
    for one, two in zip(states[0].tensors, states[1].tensors, strict=True):
        torch.testing.assert_close(one[:SLOTS], two[:SLOTS], rtol=1e-6, atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(frames=st.integers(1, 2 * PIECE + 20), row=st.integers(0, SLOTS - 1))
@torch.inference_mode()
def test_listening_leaves_what_hearing_leaves(step: PlainStep, frames: int, row: int) -> None:
    shape, draw = step._codec.shape, torch.Generator().manual_seed(frames)
    codes = torch.randint(0, shape.codebook_size, (frames, shape.codebooks), generator=draw)
    states = [CodecState.allocate(shape, SLOTS + 1, CPU, torch.float64) for _ in range(3)]
    PlainSounding(step, states[0])([row], codes[None])
    PlainSounding(step, states[1]).listen(row, codes)
    ReplayedSounding(step, states[2], SLOTS, record).listen(row, codes)
    others = [other for other in range(SLOTS) if other != row]
    for heard, plain, replayed in zip(*(state.tensors for state in states), strict=True):
        torch.testing.assert_close(plain, heard, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(replayed[:SLOTS], heard[:SLOTS], rtol=1e-6, atol=1e-6)
        assert not plain[others].any()


@torch.inference_mode()
def test_of_a_reference_only_the_end_is_decoded(
    step: PlainStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    sound, reach = step._codec._sound, step._codec.reach

    def noted(x: Tensor, memory: Memory) -> Tensor:
        decoded.append(x.shape[-1])
        return sound(x, memory)

    monkeypatch.setattr(step._codec, "_sound", noted)
    state = CodecState.allocate(step._codec.shape, 1, CPU, torch.float64)
    for sounding in (PlainSounding(step, state), ReplayedSounding(step, state, 0, played)):
        for frames in (1, reach, 5 * reach + PIECE):
            sounding.listen(0, torch.zeros(frames, 16, dtype=torch.long))
        assert decoded == [1, reach, reach]
        decoded.clear()


@given(st.integers(1, 500), st.sampled_from(ROWS))
def test_pieces_are_sizes_that_are_recorded(frames: int, rows: int) -> None:
    parts = list(pieces(frames, rows))
    assert sum(parts) == frames
    assert all((rows, part) in sizes(ROWS[-1]) for part in parts if rows * part <= MOST)
    assert len(parts) == 1 or frames > FRAMES[-1] or rows > FEW


@torch.inference_mode()
def test_more_rows_than_a_recording_takes(step: PlainStep, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, rows = step._codec.shape, range(150)
    states = [CodecState.allocate(shape, len(rows) + 1, CPU, torch.float64) for _ in range(2)]
    codes = torch.randint(0, shape.codebook_size, (len(rows), 1, shape.codebooks))
    alone = PlainSounding(step, states[0])(rows, codes)
    many = ReplayedSounding(step, states[1], len(rows), record)(rows, codes)
    assert (alone.int() - many.int()).abs().max() <= 1


@torch.inference_mode()
def test_warming_leaves_streams_alone(step: PlainStep) -> None:
    state = CodecState.allocate(step._codec.shape, 3, CPU, torch.float64)
    sounding = ReplayedSounding(step, state, 2, record)
    sounding.warm(2)
    assert all(not tensor[:2].any() for tensor in state.tensors)
    assert len(sounding._replays) == len(sizes(2)) + len(FRAMES) > 3 * len(FRAMES)
