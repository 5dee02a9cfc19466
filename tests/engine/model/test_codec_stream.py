"""Streamed audio equals offline audio, for every chunking and in any batch."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.model.codec import CodecDecoder, CodecState
from engine.worker.loading.model_loader import load_codec
from tests.conftest import golden_folders

CPU = torch.device("cpu")
FRAMES = 30  # more than twice the golden window
ROWS = 4
CLOSE = {"rtol": 0, "atol": 1e-5}


class Streams:
    """A decoder, a state of a few rows, and each row's offline audio."""

    def __init__(self, folder: Path) -> None:
        self.decoder: CodecDecoder = load_codec(folder, CPU, torch.float32)
        self.config = self.decoder.config
        draw = torch.Generator().manual_seed(1)
        size = (ROWS, self.config.codebooks, FRAMES)
        self.codes = torch.randint(0, self.config.codebook_size, size, generator=draw)
        with torch.inference_mode():
            self.whole = self.decoder(self.codes)  # of stream i: row i

    def state(self) -> CodecState:
        return CodecState.allocate(self.config, ROWS, "cpu", torch.float32)

    @torch.inference_mode()
    def step(self, state: CodecState, at: dict[int, tuple[int, int]], count: int) -> Tensor:
        """Advance rows, each at frame `start` of a stream: {row: (stream, start)}."""
        places = at.values()
        codes = torch.stack([self.codes[i, :, start : start + count] for i, start in places])
        return self.decoder.step(codes, state, torch.tensor(list(at)))

    def check(self, wave: Tensor, stream: int, start: int) -> None:
        first = start * self.config.hop
        torch.testing.assert_close(wave, self.whole[stream, first : first + len(wave)], **CLOSE)


@cache
def streams(folder: Path) -> Streams:
    return Streams(folder)


def folders() -> list[Path]:
    """A golden folder for each size of codec: others of that size would show the same."""
    config = Path("speech_tokenizer", "config.json")
    return list({(folder / config).read_bytes(): folder for folder in golden_folders()}.values())


FOLDERS = st.sampled_from(folders())
CHUNKS = st.lists(st.integers(1, FRAMES), min_size=1, max_size=FRAMES)


@settings(max_examples=8, deadline=None)
@given(FOLDERS, CHUNKS, st.permutations(range(ROWS)))
def test_any_chunking_gives_the_same_audio(
    folder: Path, chunks: list[int], rows: list[int]
) -> None:
    known, start = streams(folder), 0
    state = known.state()
    for count in (*chunks, *[1] * FRAMES):
        count = min(count, FRAMES - start)
        if not count:
            break
        at = {row: (stream, start) for stream, row in enumerate(rows)}
        for stream, wave in enumerate(known.step(state, at, count)):
            known.check(wave, stream, start)
        start += count


@st.composite
def bustle(draw: st.DrawFn) -> list[tuple[set[int], set[int], int]]:
    """Steps of (rows to restart, rows to advance, frames)."""
    rows = st.sets(st.integers(0, ROWS - 1))
    step = st.tuples(rows, rows.filter(bool), st.integers(1, 4))
    return draw(st.lists(step, min_size=4, max_size=14))


@settings(max_examples=8, deadline=None)
@given(FOLDERS, bustle())
def test_rows_at_different_positions_do_not_affect_each_other(
    folder: Path, steps: list[tuple[set[int], set[int], int]]
) -> None:
    known = streams(folder)
    state, places = known.state(), {row: (row, 0) for row in range(ROWS)}
    for restart, advance, count in steps:
        if restart:
            state.reset(torch.tensor(sorted(restart)))
        for row in restart:  # the next stream takes the row over
            places[row] = ((places[row][0] + 1) % ROWS, 0)
        at = {row: places[row] for row in advance if places[row][1] + count <= FRAMES}
        if not at:
            continue
        for wave, (row, (stream, start)) in zip(
            known.step(state, at, count), at.items(), strict=True
        ):
            known.check(wave, stream, start)
            places[row] = (stream, start + count)


@settings(max_examples=6, deadline=None)
@given(FOLDERS, st.integers(1, FRAMES - 6), st.integers(0, ROWS - 1), st.integers(0, ROWS - 1))
def test_a_snapshot_continues_in_another_row(
    folder: Path, start: int, row: int, other: int
) -> None:
    known = streams(folder)
    state = known.state()
    known.step(state, {row: (0, 0)}, start)
    kept = state.snapshot(torch.tensor([row]))
    known.step(state, {row: (0, start)}, 3)  # the snapshot is a copy: it stays behind
    elsewhere = known.state()
    known.step(elsewhere, {other: (1, 0)}, 5)  # what the row held before is forgotten
    for target in (elsewhere, state):
        target.restore(torch.tensor([other]), kept)
        wave = known.step(target, {other: (0, start)}, 6)[0]
        known.check(wave, 0, start)


@settings(max_examples=8, deadline=None)
@given(FOLDERS, st.lists(st.integers(1, 9), max_size=4), st.integers(0, ROWS - 1))
@torch.inference_mode()
def test_audio_after_skipped_frames_equals_offline_audio(
    folder: Path, pieces: list[int], row: int
) -> None:
    """From `receptive_frames` after the last skipped frame on."""
    known, state, start = streams(folder), streams(folder).state(), 0
    receptive_frames = known.decoder.receptive_frames
    for count in pieces:
        count = min(count, FRAMES - 1 - receptive_frames - start)
        if count > 0:
            codes = known.codes[:1, :, start : start + count]
            known.decoder.skip(codes, state, torch.tensor([row]))
            start += count
    known.step(state, {row: (0, start)}, receptive_frames)
    start += receptive_frames
    known.check(known.step(state, {row: (0, start)}, FRAMES - start)[0], 0, start)


@torch.inference_mode()
def test_receptive_frames_are_needed() -> None:
    known, row = streams(folders()[0]), torch.tensor([0])
    receptive_frames, heard, skipped = known.decoder.receptive_frames, known.state(), known.state()
    known.step(heard, {0: (0, 0)}, receptive_frames)
    known.decoder.skip(known.codes[:1, :, :1], skipped, row)
    known.step(skipped, {0: (0, 1)}, receptive_frames - 1)
    assert not torch.allclose(heard.pasts, skipped.pasts, atol=1e-5)


def test_a_reset_clears_every_value() -> None:
    """Not even NaN, which a mask alone would let through."""
    known = streams(folders()[0])
    state = known.state()
    for tensor in state.tensors[1:]:
        tensor.fill_(float("nan"))
    state.reset(torch.arange(ROWS))
    known.check(known.step(state, {1: (0, 0)}, 4)[0], 0, 0)


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_a_step_never_reads_values_on_the_host(folder: Path) -> None:
    """Meta tensors have no values: a step that reads one on the host fails here."""
    config = streams(folder).config
    with torch.device("meta"):
        decoder = CodecDecoder(config)
        codes = torch.zeros(2, config.codebooks, 3, dtype=torch.long)
        state = CodecState.allocate(config, ROWS, "meta", torch.float32)
        wave = decoder.step(codes, state, torch.zeros(2, dtype=torch.long))
        decoder.skip(codes, state, torch.zeros(2, dtype=torch.long))
    assert wave.shape == (2, 3 * config.hop)
