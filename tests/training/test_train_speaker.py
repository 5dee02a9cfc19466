"""The speaker encoder's lessons: speech as it is and as a codec passes it on."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from training import state as states
from training.codec import Codec
from training.data.speech_format import FRAME
from training.data.speech_pool import Spot
from training.train_speaker import Countdown, Plain, copied, copier


def test_every_other_wave_is_a_copy() -> None:
    torch.manual_seed(3)
    wave, codec = 0.1 * torch.randn(4, 3 * FRAME), Codec().eval()
    heard = copied(wave, codec)
    assert heard.shape == wave.shape
    assert torch.equal(heard[1::2], wave[1::2])
    assert not torch.allclose(heard[::2], wave[::2], atol=1e-2)


def test_without_a_codec_speech_stays_what_it_is(tmp_path: Path) -> None:
    wave = torch.randn(2, FRAME)
    assert torch.equal(copier(None, wave.device)(wave), wave)
    states.save({"codec": Codec().state_dict()}, tmp_path / "codec.pt")
    assert not torch.equal(copier(tmp_path / "codec.pt", wave.device)(wave), wave)


def test_a_countdown_ends_after_its_minutes_or_by_a_point_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(time, "time", lambda: 50_000 + now)
    minutes, by = Countdown(2, None), Countdown(2, 51_030.0)
    assert minutes.over() == by.over() == 0
    now += 15
    assert minutes.over() == pytest.approx(0.125)
    assert by.over() == pytest.approx(0.5)
    assert Countdown(2, 51_000.0).over() >= 1


def test_crops_are_no_longer_than_what_there_is() -> None:
    """And they come from speech in nobody's special manner."""
    spots = [Spot(0, 3 * FRAME, "a", 4, 0), Spot(3 * FRAME, 9 * FRAME, "b", 5, 1)]
    pool: Any = SimpleNamespace(
        spots=spots,
        device=torch.device("cpu"),
        cut=lambda starts, length: torch.zeros(len(starts), length),
    )
    wave, speaker = Plain(pool).draw(6, 5 * FRAME)
    assert wave.shape == (6, 3 * FRAME)
    assert speaker.tolist() == [4] * 6
