"""Every speaker of the embedded model has a line, and each line a Chinese counterpart."""

from __future__ import annotations

import json
from pathlib import Path

from engine import Library, read_capabilities
from engine.testing import fake_capabilities
from studio.cli.app_context import MINI
from studio.ui.i18n import CHINESE
from studio.voices.speaker_notes import LINES, described
from studio.voices.voice_catalog import Choices
from training.data.speakers import NAMED


def test_the_embedded_speakers_are_described_by_the_names_of_the_recipe() -> None:
    (able,) = read_capabilities([str(MINI)]).values()
    assert set(able.speakers) == {voice.name for voice in NAMED}
    assert all(described(name) for name in able.speakers)


def test_menus_show_the_lines(tmp_path: Path) -> None:
    choices = Choices(read_capabilities([str(MINI)]), Library(tmp_path))
    notes = {choice.name: choice.note for choice in choices.list()}
    assert notes["otto"] == "A deep, slow man, a born narrator."


def test_a_speaker_without_a_line_has_a_dialect_at_least(tmp_path: Path) -> None:
    able = fake_capabilities(speakers=("wei",), dialects={"wei": "sichuan_dialect"})
    (choice,) = Choices({"fake": able}, Library(tmp_path)).list()
    assert choice.note == "sichuan dialect"


def test_every_line_is_there_in_chinese() -> None:
    lines = json.loads(LINES.read_text(encoding="utf-8"))
    assert {line for line in lines.values() if line not in CHINESE} == set()


def test_nobody_is_described_by_chance() -> None:
    assert described("nobody") == ""
    assert described("Uncle_Fu")
