"""How many cores the codec gets beside a step, from times by threads."""

from __future__ import annotations

import math

import pytest

from engine.worker.core_shares import CoreShares, FrameTimes

COUNTS = (1, 2, 4, 7, 8, 10, 12, 14)
# ms on a Xeon (docs/experiments/2026-11-25-fifteen-cores.md): predictor, talker; a codec's frame
FOUR_BITS = (150, 48, 27.6, 20.1, 19.4, 15.6, 15.6, 14.7)
EIGHT_BITS = (259, 158, 43.3, 36.8, 33.8, 29.9, 25.2, 23.0)
CODEC = (66, 33, 17.5, 18, 16, 13.3, 10.8, 9.5)
GLUE = 6.0  # ms of a step that no thread shortens


def table(ms: tuple[float, ...], most: int = 14) -> dict[int, float]:
    return {count: each / 1e3 for count, each in zip(COUNTS, ms, strict=True) if count <= most}


def times(step: tuple[float, ...], codec: tuple[float, ...] = CODEC, most: int = 14) -> FrameTimes:
    one = table(tuple(each + GLUE for each in step), most)
    four = table(tuple(2 * each + GLUE for each in step), most)
    return FrameTimes({1: one, 4: four}, table(codec, most))


@pytest.mark.parametrize("step", [FOUR_BITS, EIGHT_BITS])
@pytest.mark.parametrize("faster", [1, 4, 10])
@pytest.mark.parametrize("rows", [1, 2, 4, 8])
def test_the_slower_of_both_is_as_fast_as_can_be(
    step: tuple[float, ...], faster: int, rows: int
) -> None:
    known = times(step, tuple(each / faster for each in CODEC))
    shares = CoreShares(14, known)
    threads = shares.codec(rows)
    every = [
        max(shares.step_seconds(rows, 14 - each), shares.codec_seconds(rows, each))
        for each in range(1, 14)
    ]
    in_turn = shares.step_seconds(rows, 14) + shares.codec_seconds(rows, 14)
    assert shares.seconds(rows) == pytest.approx(min(*every, in_turn), rel=0.06)
    if threads:
        assert shares.seconds(rows) == pytest.approx(every[threads - 1])
        assert shares.seconds(rows) < in_turn


def test_a_faster_codec_leaves_more_cores_to_the_talker_and_more_streams_fewer() -> None:
    slow, fast = (
        CoreShares(14, times(FOUR_BITS, tuple(each / faster for each in CODEC)))
        for faster in (1, 4)
    )
    assert 0 < fast.codec(1) < slow.codec(1) < 14
    assert fast.codec(1) < fast.codec(4) < 14


@pytest.mark.parametrize("faster", [1, 4])
def test_a_first_chunk_gets_the_cores_that_the_talker_s_part_can_spare(faster: int) -> None:
    """The step ends when both are done, and nothing else is to be decoded then."""
    shares = CoreShares(14, times(FOUR_BITS, tuple(each / faster for each in CODEC)))
    assert shares.codec(1) < shares.codec(1, first=True) < 14


@pytest.mark.parametrize(("cores", "most"), [(2, 2), (3, 4)])
def test_few_cores_take_turns_with_a_large_talker(cores: int, most: int) -> None:
    """Kernels gain from each of them as much as they cost."""
    shares = CoreShares(cores, times(FOUR_BITS, most=most))
    assert shares.codec(1) == shares.codec(4) == 0
    in_turn = shares.step_seconds(1, cores) + shares.codec_seconds(1, cores)
    assert shares.seconds(1) == in_turn


def test_what_was_not_tried_takes_turns_unless_both_have_their_cores_anyway() -> None:
    once = FrameTimes({1: {14: 0.02}}, {14: 0.01})
    assert CoreShares(14, once).codec(1) == 0
    assert CoreShares(14, once).seconds(1) == pytest.approx(0.03)
    mini = CoreShares(2, FrameTimes({1: {1: 0.006}}, {1: 0.004}))
    assert mini.codec(1) == mini.codec(8) == 1
    assert mini.seconds(1) == 0.006
    assert mini.seconds(8) == pytest.approx(0.032)


def test_a_note_says_the_same_and_another_nothing() -> None:
    known = times(FOUR_BITS)
    assert FrameTimes.of_note(known.note()) == known
    for wrong in ({}, {"seconds": 0.02}, {"step 1 x": 0.1}, {"codec 2": 0.1}, {"step 1 2": 0.1}):
        assert FrameTimes.of_note(wrong) is None
    assert known.known
    assert not FrameTimes({1: {1: 0.1, 2: math.inf}}, {1: 0.1}).known


def test_a_share_that_is_forced_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CoreShares, "forced", 3)
    assert CoreShares(14, times(FOUR_BITS)).codec(1) == 3
    assert CoreShares(2, FrameTimes({1: {2: 0.1}}, {2: 0.1})).codec(1) == 1


def test_a_codec_that_is_fastest_on_one_thread_runs_beside_steps_too() -> None:
    one = FrameTimes({1: {1: 0.012, 2: 0.007, 3: 0.006, 4: 0.005}}, {1: 0.004})
    shares = CoreShares(4, one)
    assert shares.codec(1) == 1
    assert shares.seconds(1) == 0.006
