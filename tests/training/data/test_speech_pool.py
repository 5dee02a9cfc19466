"""A pool of speech has the room that it was given, and tells when that is too little."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from training.data.speech_format import FRAME, PHONES_A_FRAME, RATE
from training.data.speech_pool import SpeechPool
from training.train_talker import fill_dataset

FRAMES = 20
HOURS = FRAMES * FRAME / RATE / 3600  # of a shard


def write_shards(folder: Path, count: int) -> None:
    for number in range(count):
        np.savez(
            folder / f"{number:05d}.npz",
            samples=np.full(FRAMES * FRAME, number + 1, np.int16),
            phones=np.zeros(FRAMES * PHONES_A_FRAME, np.uint8),
            places=np.zeros(FRAMES * PHONES_A_FRAME, np.uint16),
            offsets=np.array([0, FRAMES * FRAME]),
            meta=np.array('[{"text": "a", "speaker": 0, "style": 0}]'),
        )


def make_pool(folder: Path, shards: float) -> SpeechPool:
    # A second more: samples are counted in whole seconds.
    return SpeechPool(folder, shards * HOURS + 1 / 3600, torch.device("cpu"))


class Grown:
    """A dataset that has all of its pool."""

    def __init__(self) -> None:
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def grow(self, pool: SpeechPool) -> int:
        new, self.count = len(pool.segments) - self.count, len(pool.segments)
        return new


def test_more_speech_than_fits_is_not_waited_for(tmp_path: Path) -> None:
    write_shards(tmp_path, 2)
    pool = make_pool(tmp_path, 2)
    pool.wait(2 * HOURS)
    assert len(pool.segments) == 2
    with pytest.raises(SystemExit, match="more than --hours"):
        pool.wait(3 * HOURS)
    with pytest.raises(SystemExit, match="more than --hours"):
        fill_dataset(cast(Any, Grown()), pool, 3 * HOURS)


def test_what_does_not_fit_is_told_once_and_ends_the_waiting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_shards(tmp_path, 4)
    pool, dataset = make_pool(tmp_path, 1.5), Grown()
    fill_dataset(cast(Any, dataset), pool, 1.5 * HOURS)
    pool.wait(1.5 * HOURS)
    assert (len(pool.segments), len(dataset)) == (1, 1)
    assert capsys.readouterr().out.count("does not fit") == 1


def test_a_pool_that_holds_no_shard_at_all_is_refused(tmp_path: Path) -> None:
    write_shards(tmp_path, 1)
    with pytest.raises(SystemExit, match="does not fit"):
        make_pool(tmp_path, 0.2).wait(0)


def test_speech_that_does_not_come_in_time_is_not_waited_for(tmp_path: Path) -> None:
    pool = SpeechPool(tmp_path, 1.0, torch.device("cpu"), until=1.0)
    for hours in (0.0, 0.5):
        with pytest.raises(SystemExit, match=f"of {hours:g} hours"):
            pool.wait(hours)
    write_shards(tmp_path, 2)
    pool.refresh()
    pool.wait(2 * HOURS)  # it is there, so it is none too late
    assert len(pool.segments) == 2
