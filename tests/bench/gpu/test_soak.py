"""A soak test of a small model passes, and every injected fault is found."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from bench.gpu.soak import (
    CANCEL_SHARE,
    MEMORY,
    SAMPLE_SECONDS,
    Account,
    MemorySample,
    find_faults,
    main,
    memory,
    random_visits,
)
from bench.gpu.soak_listener import Distance, Received, Visit, compare, distance, first_difference
from engine import FRAME_SAMPLES, Chunk, End, Preset, SpeechRequest

FRAMES = 6


def heard(seed: int = 0, reason: str = "length", frames: int = FRAMES) -> Received:
    draw = np.random.default_rng(seed)
    chunks = [
        Chunk(
            at,
            draw.integers(-9000, 9000, FRAME_SAMPLES * frames // 2).astype(np.int16),
            draw.integers(0, 64, (frames // 2, 16)),
        )
        for at in range(2)
    ]
    request = SpeechRequest("Hi.", Preset("ryan"), seed=seed, max_frames=FRAMES, ignore_end=True)
    return Received(request, chunks, End(reason, frames, seed))  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["custom_voice-1b7", "base-1b7"])
@pytest.mark.slow
def test_soak_of_a_small_model(
    model: str, golden_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(
            str(golden_dir / model),
            0.02,
            6,
            3,
            device="cpu",
            change=["max_num_seqs=4"],
            out=tmp_path,
        )
    printed, shown = json.loads((tmp_path / "soak.json").read_text()), capsys.readouterr().out
    assert (ended.value.code, printed["wrong"]) == (0, [])
    assert printed["good"]
    assert (printed["failed"], printed["stuck"], printed["remains"]) == (0, 0, {})
    compared = printed["again"]["compared"]  # a busy machine finishes few in the time
    assert min(printed["whole"], 3) >= compared == printed["again"]["same"] >= 1
    assert printed["again"]["largest_difference"] < 1e-3
    assert shown.splitlines()[-1] == "good"
    assert len(shown.splitlines()) <= 8


def test_visits_are_of_all_kinds_and_the_same_for_a_seed() -> None:
    some = list(islice(random_visits([Preset("ryan"), Preset("eric")], 3), 400))
    assert some == list(islice(random_visits([Preset("ryan"), Preset("eric")], 3), 400))
    assert len({visit.request.voice for visit in some}) == 2
    assert len({str(visit.request.sampling) for visit in some}) == 3
    assert {visit.request.max_frames for visit in some} >= {5, 150}
    held_resources = sum(visit.leaves is not None for visit in some)
    assert held_resources / len(some) == pytest.approx(CANCEL_SHARE, abs=0.06)


def test_what_is_not_whole_is_told() -> None:
    whole = heard()
    assert whole.fault == ""
    short = replace(whole, chunks=[whole.chunks[0]])
    assert "3 frames came" in short.fault
    assert replace(short, end=End("cancelled", 3, 0)).fault == ""
    assert "order" in replace(whole, chunks=whole.chunks[::-1]).fault
    cut = replace(whole.chunks[1], pcm=whole.chunks[1].pcm[:-1])
    assert "samples" in replace(whole, chunks=[whole.chunks[0], cut]).fault
    assert "runaway" in replace(whole, end=End("runaway", FRAMES, 0)).fault


def test_some_of_the_whole_are_kept_and_the_rest_is_counted() -> None:
    account = Account(3, random.Random(0))
    for seed in range(20):
        account.count(heard(seed), Visit(heard().request))
    account.count(heard(reason="cancelled"), Visit(heard().request, leaves=1))
    account.count(heard(reason="cancelled"), Visit(heard().request))  # he had not left
    assert account.ends == {"whole": 20, "left": 1, "failed": 1}
    assert account.wrong == ["failed: cancelled by nobody"]
    assert len({each.request.seed for each in account.kept}) == 3


def test_where_codes_part() -> None:
    one = heard(frames=FRAMES).codes
    other = one.copy()
    other[4, 7] += 1
    assert first_difference(one, one) is None
    assert first_difference(one, other) == 4
    assert first_difference(one, one[:2]) == 2


def test_a_wrong_frame_is_heard() -> None:
    one, other = heard(1).pcm, heard(2).pcm
    assert distance(one, one).near(False)
    wrong = one.copy()
    wrong[:FRAME_SAMPLES] = other[:FRAME_SAMPLES]
    assert not distance(wrong, one).near(True)
    noisy = Distance(largest=5e-3, decibels=45.0)  # as rounding leaves it
    assert noisy.near(True)
    assert not noisy.near(False)


def test_parted_codes_are_wrong_in_float32_alone() -> None:
    exact = distance(heard().pcm, heard().pcm)
    parted, wrong = compare([None, 7], [exact, exact], half=True)
    assert (parted["same"], parted["parted_at"], wrong) == (1, [7], [])
    assert compare([None, 7], [exact], half=False)[1] == ["1 have other codes when they are alone"]
    assert compare([], [], half=True)[1] == ["no answer was compared"]


def test_growth_and_what_remains_are_wrong() -> None:
    def held(at: int) -> MemorySample:
        grown = max(0, at - 10)
        return MemorySample(SAMPLE_SECONDS * at, 500 + grown, 8, 4, 100, 200)

    found = memory([held(at) for at in range(31)])
    assert found.keys() == MEMORY.keys()
    assert found["process"]["mb_a_minute"] == pytest.approx(12)
    assert found["process"]["grown_mb"] == pytest.approx(20)
    assert found["allocated"]["grown_mb"] == 0
    summary = {"remains": {"slots": 1}, "failed_steps": 0, "memory": found}
    assert len([*find_faults(summary, 64)]) == 1
    assert len([*find_faults(summary, 10)]) == 2
