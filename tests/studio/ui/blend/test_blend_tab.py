"""The Blend tab without a browser: the text, the pad and the sound say the same."""

from __future__ import annotations

from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Clone, SpeechRequest, learn_shift, parse_blend, speaker_space
from engine.testing import fake_capabilities
from studio.ui.speech_form import asked_for
from studio.ui.tabs.blend_handlers import STEPS, BlendTab, path, written
from tests.support.tab_makers import heard, payloads_of, some_clone

weights = st.lists(st.floats(0, 100), min_size=1, max_size=4).filter(lambda all_: sum(all_) > 1)


def at(x: float, y: float) -> SimpleNamespace:
    return SimpleNamespace(_data={"x": x, "y": y})


@given(weights)
def test_a_written_blend_is_read_back_as_its_percents(values):
    names = ["ryan", "vivian", "eric", "dylan"][: len(values)]
    parts = dict(parse_blend(written(names, values)))
    assert sum(parts.values()) == 100
    for name, value in zip(names, values, strict=True):
        assert parts.get(name, 0) == pytest.approx(100 * value / sum(values), abs=1.001)


def test_the_pad_writes_what_the_text_puts_back(studio):
    tab = BlendTab(studio)
    names = [name for _, name in tab.voices()[:4]]
    for picked in (names[:2], names[:3], names):
        shown, recipe, _ = tab.moved(picked, at(0.25, 0.75))
        voices, again, *step_and_mood = tab.typed(recipe)
        assert step_and_mood == [None, "", 1.0]
        assert voices["value"] == picked
        expected = (0.25, 0.5) if len(picked) == 2 else (0.25, 0.75)
        assert (again["x"], again["y"]) == pytest.approx(expected, abs=0.03)
        assert again["names"] == shown["names"]


def test_letting_go_in_a_corner_sounds_like_the_voice_there(studio):
    tab = BlendTab(studio)
    picked = [name for _, name in tab.voices()[:2]]
    payloads = payloads_of(tab.speak_there(picked, "linear", "hi you", "", True, at(1, 0)))
    assert payloads[-1]["state"] == "done"
    alone = studio.choices().blend(picked[1])
    line = SpeechRequest("hi you", alone, seed=0)
    assert heard(payloads) == studio.engine.submit(line).collect().tobytes()


def test_letting_go_silently_says_nothing(studio):
    assert (
        payloads_of(BlendTab(studio).speak_there(["ryan"], "linear", "hi", "", False, at(0, 0)))
        == []
    )


def test_all_nine_steps_are_one_take_in_order(studio):
    tab = BlendTab(studio)
    picked = [name for _, name in tab.voices()[:2]]
    sound = np.frombuffer(heard(payloads_of(tab.speak_all(picked, "linear", "abc"))), np.int16)
    sayings = [heard(payloads_of(tab.speak(each, "linear", "abc"))) for each in path(picked)]
    assert len(sayings) == STEPS
    loud = sound[sound != 0]
    one_by_one = np.frombuffer(b"".join(sayings), np.int16)
    assert np.array_equal(loud, one_by_one[one_by_one != 0])


@pytest.mark.parametrize("recipe", ["", "nobody(2)", "ryan(", "ryan(0)"])
def test_a_text_that_is_no_blend_is_told_in_words(studio, recipe):
    last = payloads_of(BlendTab(studio).speak(recipe, "linear", "hi"))[-1]
    assert last["ended"]["reason"] == "refused"
    assert last["ended"]["message"].endswith(".")


def test_nine_steps_of_one_voice_are_refused(studio):
    last = payloads_of(BlendTab(studio).speak_all(["ryan"], "linear", "hi"))[-1]
    assert last["ended"]["message"] == "Pick two voices first."


def test_a_saved_blend_speaks_like_the_blend(studio):
    tab = BlendTab(studio)
    recipe = written([name for _, name in tab.voices()[:2]], [7, 3])
    assert "**Ours**" in tab.save("Ours", "rgba(10, 20.4, 255, 1)", "half", recipe, "spherical")
    saved = studio.library.find("ours")
    assert (saved.card.kind, saved.card.colour, saved.card.note) == ("blend", "#0a14ff", "half")
    assert recipe in saved.card.made_from
    mixed = studio.engine.resolve(studio.choices().blend(recipe, "spherical")).voice
    assert isinstance(mixed, Clone)
    assert np.allclose(saved.voice.vector, mixed.vector)


def test_a_name_is_given_once(studio):
    tab = BlendTab(studio)
    speaker = tab.voices()[0][0]
    recipe = written([name for _, name in tab.voices()[:2]], [1, 1])
    assert "name first" in tab.save("  ", "", "", recipe, "linear")
    assert "already" in tab.save(speaker.upper(), "", "", recipe, "linear")
    tab.save("Ours", "", "", recipe, "linear")
    assert "already" in tab.save("ours", "", "", recipe, "linear")
    assert len(studio.library.list()) == 1


def test_kept_voices_with_odd_names_can_be_blended(studio):
    studio.library.save("Max (old), or: so+so", some_clone())
    tab = BlendTab(studio)
    label, name = tab.voices()[-1]
    assert label == "Max (old), or: so+so"
    last = payloads_of(tab.speak(written([name, tab.voices()[0][1]], [1, 1]), "linear", "hi"))[-1]
    assert last["ended"]["reason"] == "finished"


def test_voices_that_are_gone_are_picked_no_more(studio):
    saved = studio.library.save("Short lived", some_clone())
    tab = BlendTab(studio)
    assert "value" not in tab.refresh(["Short lived"])[0]  # it stays
    studio.library.delete(saved.id)
    there, _, pad, recipe = tab.refresh(["Short lived"])
    assert "Short lived" not in [*there["value"], *pad["names"], recipe]
    assert there["value"] == pad["names"]
    assert tab.refresh([])[0] == gr.skip()  # a tab that was emptied while it opened stays so


def test_programs_get_the_id_or_the_reason(studio):
    tab = BlendTab(studio)
    assert studio.library.get(tab.program("Ours", "ryan(2)+vivian(1)")).card.kind == "blend"
    with pytest.raises(gr.Error, match="already"):
        tab.program("Ours", "ryan(2)+vivian(1)")


def test_a_mood_beside_the_pad_goes_through_the_formula_and_back(studio):
    pair = (some_clone(90).vector, some_clone(91).vector)
    space = speaker_space(fake_capabilities())
    studio.library.moods.save("glad", learn_shift([pair]), space, words=("merry",))
    tab = BlendTab(studio)
    names = [name for _, name in tab.voices()[:2]]
    _, recipe, _ = tab.moved(names, at(0.25, 0.5), "glad", 0.5)
    assert recipe.endswith("+glad(0.5)")
    assert tab.typed(recipe)[3:] == ("glad", 0.5)
    assert tab.typed(recipe.replace("glad", "merry"))[3:] == ("glad", 0.5)
    assert tab.remood(recipe, "", 1.0) == recipe.removesuffix("+glad(0.5)")
    assert tab.remood(recipe, "glad", 0.0) == recipe.removesuffix("+glad(0.5)")
    assert tab.remood(tab.remood(recipe, "", 1.0), "glad", 1.25).endswith("+glad(1.25)")
    assert all(each.endswith("+glad(0.5)") for each in path(names, "glad", 0.5))
    saved = tab.save("Both", "", "", recipe, "linear")
    assert "Both" in saved
    kept = studio.library.find("Both").voice.vector
    blended = studio.engine.resolve(studio.choices().blend(recipe)).voice.vector
    assert np.array_equal(kept, blended)


@pytest.mark.parametrize("method", ["linear", "spherical"])
def test_a_spoken_blend_is_kept_once_beside_the_one_before(studio, method):
    tab, ids = BlendTab(studio), ("", "")
    picked = [name for _, name in tab.voices()[:2]]
    for recipe in (written(picked, (70, 30)), written(picked, (20, 80))):
        payloads = payloads_of(tab.speak(recipe, method, "hi you", "", "me"))
        number = payloads[-1]["ended"]["take"]
        take = studio.takes.get(number)
        assert studio.takes.pcm(number).tobytes() == heard(payloads)
        assert (take.owner, take.voice_key) == ("me", recipe)
        blend = asked_for(take).request(studio.choices()).voice
        assert blend.method == method
        before, ids = ids, tab.kept(ids, SimpleNamespace(_data={"take": number}))[0]
        assert ids == (number, before[0])
    payloads_of(tab.speak(recipe, method, "hi you", "", "me"))  # again: the same sound, no new take
    payloads_of(tab.speak(written(picked, (50, 50)), method, "hi you"))  # the map: nobody's take
    assert len(studio.takes.search(owner="me")) == 2
