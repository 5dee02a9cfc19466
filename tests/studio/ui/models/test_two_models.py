"""Two models in one studio: what is heard is what is kept, and every menu follows the models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from engine import Clone, Library
from engine.testing import FakeCheckpoint, FakeEngine
from engine.testing import fake_capabilities as fake
from studio.context import Studio, open_studio
from studio.takes.live_takes import LiveTakes
from studio.takes.take_store import Takes
from studio.ui.speech_form import asked_for
from studio.ui.tabs.blend_handlers import BlendTab
from studio.ui.tabs.clone import CloneTab
from studio.ui.tabs.speak_handlers import SpeakHandlers
from studio.ui.tabs.voices import facts
from studio.ui.take_code import body_of
from tests.support.browser import OpenPage, expect, open_tab, serve_page
from tests.support.tab_makers import payloads_of, recording

HERE = ("vivian", "ryan", "Gala")
CUSTOM = FakeCheckpoint(fake("custom", speakers=HERE, clone=False, design=False))
OTHER = FakeCheckpoint(fake("other", speakers=("Zoe",), languages=("german",), clone=False))
BASE = FakeCheckpoint(fake("base", speakers=(), preset=False, design=False))
SECOND = FakeCheckpoint(fake("second", speakers=(), preset=False, design=False))
FIELDS = "[...document.querySelectorAll('input, textarea')].filter((each) => each.offsetParent)"
RECIPE = "ryan(50)+vivian(50)"


def studio_with(engine: FakeEngine, folder: Path) -> Studio:
    return Studio(engine, Library(folder / "voices"), LiveTakes(), Takes(folder / "takes"))


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with FakeEngine([CUSTOM, BASE]) as engine:
        yield studio_with(engine, tmp_path)


def talker_of(studio: Studio, saved: str) -> str:
    return studio.engine.resolve(studio.library.get(saved).voice).checkpoint


@pytest.mark.parametrize("model", ["", "custom", "base"])
def test_a_kept_blend_stays_with_the_model_that_spoke_it(studio: Studio, model: str) -> None:
    tab = BlendTab(studio)
    blend = studio.choices().blend(RECIPE)
    spoken = studio.engine.resolve(blend, model or None).checkpoint
    assert "**Ours**" in tab.save("Ours", "", "", RECIPE, "linear", model)
    saved = studio.library.list()[0].id
    assert spoken == (model or "custom")
    assert talker_of(studio, saved) == spoken
    assert f"Model: {spoken}" in facts(studio.library.get(saved), studio_says(studio, saved))


def studio_says(studio: Studio, saved: str) -> Any:
    return studio.choices().stranger(studio.library.get(saved).voice)


def test_a_clone_is_kept_with_the_model_that_made_it(studio: Studio, tmp_path: Path) -> None:
    studio.engine.exchange("custom", "second", SECOND)
    tab, heard = CloneTab(studio), str(recording(tmp_path / "mine.wav"))
    assert tab.models("")["visible"]
    for model, made in [("", "second"), ("base", "base"), ("second", "second")]:
        tab.save(f"Me {model}", "", "", heard, "", True, model)
        saved = max(studio.library.list(), key=lambda each: each.name == f"Me {model}".strip()).id
        voice = studio.library.get(saved).voice
        assert isinstance(voice, Clone)
        assert voice.model == made
        assert talker_of(studio, saved) == made
    assert (
        "No model is called"
        in payloads_of(tab.speak(heard, "", True, "hi", "gone"))[-1]["ended"]["message"]
    )


def test_programs_choose_the_model_too(tmp_path: Path) -> None:
    heard = str(recording(tmp_path / "me.wav"))
    with FakeEngine([CUSTOM, BASE, SECOND]) as engine:
        studio = studio_with(engine, tmp_path)
        for made in ("base", "second"):
            saved = CloneTab(studio).program(f"Me by {made}", heard, "", True, made)
            assert talker_of(studio, saved) == made
        blended = BlendTab(studio).program("Ours", RECIPE, "linear", "second")
        assert talker_of(studio, blended) == "second"


def test_a_voice_whose_model_left_says_so(studio: Studio) -> None:
    saved = BlendTab(studio).program("Ours", RECIPE)
    assert studio_says(studio, saved) == ""
    assert "⚠️" not in SpeakHandlers(studio).about("Ours")
    studio.engine.exchange("custom", "second", SECOND)
    assert talker_of(studio, saved) in ("base", "second")
    for each in (
        facts(studio.library.get(saved), studio_says(studio, saved)),
        SpeakHandlers(studio).about("Ours"),
    ):
        assert "made with custom, which cannot speak it here" in each


def test_a_voice_that_no_model_can_speak_says_so(studio: Studio) -> None:
    saved = BlendTab(studio).program("Ours", RECIPE)
    wide = FakeCheckpoint(fake("wide", speakers=("Zoe",), clone=False, width=32))
    for out in ("custom", "base"):
        studio.engine.exchange(out, f"wide-{out}", wide)
    assert studio_says(studio, saved) == "It was made with custom. No model here can speak it."


def test_a_menu_of_models_is_seen_only_where_there_is_a_choice(studio: Studio) -> None:
    assert not CloneTab(studio).models("")["visible"]
    models = BlendTab(studio).refresh([], "")[1]
    assert models["visible"]
    assert [value for _, value in models["choices"]] == ["", "custom", "base"]
    gone = BlendTab(studio).refresh([], "gone")[1]
    assert gone["value"] == ""


def test_the_pad_follows_when_its_voices_have_left(studio: Studio) -> None:
    tab = BlendTab(studio)
    picked = [name for _, name in tab.voices()[:2]]
    there, _, pad, recipe = tab.refresh(picked, "")
    assert "value" not in there  # what was picked stays as it is
    assert "names" not in pad
    studio.engine.exchange("custom", "other", OTHER)
    there, _, pad, recipe = tab.refresh(picked, "")
    assert there["value"] == ["Zoe"]
    assert pad["names"] == ["Zoe"]
    assert recipe == "Zoe(100)"


def test_speaks_menus_let_go_of_what_has_left(studio: Studio) -> None:
    speaking = SpeakHandlers(studio)
    mixed = "ryan(50)+Gala(50)"  # other services have no Gala, so nobody stands in for her
    for voice in ("ryan", mixed):
        kept, languages = speaking.arrive(voice, "english")
        assert (kept, "value" in languages) == (gr.skip(), False)
    studio.engine.exchange("custom", "other", OTHER)
    studio.engine.exchange("base", "another", OTHER)
    for voice in ("ryan", mixed):
        first, languages = speaking.arrive(voice, "english")
        assert (first, languages["value"]) == ("Zoe", "auto")
        assert [name for _, name in languages["choices"]] == ["auto", "german"]


def test_speak_offers_the_models_that_speak_the_voice(studio: Studio) -> None:
    speaking = SpeakHandlers(studio)
    menu = speaking.picked("ryan")[2]
    assert speaking.models("ryan") == ("custom",)
    assert not menu["visible"]
    saved = BlendTab(studio).program("Ours", RECIPE)
    assert speaking.models(f"#{saved}") == ("custom", "base")
    menu = speaking.picked(f"#{saved}", "base")[2]
    assert (menu["visible"], menu["value"]) == (True, "base")
    assert speaking.picked("ryan", "base")[2]["value"] == ""  # base has no speakers
    assert speaking.models("nobody") == ()


def test_a_take_is_spoken_again_by_the_model_that_was_chosen(studio: Studio) -> None:
    saved = BlendTab(studio).program("Ours", RECIPE)
    fields = ["Hello.", f"#{saved}", "auto", "", "3", *[""] * 8, 1.0, "", "off", "", 1.0]
    take = payloads_of(SpeakHandlers(studio).press("me", *fields, "base"))[-1]["ended"]["take"]
    card = studio.takes.get(take)
    assert asked_for(card).request(studio.choices()).model == "base"
    assert body_of(card)["model"] == "base"


@pytest.fixture(scope="module")
def opened(
    browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, FakeEngine]]:
    library = Library(tmp_path_factory.mktemp("two") / "voices")
    with FakeEngine([CUSTOM, BASE]) as engine, serve_page(open_studio(engine, library)) as url:
        yield url, engine


def test_every_tab_follows_without_a_reload(
    open_page: OpenPage, opened: tuple[str, FakeEngine]
) -> None:
    url, engine = opened
    page = open_page(url)
    open_tab(page, "Blend")
    page.get_by_label("Model", exact=True).locator("visible=true").wait_for()
    open_tab(page, "Engine")
    engine.exchange("custom", "other", OTHER)
    open_tab(page, "Blend")
    page.wait_for_function(f"{FIELDS}.some((each) => each.value === 'Zoe(100)')")
    open_tab(page, "Speak")
    expect(page.locator("#speak-about strong")).to_have_text("Zoe")
