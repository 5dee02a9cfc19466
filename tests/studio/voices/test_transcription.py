"""Transcripts of recordings: what a recogniser hears becomes words, and a missing one is told."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine import SAMPLE_RATE, InvalidSetting
from studio.voices.transcription import RATE, open_transcriber

SECOND = np.zeros(SAMPLE_RATE, np.float32)


class Whisper:
    """Hears what a test says."""

    said: tuple[Any, ...] = ()
    heard: tuple[np.ndarray, ...] = ()
    loaded: tuple[str, ...] = ()

    def __init__(self, name: str, **_: Any) -> None:
        Whisper.loaded += (name,)

    def transcribe(self, sound: np.ndarray, **_: Any) -> tuple[Any, None]:
        Whisper.heard += (sound,)
        return iter(Whisper.said), None


def segment(text: str, silence: float = 0.0, surety: float = -0.2) -> Any:
    return SimpleNamespace(text=text, no_speech_prob=silence, avg_logprob=surety)


@pytest.fixture
def whisper(monkeypatch: pytest.MonkeyPatch) -> type[Whisper]:
    module = ModuleType("faster_whisper")
    module.WhisperModel = Whisper  # type: ignore[attr-defined]
    module.__spec__ = importlib.util.spec_from_loader("faster_whisper", None)
    monkeypatch.setitem(sys.modules, "faster_whisper", module)
    monkeypatch.setattr(Whisper, "said", ())
    monkeypatch.setattr(Whisper, "heard", ())
    monkeypatch.setattr(Whisper, "loaded", ())
    return Whisper


def test_segments_become_one_text_and_made_up_ones_are_left_out(whisper: type[Whisper]) -> None:
    whisper.said = (
        segment(" Good evening."),
        segment(" Thank you for watching!", silence=0.95, surety=-1.5),
        segment(" "),
        segment(" It is late.", silence=0.95),
    )
    assert open_transcriber("some/model")(SECOND) == "Good evening. It is late."


def test_the_model_is_loaded_once_and_hears_16_khz(whisper: type[Whisper]) -> None:
    transcribe = open_transcriber("some/model")
    assert whisper.loaded == ()
    for _ in range(2):
        transcribe(SECOND)
    assert whisper.loaded == ("some/model",)
    assert [(len(each), each.dtype) for each in whisper.heard] == [(RATE, np.float32)] * 2


def test_a_model_that_cannot_be_read_leaves_the_field_empty(
    whisper: type[Whisper], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no model.bin")

    monkeypatch.setattr(sys.modules["faster_whisper"], "WhisperModel", broken)
    assert open_transcriber("some/model")(SECOND) == ""
    assert "some/model" in caplog.text


def test_a_missing_package_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidSetting, match=r"requirements-transcribe\.txt"):
        open_transcriber("some/model")
