"""Sampling: the reference's distributions, exact draws, a random stream of the sequence's own."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.checkpoints.checkpoint import RESERVED_CODES
from engine.plan import ResolvedSampling
from engine.worker.state.sampling import (
    CANDIDATES,
    MIN_FRAMES,
    SamplingTensors,
    apply_penalties,
    break_ties,
    candidates,
    code_mask,
    pick,
    rank,
    sampling_row,
    sampling_tensors,
    seed_keys,
    uniforms,
)
from tests.support.golden_cases import Case, sampler_cases, tensors

PLAIN = ResolvedSampling(False, 0.9, 50, 1.0, 1.05, False, 0.9, 50, 1.0)


def table(*draws: ResolvedSampling) -> Tensor:
    return torch.tensor([sampling_row(draw) for draw in draws])


def draw_of(given: dict[str, float]) -> ResolvedSampling:
    names = ("temperature", "top_k", "top_p", "repetition_penalty")
    return replace(PLAIN, **{name: given[name] for name in names})


def distribution(logits: Tensor, sampling: SamplingTensors, count: int | None) -> Tensor:
    """The distribution that `pick` samples from: [rows, V]."""
    ranked = rank(break_ties(logits), sampling, count)
    share = ranked.share * ranked.kept
    share = share / share.sum(-1, keepdim=True)
    return torch.zeros_like(logits, dtype=share.dtype).scatter_(1, ranked.ids, share)


@pytest.mark.parametrize("narrow", [True, False], ids=["candidates", "vocabulary"])
@pytest.mark.parametrize("case", sampler_cases(), ids=str)
def test_distributions_are_the_references(case: Case, narrow: bool) -> None:
    made, draw = tensors(case.folder), draw_of(case.asked)
    count = candidates([(draw.greedy, draw.top_k)]) if narrow else None
    logits = made["sampler.logits"]
    history = made["sampler.history"][:, : case.asked["history"]]
    seen = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, history, True)
    end = case.asked["eos"]
    allowed = code_mask(logits.shape[1], RESERVED_CODES, end)
    if case.asked["history"] < MIN_FRAMES:
        allowed[end] = -torch.inf
    sampling, _, penalty = sampling_tensors(table(draw))
    shares = distribution(apply_penalties(logits, seen, penalty, allowed), sampling, count)
    torch.testing.assert_close(shares, case.tensor("probs"), atol=1e-5, rtol=0)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    top_k=st.integers(1, 80),
    top_p=st.floats(0.05, 1),
    uniform=st.floats(0, 1, exclude_max=True, width=32),
)
def test_a_pick_is_the_distributions_inverse(
    seed: int, top_k: int, top_p: float, uniform: float
) -> None:
    """The mass of what ranks before the pick is at most u, and with the pick it passes u."""
    logits = 4 * torch.randn(1, 300, generator=torch.Generator().manual_seed(seed))
    sampling, _, _ = sampling_tensors(table(replace(PLAIN, top_k=top_k, top_p=top_p)))
    count = candidates([(False, top_k)])
    picked = pick(logits, sampling, torch.tensor([[uniform]]), count)
    shares = distribution(logits, sampling, count)[0].double()
    order = logits[0].argsort(descending=True)
    sums = shares[order].cumsum(0)
    place = (order == picked).nonzero().item()
    assert shares[picked] > 0
    assert sums[place] - shares[picked] <= uniform + 1e-5
    assert sums[place] >= uniform - 1e-5


@pytest.mark.parametrize("least", [5e-324, 1e-50])
def test_the_least_temperature_and_share_are_numbers_for_a_kernel(least: float) -> None:
    """An infinite factor, or a share of zero, left a kernel no id to take: it took code 0."""
    cold = replace(PLAIN, temperature=least, predictor_temperature=least)
    row = table(cold, replace(PLAIN, top_p=least, predictor_top_p=least))
    assert row.isfinite().all()
    assert (row > 0).all()


@given(uniform=st.floats(0, 1, exclude_max=True, width=32))
def test_greedy_rows_take_the_best_beside_others(uniform: float) -> None:
    logits = torch.randn(3, 200, generator=torch.Generator().manual_seed(1))
    sampling, other, _ = sampling_tensors(
        table(replace(PLAIN, greedy=True), PLAIN, replace(PLAIN, top_k=1))
    )
    picked = pick(logits, sampling, torch.full((3, 1), uniform), CANDIDATES)
    assert picked[0] == logits[0].argmax()
    assert picked[2] == logits[2].argmax()
    assert torch.equal(pick(logits, other, torch.zeros(3, 1), None), logits.argmax(-1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@given(seed=st.integers(0, 2**32), top_k=st.sampled_from([1, 3, 50]), uniform=st.floats(0, 0.999))
def test_equal_logits_are_told_apart_alike_in_any_company(
    dtype: torch.dtype, seed: int, top_k: int, uniform: float
) -> None:
    """Independent of how many ids are ranked for other rows; 8 values for 200 ids make ties."""
    logits = torch.randint(8, (1, 200), generator=torch.Generator().manual_seed(seed)).to(dtype)
    sampling, _, _ = sampling_tensors(table(replace(PLAIN, top_k=top_k)))
    counts = [CANDIDATES, None, *([1] if top_k == 1 else [])]
    picked = {int(pick(logits, sampling, torch.tensor([[uniform]]), count)) for count in counts}
    assert len(picked) == 1


def test_candidates_follow_the_rows() -> None:
    assert candidates([(True, 50), (True, 0), (False, 1)]) == 1
    assert candidates([(True, 0), (False, 50)]) == CANDIDATES
    assert candidates([(False, 0), (False, 50)]) is None
    assert candidates([(False, CANDIDATES + 1)]) is None


@given(
    seeds=st.lists(st.integers(0, 2**63 - 1), min_size=2, max_size=6),
    frames=st.lists(st.integers(-1, 9000), min_size=2, max_size=6),
)
def test_uniforms_belong_to_the_sequence(seeds: list[int], frames: list[int]) -> None:
    """A row's numbers do not depend on the other rows."""
    rows = list(zip(seeds, frames, strict=False))
    keys = torch.tensor([seed_keys(seed) for seed, _ in rows])
    made = uniforms(keys, torch.tensor([frame for _, frame in rows]), 16)
    for row, (seed, frame) in enumerate(rows):
        alone = uniforms(torch.tensor([seed_keys(seed)]), torch.tensor([frame]), 16)
        assert torch.equal(made[row : row + 1], alone)
    assert (made >= 0).all()
    assert (made < 1).all()


def test_no_draw_is_used_twice() -> None:
    """Frame n's last number is codebook 0 of frame n + 1: counters never overlap."""
    keys = torch.tensor([seed_keys(7)]).expand(4000, 2)
    made = uniforms(keys, torch.arange(-1, 3999), 16)
    assert len(made.unique()) > 0.99 * made.numel()  # 64,000 of 8 million values: few meet


def test_uniforms_are_even_and_unrelated() -> None:
    """Over frames, over seeds, and between neighbouring seeds, codebooks and frames."""
    frames = torch.arange(2000).repeat_interleave(8)
    keys = torch.tensor([seed_keys(seed) for seed in range(8)]).repeat(2000, 1)
    made = uniforms(keys, frames, 16).view(2000, 8, 16)
    bins = torch.histc(made, 64, 0, 1)
    expected = made.numel() / 64
    assert ((bins - expected).square() / expected).sum() < 120  # chi-squared, 63 degrees
    assert torch.corrcoef(made.reshape(2000, -1).T).triu(1).abs().max() < 0.12
    assert torch.corrcoef(torch.stack((made[1:].flatten(), made[:-1].flatten())))[0, 1].abs() < 0.01


def test_seeds_are_told_apart_in_all_their_bits() -> None:
    keys = {seed_keys(1 << bit) for bit in range(64)} | {seed_keys(0)}
    assert len(keys) == 65
    assert len({first for first, _ in keys} & {second for _, second in keys}) == 0


def test_repetition_is_punished_on_both_sides_of_zero() -> None:
    logits = torch.tensor([[2.0, -2.0, 2.0, -2.0]])
    seen = torch.tensor([[True, True, False, False]])
    got = apply_penalties(logits, seen, torch.tensor([[2.0]]), torch.zeros(4))
    assert got.tolist() == [[1.0, -4.0, 2.0, -2.0]]
