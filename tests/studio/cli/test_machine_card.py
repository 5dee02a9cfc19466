"""`bench`: figures of this machine, as a table and as a card."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import app
from engine import EngineSettings, InvalidSetting, Preset
from engine.testing import Costs, FakeEngine, fake_capabilities
from studio.cli import app_context, machine_card
from studio.cli.machine_card import Bench, check_place, measure, show
from training.voice.words import words_of


class Silent:
    def line(self, text: str) -> None: ...
    def progress(self, text: str) -> None: ...


def bench(costs: Costs | None = None, slots: int = 4) -> Bench:
    settings = EngineSettings(max_num_seqs=slots)
    return Bench(FakeEngine(settings=settings, costs=costs), Preset("ryan"), Silent())


def test_figures_are_those_of_the_sound_that_was_made() -> None:
    one = bench()
    with one.engine:
        found = measure(one, 4)
        again = [one.speak(number).seconds for number in range(len(machine_card.SENTENCES))]
    assert found["audio_seconds"] == pytest.approx(sum(again), abs=0.01)
    assert found["first_audio_ms"] > 0
    assert found["streamed_equals_whole"] is True
    assert found["streams_without_gap"] in (1, 2, 4)
    assert "word_errors" not in found


def test_streams_are_counted_until_one_has_a_gap() -> None:
    """A step that takes longer than a frame plays leaves a gap for one already."""
    slow = bench(Costs(step=0.1))
    with slow.engine:
        assert slow.streams(4) == (0, [])


def test_words_that_were_heard_are_compared() -> None:
    one = bench()
    with one.engine:
        found = measure(one, 1, transcribe=lambda waveform: "The train leaves.")
    spoken = sum(len(words_of(each)) for each in machine_card.SENTENCES)
    wrong, _, whole = found["word_errors"].partition(" of ")
    assert int(whole) == spoken
    assert 0 < int(wrong) < spoken


def test_a_table_stays_one_whatever_a_processor_is_called() -> None:
    lines = list(show({"processor": "A | B\nC", "gpu": "", "same": True, "gone": None}))
    assert lines[2:] == ["| processor | A B C |", "| same | yes |"]


def test_the_command_prints_what_it_saves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def opened(models: Sequence[str], *_: Any, **changes: Any) -> FakeEngine:
        return FakeEngine(settings=EngineSettings(max_num_seqs=2))

    monkeypatch.setattr(app_context, "open_engine", opened)
    monkeypatch.setattr(
        app_context, "read_capabilities", lambda models: {"fake": fake_capabilities()}
    )
    monkeypatch.setenv("TIMBRE_PROCESS", "shared")
    out = tmp_path / "card.json"
    line = ["bench", "--card", "-m", "fake", "-o", str(out), "--data", str(tmp_path)]
    ran = CliRunner().invoke(app.cli, line)
    assert ran.exit_code == 0, ran.output
    card = json.loads(out.read_text())
    assert json.dumps(card, ensure_ascii=False) in ran.stdout
    assert f"| first audio ms | {card['first_audio_ms']} |" in ran.stdout
    assert "Not measured" in ran.stdout
    assert card["model"] == "fake"
    assert str(tmp_path) not in ran.stdout.replace(str(out), ""), "no path of anybody's"
    assert np.isfinite(card["rtf"])


def test_a_place_that_cannot_hold_the_card_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidSetting, match="is a folder"):
        check_place(tmp_path)
    with pytest.raises(InvalidSetting, match="There is no folder"):
        check_place(tmp_path / "absent" / "card.json")
    check_place(tmp_path / "card.json")
    monkeypatch.setattr(os, "access", lambda *_: False)  # as where another person owns the folder
    with pytest.raises(InvalidSetting, match="cannot be written"):
        check_place(tmp_path / "card.json")
