"""What a menu lists of few voices and of many."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import Design, Library, Preset, SpeechRequest
from engine.testing import FakeCheckpoint, FakeEngine, fake_capabilities
from studio.context import Studio
from studio.voices.voice_catalog import LISTED, Choices, Menu
from tests.support.tab_makers import save_many, some_clone

MANY = 2 * LISTED
SPEAKERS = len(fake_capabilities().speakers)


def names(menu: Menu) -> list[str]:
    return [each.name for each in menu.voices if each.kind != "preset"]


@pytest.mark.parametrize("blends", [False, True])
def test_few_voices_are_all_listed_whatever_is_typed(studio: Studio, blends: bool) -> None:
    save_many(studio.library, LISTED)
    for words in ("", "voice 003", "nobody"):
        menu = studio.choices().menu(words, ["Voice 001"], blends)
        assert menu.complete
        assert names(menu) == [each.name for each in studio.library.list()]


@pytest.mark.parametrize("blends", [False, True])
def test_of_many_the_presets_the_newest_and_the_selected_are_listed(
    studio: Studio, blends: bool
) -> None:
    save_many(studio.library, MANY)
    selected = ["Voice 007", f"#{studio.library.list()[3].id}", "ryan", "Voice 110", "gone"]
    menu = studio.choices().menu("", selected, blends)
    newest = [f"Voice {number:03}" for number in range(MANY - LISTED, MANY)]
    assert not menu.complete
    assert names(menu) == ["Voice 003", "Voice 007", *newest]
    assert len(menu.voices) == SPEAKERS + 2 + LISTED


def test_a_search_finds_any_voice_by_a_part_of_its_name(studio: Studio) -> None:
    save_many(studio.library, MANY)
    studio.library.save("Anna of Voice 00", Design("A calm voice."))
    choices = studio.choices()
    assert names(choices.menu("VOICE 00", ["Voice 050"])) == [
        *(f"Voice {number:03}" for number in range(10)),
        "Anna of Voice 00",
        "Voice 050",
    ]
    assert [each.label for each in choices.menu("ryan").voices] == ["Ryan"]
    assert choices.menu("nobody").voices == ()
    assert len(choices.menu("voice").voices) == LISTED
    assert "Anna of Voice 00" not in names(choices.menu("of voice", blends=True))


def test_a_voice_that_is_found_and_selected_is_listed_once(studio: Studio) -> None:
    save_many(studio.library, MANY)
    assert names(studio.choices().menu("voice 007", ["Voice 007"])) == ["Voice 007"]


def test_a_voice_that_comes_with_the_program_is_always_listed(
    tmp_path: Path, studio: Studio
) -> None:
    Library(tmp_path / "built-in").save("Calm guide", some_clone(), created="2020-01-01T00:00")
    library = Library(tmp_path / "own", tmp_path / "built-in")
    save_many(library, MANY)
    menu = Studio(studio.engine, library, studio.live, studio.takes).choices().menu()
    assert names(menu)[0] == "Calm guide"
    assert len(names(menu)) == 1 + LISTED


@pytest.mark.parametrize("words", ["voice 01", "nobody", "ryan", "voice"])
def test_a_menu_that_filters_by_itself_keeps_its_length(studio: Studio, words: str) -> None:
    save_many(studio.library, MANY)
    choices, selected = studio.choices(), ["Voice 003"]
    found, whole = choices.menu(words, selected), choices.menu("", selected, as_long=True)
    typed = choices.menu(words, selected, as_long=True)
    assert whole == choices.menu("", selected)
    assert len(typed.voices) == len(whole.voices)
    assert typed.voices[: len(found.voices)] == found.voices
    assert len(set(typed.voices)) == len(typed.voices)


def test_few_voices_are_listed_in_one_order_whatever_is_typed(studio: Studio) -> None:
    save_many(studio.library, LISTED)
    choices = studio.choices()
    assert choices.menu("voice 003", as_long=True) == choices.menu()


APART = "Zoe\u0308"  # the letter and its accent, as in a file's name on macOS


def test_a_preset_is_found_and_its_name_taken_whether_its_accents_stand_apart(
    library: Library,
) -> None:
    able = replace(fake_capabilities(), speakers=("zo\u00eb",))
    with FakeEngine([FakeCheckpoint(able)]) as engine:
        choices = Choices(engine.capabilities(), library)
        assert choices.named(APART) == Preset("zo\u00eb")
        assert choices.refusal(APART) == choices.refusal("zo\u00eb")
        library.save(APART, some_clone(), consent=True)
        assert [each.kind for each, _, _ in choices.blendable()] == ["preset"]
        assert engine.submit(SpeechRequest("Hello.", Preset(APART))).collect().size
