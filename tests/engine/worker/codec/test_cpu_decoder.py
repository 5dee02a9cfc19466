"""The codec's kernel for CPUs gives the plain decoder's audio, whatever else it decodes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.model.codec import CodecDecoder, CodecState
from engine.model.configs import CodecConfig, TransformerConfig
from engine.worker.codec.codec_graphs import (
    CODEC_TOLERANCE,
    FLOAT_TOLERANCE,
    FULL_SCALE,
    PlainStep,
    select_cpu_step,
)
from engine.worker.codec.cpu_decoder import MAX_FRAMES, CpuDecoder, PackedCodec, supports
from engine.worker.device import multiplies_bfloat16
from engine.worker.kernels.cpu import amx
from engine.worker.loading.model_loader import load_codec
from engine.worker.loading.packed_file import form_of
from engine.worker.loading.weight_loader import empty_network
from studio.cli.app_context import MINI
from tests.support.random_codec import random_codec
from tests.support.serving import wait_until

ROWS, THREADS, CPU = 4, 2, torch.device("cpu")
BLOCK = TransformerConfig(
    hidden_size=32, intermediate_size=48, layers=2, heads=2, kv_heads=2, head_dim=16,
    rope_theta=1e4, norm_eps=1e-5, qk_norm=False, layer_scale=True, sliding_window=7,
)  # fmt: skip
SHAPE = CodecConfig(
    transformer=BLOCK, codebook_size=32, codebook_dim=32, codebooks=16, latent_dim=48,
    decoder_dim=64, upsampling_ratios=(2,), upsample_rates=(3, 2),
)  # fmt: skip
KINDS = ["float32", "float16", *(["bfloat16"] if multiplies_bfloat16() else [])]


@pytest.fixture(scope="module")
def codec() -> CodecDecoder:
    return random_codec(SHAPE, 0.05)


@pytest.fixture(scope="module", params=[*KINDS, *(["refused"] if amx.permitted() else [])])
def decoder(request: pytest.FixtureRequest, codec: CodecDecoder) -> Iterator[CpuDecoder]:
    """`refused`: bfloat16 without tile registers."""
    refused = request.param == "refused"
    with pytest.MonkeyPatch.context() as patch:
        if refused:
            patch.setattr(amx, "permitted", lambda: False)
        made = CpuDecoder(PackedCodec(codec, "bfloat16" if refused else request.param), THREADS)
    yield made
    made.team.close()


def random_codes(rows: int, frames: int, seed: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(0, SHAPE.codebook_size, (rows, SHAPE.codebooks, frames), generator=draw)


def streamed(
    decoder: CpuDecoder, codes: Tensor, sizes: list[int], rows: Tensor, state: CodecState
) -> Tensor:
    return torch.cat([decoder.step(piece, state, rows) for piece in codes.split(sizes, -1)], 1)


def keeps_float32(decoder: CpuDecoder) -> bool:
    return decoder.packed.arrays["weights.0"].dtype == torch.float32


def tolerance(decoder: CpuDecoder) -> float:
    return 3e-2 if len(decoder.memories) > 1 else 1e-4 if keeps_float32(decoder) else 3e-3


@settings(max_examples=6, deadline=None)
@given(
    width=st.integers(1, 12).map(lambda count: 8 * count), split=st.integers(1, 6),
    kind=st.sampled_from(KINDS), seed=st.integers(0, 9),
)  # fmt: skip
@example(width=96, split=1, kind="float32", seed=0)
@example(width=40, split=5, kind=KINDS[-1], seed=0)
@torch.inference_mode()
def test_widths_that_do_not_fill_vectors_sound_the_same(
    width: int, split: int, kind: str, seed: int
) -> None:
    shape = replace(SHAPE, decoder_dim=width)
    codec, codes = random_codec(shape, 0.05), random_codes(2, 7, seed)
    made = CpuDecoder(PackedCodec(codec, kind), THREADS)
    for memory in made.memories:  # numbers behind the channels are never read
        memory.inputs.view(np.uint8).fill(255)
        memory.sums.fill(np.nan)
    rows = torch.tensor([2, 0])
    whole, parts = (CodecState.allocate(shape, ROWS, CPU, torch.float32) for _ in range(2))
    wave = made.step(codes, whole, rows)
    assert torch.equal(streamed(made, codes, [split, 7 - split], rows, parts), wave)
    for one, two in zip(whole.tensors, parts.tensors, strict=True):
        assert torch.equal(one, two)
    torch.testing.assert_close(wave, codec(codes), rtol=0, atol=tolerance(made))
    made.team.close()


@settings(max_examples=6, deadline=None)
@given(
    sizes=st.lists(st.integers(1, MAX_FRAMES), min_size=2, max_size=4), seed=st.integers(0, 9),
    threads=st.integers(1, THREADS),
)  # fmt: skip
@example(sizes=[1, 12, 2], seed=0, threads=2)
@torch.inference_mode()
def test_streamed_audio_is_the_plain_decoders_and_bit_for_bit_the_wholes(
    codec: CodecDecoder, decoder: CpuDecoder, sizes: list[int], seed: int, threads: int
) -> None:
    codes = random_codes(2, sum(sizes), seed)
    rows = torch.tensor([3, 1])
    states = [CodecState.allocate(SHAPE, ROWS, CPU, torch.float32) for _ in range(2)]
    decoder.threads = threads
    made = streamed(decoder, codes, sizes, rows, states[0])
    decoder.threads = THREADS
    for row in range(2):  # alone, at once
        alone = codes[row : row + 1]
        assert torch.equal(decoder.step(alone, states[1], rows[row : row + 1])[0], made[row])
    for one, two in zip(*(state.tensors for state in states), strict=True):
        assert torch.equal(one, two)
    whole = codec(codes)
    assert 0.01 < whole.std() < whole.abs().max() <= 1
    torch.testing.assert_close(made, whole, rtol=0, atol=tolerance(decoder))
    assert states[0].frames.tolist() == [0, sum(sizes), 0, sum(sizes)]


@pytest.mark.skipif(not amx.permitted(), reason="this processor has no tile registers")
@torch.inference_mode()
def test_tile_registers_are_used_where_they_are_permitted(
    codec: CodecDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their sums are rounded otherwise."""
    codes, row = random_codes(1, 8), torch.zeros(1, dtype=torch.long)

    def wave() -> Tensor:
        made = CpuDecoder(PackedCodec(codec, "bfloat16"), 1)
        return made.step(codes, CodecState.allocate(SHAPE, 1, CPU, torch.float32), row)

    with_them = wave()
    monkeypatch.setattr(amx, "permitted", lambda: False)
    assert not torch.equal(wave(), with_them)


@torch.inference_mode()
def test_more_rows_than_frames_of_a_step_are_decoded_one_after_the_other(
    decoder: CpuDecoder,
) -> None:
    count = MAX_FRAMES + 3
    codes, rows = random_codes(count, 2), torch.randperm(count)
    states = [CodecState.allocate(SHAPE, count, CPU, torch.float32) for _ in range(2)]
    together = decoder.step(codes, states[0], rows)
    for row, place in enumerate(rows):
        alone = decoder.step(codes[row : row + 1], states[1], place[None])
        assert torch.equal(alone[0], together[row])


@torch.inference_mode()
def test_audio_after_skipped_frames_is_exact_again(decoder: CpuDecoder) -> None:
    skipped, more, row = 9, 3, torch.tensor([1])
    codes = random_codes(1, skipped + decoder.receptive_frames + more, 3)
    states = [CodecState.allocate(SHAPE, ROWS, CPU, torch.float32) for _ in range(2)]
    decoder.skip(codes[..., :skipped].transpose(1, 2), states[0], row)
    made = decoder.step(codes[..., skipped:], states[0], row)
    wanted = decoder.step(codes, states[1], row)
    assert torch.equal(made[:, -more * SHAPE.hop :], wanted[:, -more * SHAPE.hop :])
    for one, two in zip(*(state.tensors for state in states), strict=True):
        assert torch.equal(one, two)


@torch.inference_mode()
def test_a_stream_goes_on_from_a_snapshot_in_another_row(decoder: CpuDecoder) -> None:
    codes, row, other = random_codes(1, 12, 4), torch.tensor([0]), torch.tensor([2])
    state = CodecState.allocate(SHAPE, ROWS, CPU, torch.float32)
    decoder.step(codes[..., :7], state, row)
    state.restore(other, state.snapshot(row))
    rest = [decoder.step(codes[..., 7:], state, each) for each in (row, other)]
    assert torch.equal(*rest)
    state.reset(other)
    fresh = CodecState.allocate(SHAPE, ROWS, CPU, torch.float32)
    again, first = (decoder.step(codes, kept, other) for kept in (state, fresh))
    assert torch.equal(again, first)


@torch.inference_mode()
def test_a_kernel_that_differs_is_found(codec: CodecDecoder, decoder: CpuDecoder) -> None:
    tolerance = FLOAT_TOLERANCE if keeps_float32(decoder) else CODEC_TOLERANCE
    assert decoder.difference(codec) < tolerance / 10
    wrong = deepcopy(codec)
    wrong.decoder[2].block[2].conv1.conv.weight.zero_()
    assert decoder.difference(wrong) > CODEC_TOLERANCE


@torch.inference_mode()
@pytest.mark.parametrize("raises", [False, True])
def test_a_kernel_that_is_not_used_leaves_no_threads(
    codec: CodecDecoder, monkeypatch: pytest.MonkeyPatch, raises: bool
) -> None:
    before = set(threading.enumerate())

    def compare(decoder: CpuDecoder, codec: CodecDecoder) -> float:
        assert {each.name for each in set(threading.enumerate()) - before} == {"kernel 1"}
        if raises:
            raise ValueError("no compiler")
        return 1.0

    monkeypatch.setattr(CpuDecoder, "difference", compare)
    assert select_cpu_step(codec, THREADS) is None
    wait_until(lambda: set(threading.enumerate()) <= before)


def test_the_embedded_model_sounds_the_same() -> None:
    """Samples of 16 bits are at most one apart; codes above the largest are the largest."""
    codec = load_codec(MINI, CPU, torch.float32)
    state = CodecState.allocate(codec.config, 1, CPU, torch.float32)
    step = select_cpu_step(codec, THREADS)
    assert step is not None
    assert len(step.decoder.memories) == 1
    draw = torch.Generator().manual_seed(1)
    codes = torch.randint(0, codec.config.codebook_size, (1, 20, 16), generator=draw).short()
    codes[:, 7] = 9999
    row = torch.zeros(1, dtype=torch.long)
    found = torch.cat([step(each, state, row) for each in codes.split(7, 1)], 1)
    state = CodecState.allocate(codec.config, 1, CPU, torch.float32)
    wanted = PlainStep(codec, torch.float32)(codes, state, row)
    assert wanted.abs().max() > FULL_SCALE // 20
    assert (found.int() - wanted.int()).abs().max() <= 1
    step.close()


@pytest.mark.parametrize("kind", KINDS)
def test_kept_arrays_give_the_same_audio(codec: CodecDecoder, kind: str) -> None:
    """Where everything is in them follows from the sizes alone."""
    made = PackedCodec(codec, kind)
    empty = empty_network(lambda: CodecDecoder(SHAPE), torch.float32)
    forms = PackedCodec.forms(empty, kind)
    assert {name: form_of(each) for name, each in made.arrays.items()} == forms
    codes, row = random_codes(1, 5), torch.zeros(1, dtype=torch.long)
    waves = []
    for packed in (made, PackedCodec(empty, kind, made.arrays)):
        decoder = CpuDecoder(packed, THREADS)
        state = CodecState.allocate(SHAPE, 1, CPU, torch.float32)
        waves.append(decoder.step(codes, state, row))
        assert decoder.receptive_frames == codec.receptive_frames
        decoder.team.close()
    assert torch.equal(*waves)


def test_published_sizes_are_supported_and_odd_ones_are_not() -> None:
    from bench.random_config import codec_config

    for size in ("1.7B", "tiny"):
        assert supports(CodecConfig.from_dict(codec_config(size)["decoder_config"]))
    for width, supported in ((40, True), (36, False)):  # 36 >> 2 is odd
        assert supports(replace(SHAPE, decoder_dim=width)) == supported
    assert not supports(replace(SHAPE, latent_dim=40))
