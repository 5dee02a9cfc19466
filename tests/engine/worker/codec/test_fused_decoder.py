"""The fused decoder gives the plain decoder's audio; without a GPU, in Triton's interpreter."""

from __future__ import annotations

import os
from copy import deepcopy

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.model.codec import CodecDecoder, CodecState
from engine.model.configs import CodecConfig, TransformerConfig

HERE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if HERE.type == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
pytest.importorskip("triton")

from engine.worker.codec.codec_graphs import CODEC_TOLERANCE, FULL_SCALE  # noqa: E402
from engine.worker.codec.codec_runner import CodecRunner  # noqa: E402
from engine.worker.codec.fused_decoder import MAX_FRAMES, FusedDecoder, supports  # noqa: E402
from engine.worker.device import set_libraries  # noqa: E402
from engine.worker.lru_cache import LRUCache  # noqa: E402
from tests.support.random_codec import random_codec  # noqa: E402

set_libraries(HERE)  # as the worker does: the plain decoder's convolutions would have ten bits

ROWS = 3
BLOCK = TransformerConfig(
    hidden_size=32, intermediate_size=48, layers=2, heads=2, kv_heads=2, head_dim=32,
    rope_theta=1e4, norm_eps=1e-5,
    qk_norm=False, layer_scale=True, sliding_window=13,
)  # fmt: skip
SHAPE = CodecConfig(
    transformer=BLOCK, codebook_size=32, codebook_dim=32, codebooks=16, latent_dim=32,
    decoder_dim=64, upsampling_ratios=(2,), upsample_rates=(3, 2),
)  # fmt: skip


@pytest.fixture(scope="module")
def codec() -> CodecDecoder:
    return random_codec(SHAPE, 0.1).to(HERE)


@settings(max_examples=3, deadline=None)
@given(sizes=st.lists(st.integers(1, MAX_FRAMES), min_size=2, max_size=4), seed=st.integers(0, 9))
@example(sizes=[1, 12, 2], seed=0)
@torch.inference_mode()
def test_streamed_audio_equals_the_plain_decoders(
    codec: CodecDecoder, sizes: list[int], seed: int
) -> None:
    draw, frames = torch.Generator().manual_seed(seed), sum(sizes)
    codes = torch.randint(0, 32, (2, SHAPE.codebooks, frames), generator=draw).to(HERE)
    rows = torch.randperm(ROWS, generator=draw)[:2].to(HERE)
    fused = FusedDecoder(codec, torch.float32)
    state = CodecState.allocate(SHAPE, ROWS, HERE, torch.float32)
    made = [fused.step(piece, state, rows) for piece in codes.split(sizes, -1)]
    whole = codec(codes)
    assert 0.01 < whole.std() < whole.abs().max() < 1
    torch.testing.assert_close(torch.cat(made, 1), whole, rtol=0, atol=2e-4)
    assert state.frames[rows].tolist() == [frames] * 2


@torch.inference_mode()
def test_rows_advance_by_their_own_frames(codec: CodecDecoder) -> None:
    """Each row is as if it were alone; the padding row, twice in every step, is unchanged."""
    draw, fused, hop = (
        torch.Generator().manual_seed(5),
        FusedDecoder(codec, torch.float32),
        SHAPE.hop,
    )
    states = [CodecState.allocate(SHAPE, ROWS + 1, HERE, torch.float32) for _ in range(2)]
    codes = torch.randint(0, 32, (ROWS, SHAPE.codebooks, 20), generator=draw).to(HERE)
    whole, places = codec(codes), [0] * ROWS
    rows = torch.tensor([2, 0, 1, ROWS, ROWS], device=HERE)
    for counts in ((12, 1, 5), (1, 4, 2)):
        spoken = torch.full((len(rows), SHAPE.codebooks, max(counts)), 3000, device=HERE)
        for at, (row, count) in enumerate(zip(rows.tolist(), counts, strict=False)):
            spoken[at, :, :count] = codes[row, :, places[row] : places[row] + count]
            fused.step(spoken[at : at + 1, :, :count], states[1], rows[at : at + 1])
        going = torch.tensor([*counts, 0, 0], device=HERE)
        made = fused.step(spoken, states[0], rows, going)
        assert made.isfinite().all()
        for at, (row, count) in enumerate(zip(rows.tolist(), counts, strict=False)):
            wanted = whole[row, places[row] * hop :][: count * hop]
            torch.testing.assert_close(made[at, : count * hop], wanted, rtol=0, atol=2e-4)
            places[row] += count
    for ragged, alone in zip(*(state.tensors for state in states), strict=True):
        torch.testing.assert_close(ragged, alone, rtol=1e-4, atol=1e-4)
        assert not ragged[ROWS].any()
    assert states[0].frames.tolist() == [5, 7, 13, 0]


@torch.inference_mode()
def test_audio_after_skipped_frames_is_the_plain_decoders(codec: CodecDecoder) -> None:
    draw, skipped, more = torch.Generator().manual_seed(3), MAX_FRAMES + 2, 3
    frames = skipped + codec.receptive_frames + more
    codes = torch.randint(0, 32, (1, frames, SHAPE.codebooks), generator=draw).to(HERE)
    fused, row = FusedDecoder(codec, torch.float32), torch.ones(1, dtype=torch.long, device=HERE)
    state = CodecState.allocate(SHAPE, ROWS, HERE, torch.float32)
    fused.skip(codes[:, :MAX_FRAMES], state, row)
    fused.skip(codes[:, MAX_FRAMES:skipped], state, row)
    rest = codes[:, skipped:].transpose(1, 2)
    made = torch.cat([fused.step(piece, state, row) for piece in rest.split(MAX_FRAMES, -1)], 1)
    wanted = codec(codes.transpose(1, 2))
    heard = more * SHAPE.hop
    torch.testing.assert_close(made[:, -heard:], wanted[:, -heard:], rtol=0, atol=2e-4)
    assert state.frames.tolist() == [0, frames, 0]


@torch.inference_mode()
def test_values_too_large_for_float16_stay_finite(codec: CodecDecoder) -> None:
    loud = deepcopy(codec)
    loud.decoder[0].conv.weight.mul_(1e5)
    state = CodecState.allocate(SHAPE, 1, HERE, torch.float16)
    row = torch.zeros(1, dtype=torch.long, device=HERE)
    codes = torch.zeros(1, SHAPE.codebooks, 2, dtype=torch.long, device=HERE)
    wave = FusedDecoder(loud, torch.float16).step(codes, state, row)
    assert state.pasts.abs().max() > 60_000
    assert state.pasts.isfinite().all()
    assert wave.isfinite().all()


@pytest.mark.skipif(HERE.type == "cpu", reason="there is no GPU here")
@torch.inference_mode()
def test_replayed_streams_in_float16_are_close(codec: CodecDecoder) -> None:
    slots, hop = 5, SHAPE.hop
    codes = torch.randint(0, 32, (slots, SHAPE.codebooks, 60), device=HERE)
    codec_runner = CodecRunner(deepcopy(codec), slots, LRUCache(1 << 20), torch.float16)
    codec_runner.warm()
    codec_runner.open([(slot, None) for slot in range(slots)])
    heard: list[list[torch.Tensor]] = [[] for _ in range(slots)]
    places = [0] * slots
    for counts in ((1,) * 5, (3, 12, 1, 7, 2), (12, 1, 14, 1), (5, 5), (1, 9, 6, 9, 1)):
        due = range(len(counts))
        spoken = torch.stack([codes[slot, :, places[slot] :][:, :14].T for slot in due])
        made = codec_runner.decode([([*due], spoken, counts)])
        made.done.synchronize()
        for each, lengths, batch in made.batches:
            for slot, length, samples in zip(each, lengths, batch.clone(), strict=True):
                heard[slot].append(samples[:length])
                places[slot] += length // hop
    for slot, wave in enumerate(codec(codes).cpu()):
        made = torch.cat(heard[slot]).float() / FULL_SCALE
        assert len(made) == places[slot] * hop
        noise = made - wave[: len(made)]
        assert noise.square().mean() < 1e-4 * wave.var()


def test_published_sizes_are_supported_and_tiny_ones_are_not() -> None:
    from bench.random_config import codec_config

    def config(size: str) -> CodecConfig:
        return CodecConfig.from_dict(codec_config(size)["decoder_config"])

    assert supports(config("1.7B"))
    assert not supports(config("tiny"))


@torch.inference_mode()
def test_kernels_are_compared_with_the_plain_decoder(codec: CodecDecoder) -> None:
    fused = FusedDecoder(codec, torch.float32)
    assert fused.difference(codec) < 1e-3
    wrong = deepcopy(codec)
    wrong.decoder[2].block[2].conv1.conv.weight.zero_()
    assert fused.difference(wrong) > CODEC_TOLERANCE
