"""The Design tab without a browser: three takes, one kept, all given up when it is left."""

from __future__ import annotations

import asyncio
import re

import gradio as gr
import numpy as np
import pytest

from engine import SAMPLE_RATE, Clone, Design, load_reference_audio
from engine.testing import Costs
from studio.ui.tabs.design import TAKES, DesignTab, Trying
from studio.voices.consent import blend_consent
from tests.support.tab_makers import heard, make_studio, payloads_of

WORDS = "A calm voice."
TEXT = "A sentence that is long enough to be a reference."


def run(updates):
    async def all_of():
        return [each async for each in updates]

    return asyncio.run(all_of())


@pytest.fixture(params=[True, False], ids=["clones", "does not clone"])
def studio(tmp_path, request):
    made = make_studio(tmp_path, clone=request.param)
    with made.engine:
        yield made


def test_three_takes_come_and_differ(studio):
    *_, last = run(DesignTab(studio).sketch(WORDS, TEXT, []))
    cards, sketches, new, _ = last
    assert new
    lines = re.findall("<small>(.*?)</small>", cards)
    assert len(set(lines)) == TAKES
    for one, sketch in zip(lines, sketches, strict=True):
        assert sketch.pcm.dtype == np.int16
        assert f"{len(sketch.pcm) / SAMPLE_RATE:.1f} s" in one
    assert len({each.pcm.tobytes() for each in sketches}) == TAKES
    assert "disabled" not in cards


def test_cards_are_plain_text_while_takes_are_made(studio):
    """They are HTML, in which Gradio translates nothing."""
    for shown, *_ in run(DesignTab(studio).sketch(WORDS, TEXT, [])):
        assert "__i18n__" not in str(shown)


def press(sound):
    return gr.EventData(None, {"sound": sound})


def test_the_pressed_take_is_heard_as_it_was_made(studio):
    tab = DesignTab(studio)
    sketches = run(tab.sketch(WORDS, TEXT, []))[-1][1]
    for number, sketch in enumerate(sketches):
        payloads = payloads_of(tab.hear(sketches, press(number)))
        assert heard(payloads) == sketch.pcm.tobytes()
        assert (payloads[0]["voice"], payloads[0]["text"]) == (f"Design · Take {number + 1}", TEXT)
    for nothing in (TAKES, -1, "one", None):
        assert "first" in payloads_of(tab.hear(sketches, press(nothing)))[-1]["ended"]["message"]


def test_the_picked_take_is_kept(studio):
    tab = DesignTab(studio)
    sketches = run(tab.sketch(WORDS, TEXT, []))[-1][1]
    assert "**Calm**" in tab.save("Calm", "", "", sketches, 1)
    saved = studio.library.find("Calm")
    assert WORDS in saved.card.made_from
    assert saved.card.kind == "design"
    assert blend_consent(["Calm"], studio.library)
    copy = studio.library.import_file(studio.library.export(saved.id))  # it has no owner to ask
    assert repr(copy.voice) == repr(saved.voice)
    if studio.engine.capabilities()["fake"].clone:
        waveform = load_reference_audio((sketches[1].pcm, SAMPLE_RATE)).waveform
        expected = studio.engine.clone(waveform, TEXT)
        assert isinstance(saved.voice, Clone)
        assert np.array_equal(saved.voice.vector, expected.vector)
        assert saved.voice.transcript == TEXT
    else:
        assert saved.voice == Design(WORDS)


def test_what_is_missing_is_told(studio):
    tab = DesignTab(studio)
    assert "Describe a voice" in run(tab.sketch("  ", TEXT, []))[-1][-1]
    assert "Make three takes” first" in tab.save("Calm", "", "", [], 0)
    sketches = run(tab.sketch(WORDS, TEXT, []))[-1][1]
    assert "Which take to save?” first" in tab.save("Calm", "", "", sketches, None)
    assert studio.library.list() == ()


def test_three_takes_are_made_at_once_where_one_is_as_fast_as_it_is_heard(studio, monkeypatch):
    calls = []
    submit = studio.engine.submit
    monkeypatch.setattr(studio.engine, "submit", lambda line: calls.append(line) or submit(line))
    run(DesignTab(studio).sketch(WORDS, TEXT, []))
    assert [line.live for line in calls] == [False] * TAKES


def test_leaving_in_the_middle_frees_every_slot(tmp_path):
    studio = make_studio(tmp_path, costs=Costs(step=0.02))
    with studio.engine:

        async def leave():
            updates = DesignTab(studio).sketch(WORDS, TEXT * 4, [])
            await anext(updates)
            while not studio.engine.stats().running:
                await anext(updates)
            await updates.aclose()
            while studio.engine.stats().running or studio.engine.stats().waiting:
                await asyncio.sleep(0.01)

        asyncio.run(asyncio.wait_for(leave(), 20))


def test_takes_that_were_stopped_are_gone_and_say_so(tmp_path):
    studio = make_studio(tmp_path, costs=Costs(step=0.05))
    tab = DesignTab(studio)
    with studio.engine:

        async def stopped():
            updates = tab.sketch(WORDS, TEXT * 4, [])
            await anext(updates)
            tab.stop()
            return [each async for each in updates]

        *_, last = asyncio.run(asyncio.wait_for(stopped(), 20))
        assert not studio.engine.stats().running
    cards, sketches, new, status = last
    assert cards.count("disabled") == cards.count("Not made yet") == TAKES
    assert (sketches, new, getattr(status, "key", status)) == ([], False, "Stopped.")


def test_stop_brings_the_takes_back_that_were_there_and_plays_them_not_again(tmp_path):
    studio = make_studio(tmp_path, costs=Costs(step=0.01))
    tab = DesignTab(studio)
    with studio.engine:

        async def again():
            made = [each async for each in tab.sketch(WORDS, TEXT, [])][-1]
            updates = tab.sketch("A bright voice.", TEXT * 4, made[1])
            await anext(updates)
            tab.stop()
            return made, [each async for each in updates][-1]

        (cards, before, *_), last = asyncio.run(asyncio.wait_for(again(), 20))
    assert last[1] == before
    lines = re.findall("<small>(.*?)</small>", cards)
    assert re.findall("<small>(.*?)</small>", last[0]) == lines
    assert "disabled" not in last[0]
    assert payloads_of(tab.hear_all(before, last[2])) == []


def test_takes_that_all_fail_leave_those_that_were_there_and_say_why(studio, monkeypatch):
    tab = DesignTab(studio)
    cards, made, *_ = run(tab.sketch(WORDS, TEXT, []))[-1]

    async def failed(trying):
        trying.problem, trying.over = "The device is out of memory.", True

    monkeypatch.setattr(Trying, "follow", failed)
    shown, sketches, new, status = run(tab.sketch("A bright voice.", TEXT, made))[-1]
    assert (shown, sketches, new) == (cards, made, False)
    assert status == "⚠️ The device is out of memory."
    assert "Not made yet" in run(tab.sketch(WORDS, TEXT, []))[-1][0]


def test_a_refused_press_plays_no_takes_that_were_there(studio):
    tab = DesignTab(studio)
    made = run(tab.sketch(WORDS, TEXT, []))[-1][1]
    _, _, new, _ = run(tab.sketch("", TEXT, made))[-1]
    assert payloads_of(tab.hear_all(made, new)) == []


def test_programs_get_the_id_or_the_reason(studio):
    tab = DesignTab(studio)
    assert WORDS in studio.library.get(tab.program("Calm", WORDS)).card.made_from
    with pytest.raises(gr.Error, match="already"):
        tab.program("Calm", WORDS)


def test_more_than_a_minute_is_refused_before_it_is_made(studio):
    for text in ("word " * 200, "木" * 300):
        *_, status = run(DesignTab(studio).sketch(WORDS, text, []))[-1]
        assert "two or three sentences" in status
        with pytest.raises(gr.Error, match="two or three"):
            DesignTab(studio).program("Ann", WORDS, text)


def test_takes_are_played_one_after_the_other(studio):
    tab = DesignTab(studio)
    sketches = run(tab.sketch(WORDS, TEXT, []))[-1][1]
    payloads = payloads_of(tab.hear_all(sketches, True))
    sound = np.frombuffer(heard(payloads), np.int16)
    parts = [tuple(each) for payload in payloads for each in payload["parts"]]
    starts = list(dict.fromkeys(parts))
    assert [name for _, name, _ in starts] == [f"Design · Take {n + 1}" for n in range(TAKES)]
    for (start, *_), sketch in zip(starts, sketches, strict=True):
        assert np.array_equal(sound[start : start + len(sketch.pcm)], sketch.pcm)
    assert payloads_of(tab.hear_all(sketches, False)) == []
