"""Audio replayed by size equals the eager form, whatever shares a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.model.codec import CodecState
from engine.model.convs import ConvCache
from engine.worker.codec.codec_batching import FRAMES, bucket_sizes
from engine.worker.codec.codec_graphs import (
    PRIME_FRAMES,
    Batch,
    EagerCodec,
    GraphCodec,
    PlainStep,
)
from engine.worker.codec.codec_runner import CodecRunner
from engine.worker.loading.model_loader import load_codec
from engine.worker.lru_cache import LRUCache
from tests.conftest import golden_folders
from tests.engine.worker.fake_graphs import fake_capture

SLOTS = 6
CPU = torch.device("cpu")


def played(work: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """Graphs that run eagerly, so that their runs can be counted."""
    return work


@pytest.fixture(scope="module")
def step() -> PlainStep:
    return PlainStep(load_codec(golden_folders()[0], CPU, torch.float64), torch.float64)


class RaggedStep:
    """Decodes each row alone by its own frames, with nonsense behind them."""

    ragged = True

    def __init__(self, step: PlainStep) -> None:
        self._step, self.receptive_frames, self.skip = step, step.receptive_frames, step.skip
        self._hop = step._codec.config.hop

    def __call__(self, codes: Tensor, state: CodecState, rows: Tensor, counts: Tensor) -> Tensor:
        made = torch.full((len(rows), codes.shape[1] * self._hop), 77, dtype=torch.int16)
        for at, count in enumerate(counts.tolist()):
            if count:
                sound = self._step(codes[at : at + 1, :count], state, rows[at : at + 1])
                made[at, : count * self._hop] = sound
        return made


Turn = tuple[tuple[int, ...], tuple[int, ...]]  # rows, and the frames that each goes on by


@st.composite
def turns(draw: st.DrawFn) -> list[Turn]:
    """The longest first."""
    due = st.dictionaries(st.integers(0, SLOTS - 1), st.integers(1, 15), min_size=1)
    plans = draw(st.lists(due, min_size=1, max_size=4))
    plans = [sorted(each.items(), key=lambda row: -row[1]) for each in plans]
    return [tuple(zip(*each, strict=True)) for each in plans]  # type: ignore[misc]


def heard(batches: Sequence[Batch], hop: int = 1) -> dict[int, Tensor]:
    return {
        row: samples[: frames * hop]
        for rows, counts, batch in batches
        for row, frames, samples in zip(rows, counts, batch, strict=True)
    }


@pytest.mark.parametrize("ragged", [False, True])
@settings(max_examples=6, deadline=None)
@given(plan=turns(), seed=st.integers(0, 99))
@example(plan=[((1, 0), (12, 1)), ((0, 2, 1), (5, 3, 3)), ((2,), (15,))], seed=0)
@example(plan=[((4, 2, 1, 3, 0, 5), (15, 14, 7, 7, 7, 1)), ((1, 0), (14, 13))], seed=19)
@torch.inference_mode()
def test_replayed_is_as_written(step: PlainStep, ragged: bool, plan: list[Turn], seed: int) -> None:
    config = step._codec.config
    states = [CodecState.allocate(config, SLOTS + 1, CPU, torch.float64) for _ in range(2)]
    plain, form = EagerCodec(step, states[0]), RaggedStep(step) if ragged else step
    replayed = GraphCodec(form, states[1], SLOTS, fake_capture)
    draw, made = torch.Generator().manual_seed(seed), []
    for rows, counts in plan:
        size = (len(rows), counts[0] + 1, config.codebooks)  # too large ones are the largest
        codes = torch.randint(0, config.codebook_size + 9, size, generator=draw).short()
        made.append((rows, counts, plain(rows, codes, counts), replayed(rows, codes, counts)))
    for rows, counts, *both in made:  # only now: what was handed out stays as it was
        one, two = (heard(batches, config.hop) for batches in both)
        assert {*one} == {*two} == {*rows}
        for row, frames in zip(rows, counts, strict=True):
            assert one[row].dtype == two[row].dtype == torch.int16
            assert len(one[row]) == len(two[row]) == frames * config.hop
            assert (one[row].int() - two[row].int()).abs().max() <= 1
    for one, two in zip(states[0].tensors, states[1].tensors, strict=True):
        torch.testing.assert_close(*scaled(one[:SLOTS], two[:SLOTS]), rtol=1e-6, atol=1e-9)


def scaled(one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:
    """Audio in units of a row's largest number: this codec reaches 1e10, where sums are inexact."""
    one, two = (each.double().reshape(len(each), -1) for each in (one, two))
    largest = one.abs().amax(1, keepdim=True).clamp(min=1)
    return one / largest, two / largest


@settings(max_examples=8, deadline=None)
@given(
    frames=st.integers(1, 2 * PRIME_FRAMES + 20),
    row=st.integers(0, SLOTS - 1),
    ragged=st.booleans(),
)
@torch.inference_mode()
def test_listening_leaves_what_hearing_leaves(
    step: PlainStep, frames: int, row: int, ragged: bool
) -> None:
    config, draw = step._codec.config, torch.Generator().manual_seed(frames)
    codes = torch.randint(0, config.codebook_size, (frames, config.codebooks), generator=draw)
    states = [CodecState.allocate(config, SLOTS + 1, CPU, torch.float64) for _ in range(3)]
    EagerCodec(step, states[0])([row], codes[None], [frames])
    EagerCodec(step, states[1]).prime(row, codes)
    form = RaggedStep(step) if ragged else step
    GraphCodec(form, states[2], SLOTS, fake_capture).prime(row, codes)
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
    sound, receptive_frames = step._codec._waveform, step._codec.receptive_frames

    def noted(x: Tensor, memory: ConvCache) -> Tensor:
        decoded.append(x.shape[-1])
        return sound(x, memory)

    monkeypatch.setattr(step._codec, "_waveform", noted)
    state = CodecState.allocate(step._codec.config, 1, CPU, torch.float64)
    for select_codec in (EagerCodec(step, state), GraphCodec(step, state, 0, played)):
        for frames in (1, receptive_frames, 5 * receptive_frames + PRIME_FRAMES):
            select_codec.prime(0, torch.zeros(frames, 16, dtype=torch.long))
            assert sum(decoded) == min(frames, receptive_frames)
            decoded.clear()


@torch.inference_mode()
def test_more_rows_than_a_recording_takes(step: PlainStep, monkeypatch: pytest.MonkeyPatch) -> None:
    config, rows = step._codec.config, range(80)
    states = [CodecState.allocate(config, len(rows) + 1, CPU, torch.float64) for _ in range(2)]
    codes = torch.randint(0, config.codebook_size, (len(rows), 2, config.codebooks))
    counts = [2] * 10 + [1] * 70
    alone = EagerCodec(step, states[0])(rows, codes, counts)
    many = GraphCodec(RaggedStep(step), states[1], len(rows), fake_capture)(rows, codes, counts)
    one, two = heard(alone, config.hop), heard(many, config.hop)
    assert all((one[row].int() - two[row].int()).abs().max() <= 1 for row in rows)


@torch.inference_mode()
def test_talkers_are_decoded_as_one(step: PlainStep) -> None:
    """Batches of unlike lengths, in any order."""
    config, draw = step._codec.config, torch.Generator().manual_seed(0)
    codes = torch.randint(0, config.codebook_size, (SLOTS, 7, config.codebooks), generator=draw)
    work = [([4, 1], codes[[4, 1], :3], [1, 3]), ([0, 5], codes[[0, 5]], [7, 3])]
    one, two = (CodecRunner(step._codec, SLOTS, LRUCache(1), torch.float64) for _ in range(2))
    together = one.decode(work).batches
    for slots, codes, counts in work:
        for slot, each, frames in zip(slots, codes, counts, strict=True):
            [(_, lengths, alone)] = two.decode([([slot], each[None], [frames])]).batches
            assert lengths == [frames * config.hop]
            made = heard(together)[slot]
            assert made.shape == alone[0].shape
            assert (made.int() - alone[0].int()).abs().max() <= 1


@torch.inference_mode()
def test_rows_are_reset(step: PlainStep) -> None:
    for rows in ([4], [5, 0, 3], list(range(100, 200))):
        for form in (EagerCodec, lambda *each: GraphCodec(*each, 200, fake_capture)):
            state = CodecState.allocate(step._codec.config, 201, CPU, torch.float64)
            for tensor in state.tensors:
                tensor.fill_(1)
            form(step, state).reset(rows)
            others = [row for row in range(200) if row not in rows]
            assert all(not tensor[rows].any() for tensor in state.tensors)
            assert all(bool(tensor[others].all()) for tensor in state.tensors)


@torch.inference_mode()
def test_warming_leaves_streams_alone(step: PlainStep) -> None:
    state = CodecState.allocate(step._codec.config, 3, CPU, torch.float64)
    select_codec = GraphCodec(step, state, 2, fake_capture)
    select_codec.warm(2)
    assert all(not tensor[:2].any() for tensor in state.tensors)
    assert len(select_codec._graphs) == len(bucket_sizes(2)) + 2 + len(
        FRAMES
    )  # and resets of 1 and 2
