"""Each menu of the page lists some of many voices, and takes any of them."""

from __future__ import annotations

from typing import Any

import gradio as gr
import pytest

from studio.context import Studio
from studio.ui.tabs.blend_handlers import BlendTab, written
from studio.ui.tabs.script.handlers import ScriptTab
from studio.ui.tabs.script.view import View
from studio.ui.tabs.speak_handlers import SpeakHandlers
from studio.ui.voice_list import SHOWN
from studio.voices.voice_catalog import LISTED, Choice, Choices
from tests.support.script_tab_makers import act, event, html, page
from tests.support.tab_makers import payloads_of, save_many

OLD = "Voice 004"


@pytest.fixture
def old(studio: Studio) -> str:
    """The key of a voice that no menu lists by itself."""
    save_many(studio.library, 2 * LISTED)
    saved = studio.library.named(OLD)
    assert saved is not None
    return f"#{saved.id}"


def names(update: Any) -> list[str]:
    return [name for _, name in update["choices"]]


def test_speak_shows_the_first_cards_and_finds_any(studio: Studio, old: str) -> None:
    speaking = SpeakHandlers(studio)
    cards, _ = speaking.listed("", [], "ryan")
    assert cards.count('role="radio"') == SHOWN
    last = "#voice-119"
    assert last not in cards
    chosen, _ = speaking.listed("", [], last)
    assert f'aria-checked="true" tabindex="0" data-key="{last}"' in chosen
    assert chosen.count('role="radio"') == SHOWN
    assert cards.count('aria-checked="true"') == cards.count('tabindex="0"') == 1
    found, _ = speaking.listed("voice 004", [], "ryan")
    assert found.count('role="radio"') == 1
    assert f'tabindex="0" data-key="{old}"' in found
    assert "No results" in speaking.listed("nobody", [], "ryan")[0]
    starred, star = speaking.listed("", [last], last)
    assert starred.index(last) < starred.index("ryan")
    assert str(star["value"]) != str(speaking.listed("", [], last)[1]["value"])


@pytest.mark.parametrize("written", [OLD, OLD.lower(), "voice 004"])
def test_enter_chooses_what_is_written(studio: Studio, old: str, written: str) -> None:
    speaking = SpeakHandlers(studio)
    assert speaking.find(written, [], "ryan") == (old, "")
    assert speaking.arrive(old, "auto")[0] == gr.skip()  # as of a draft
    assert speaking.use(old) == (old, "")


def test_enter_chooses_a_blend_and_refuses_what_is_nothing(studio: Studio) -> None:
    speaking = SpeakHandlers(studio)
    assert speaking.find("ryan(2)+vivian(1)", [], "ryan")[0] == "ryan(2)+vivian(1)"
    assert speaking.find("  ", [], "ryan") == (gr.skip(), gr.skip())
    for nothing in ("nobody", "ryan+nobody"):
        with pytest.raises(gr.Error, match="No voice"):
            speaking.find(nothing, [], "ryan")


def test_stars_are_put_on_and_taken_off(studio: Studio) -> None:
    speaking = SpeakHandlers(studio)
    assert speaking.star(None, "ryan") == ["ryan"]
    assert speaking.star(["eric", "ryan"], "ryan") == ["eric"]
    assert not speaking.starred([], "ryan(2)+vivian(1)")["visible"]


def test_settings_of_a_take_select_its_old_voice(studio: Studio, old: str) -> None:
    speaking = SpeakHandlers(studio)
    fields = ["Hello.", old, "auto", "", "", *[""] * 8]
    take = payloads_of(speaking.press("me", *fields))[-1]["ended"]["take"]
    assert speaking.fill(event(do="fill", take=take))[1] == old


def test_blend_takes_old_voices(studio: Studio, old: str) -> None:
    tab = BlendTab(studio)
    picked = [OLD, "ryan"]
    assert OLD in names(tab.offer("", picked))
    assert "value" not in tab.refresh(picked)[0]
    voices, handle, *_ = tab.typed(f"{OLD.lower()}(1)+ryan(1)")
    assert voices["value"] == handle["names"] == picked
    assert OLD in names(voices)
    last = payloads_of(tab.speak(written(picked, [1, 1]), "linear", "hi"))[-1]
    assert last["ended"]["reason"] == "finished"


def test_a_search_in_blend_selects_nothing(studio: Studio, old: str) -> None:
    for picked in ([], ["ryan"]):
        found = BlendTab(studio).offer("004", picked)
        assert names(found)[: len(picked) + 1] == [*picked, OLD]
        assert "value" not in found


def test_few_voices_are_left_to_the_browser(studio: Studio) -> None:
    save_many(studio.library, 3)
    assert BlendTab(studio).offer("voice", ["ryan"]) == gr.skip()
    assert BlendTab(studio).hint() == ""


def test_the_cast_lists_what_it_has_and_what_is_searched(
    tab: ScriptTab, number: str, old: str
) -> None:
    shown = html(page(tab, number).cast)
    assert "Search for a voice" in shown
    assert f'value="{old}"' not in shown

    found = html(act(tab, number, do="voices", value="voice 004").cast)
    assert f'value="{old}"' in found
    assert "No results" not in found
    assert "No results" in html(act(tab, number, do="voices", value="nobody").cast)

    view = View().casting("004")
    cast = tab.act(number, "", view, "", "", event(do="cast", who="Anna", value=old))
    assert cast.view == view  # it stays
    assert f'value="{old}" selected' in html(cast.cast)
    assert f'value="{old}" selected' in html(page(tab, number).cast)
    act(tab, number, do="undo")
    assert f'value="{old}" selected' not in html(page(tab, number).cast)


def test_a_cast_of_few_voices_has_no_search(tab: ScriptTab, number: str, studio: Studio) -> None:
    save_many(studio.library, LISTED)
    shown = html(page(tab, number).cast)
    assert "Search for a voice" not in shown
    assert all(f">Voice {number:03}<" in shown for number in range(LISTED))


def test_a_search_reads_the_catalog_once(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, catalog = [], Choices.list

    def counted(self: Choices) -> tuple[Choice, ...]:
        listed.append(self)
        return catalog(self)

    monkeypatch.setattr(Choices, "list", counted)
    SpeakHandlers(studio).listed("voice 004", [], "ryan")
    assert len(listed) == 1
