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
from training.data.speech_pool import Segment
from training.train_speaker import (
    Deadline,
    NeutralUtterances,
    codec_augmentation,
    half_through_codec,
)


def test_every_other_wave_is_a_copy() -> None:
    torch.manual_seed(3)
    wave, codec = 0.1 * torch.randn(4, 3 * FRAME), Codec().eval()
    heard = half_through_codec(wave, codec)
    assert heard.shape == wave.shape
    assert torch.equal(heard[1::2], wave[1::2])
    assert not torch.allclose(heard[::2], wave[::2], atol=1e-2)


def test_without_a_codec_speech_stays_what_it_is(tmp_path: Path) -> None:
    wave = torch.randn(2, FRAME)
    assert torch.equal(codec_augmentation(None, wave.device)(wave), wave)
    states.save({"codec": Codec().state_dict()}, tmp_path / "codec.pt")
    assert not torch.equal(codec_augmentation(tmp_path / "codec.pt", wave.device)(wave), wave)


def test_a_countdown_ends_after_its_minutes_or_by_a_point_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(time, "time", lambda: 50_000 + now)
    minutes, by = Deadline(2, None), Deadline(2, 51_030.0)
    assert minutes.progress() == by.progress() == 0
    now += 15
    assert minutes.progress() == pytest.approx(0.125)
    assert by.progress() == pytest.approx(0.5)
    assert Deadline(2, 51_000.0).progress() >= 1


def test_crops_are_no_longer_than_what_there_is() -> None:
    """And they come from speech in nobody's special manner."""
    segments = [Segment(0, 3 * FRAME, "a", 4, 0), Segment(3 * FRAME, 9 * FRAME, "b", 5, 1)]
    pool: Any = SimpleNamespace(
        segments=segments,
        device=torch.device("cpu"),
        cut=lambda starts, length: torch.zeros(len(starts), length),
    )
    wave, speaker = NeutralUtterances(pool).draw(6, 5 * FRAME)
    assert wave.shape == (6, 3 * FRAME)
    assert speaker.tolist() == [4] * 6
