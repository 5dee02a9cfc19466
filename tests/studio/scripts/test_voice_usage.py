"""A voice that is renamed or deleted: scripts and takes hold it by its id."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import RequestError, UnknownVoice
from studio.scripts.export.script_files import ExportOptions, export
from studio.ui.speech_form import SpeechForm, asked_for
from studio.ui.tabs.speak_handlers import SpeakHandlers
from studio.ui.tabs.take_compare import speak
from studio.ui.tabs.takes import TakesTab
from studio.ui.tabs.voices import VoicesTab
from tests.support.script_tab_makers import LINES, act, html, page, spoken, statuses
from tests.support.tab_makers import heard, payloads_of, some_clone


@pytest.fixture
def ada(studio):
    return studio.library.save("Ada", some_clone(), consent=True)


@pytest.fixture
def cast(tab, number, ada):
    """A script with Ada in it, spoken."""
    offered = dict(tab.store.voices())
    act(tab, number, do="cast", who="Anna", value=offered["Ada"])
    spoken(tab, number, aloud=False)
    assert statuses(tab, number) == ["done"] * LINES
    return number


def test_a_script_follows_a_voice_to_another_name(tab, cast, studio, ada):
    studio.library.rename(ada.id, "Grace")
    other = studio.library.save("Ada", some_clone(7))  # somebody else now
    assert studio.choices().key("Ada") == f"#{other.id}"
    assert statuses(tab, cast) == ["done"] * LINES
    shown = html(page(tab, cast).cast)
    assert f'<option value="#{ada.id}" selected>Grace</option>' in shown
    line = tab.store.open(cast).script.lines[1].id
    assert heard([each for each in payloads_of(tab.playback.redo(cast, line)) if each])


def test_what_a_deleted_voice_has_spoken_is_heard_and_exported(tab, cast, studio, ada, tmp_path):
    studio.library.delete(ada.id)
    assert statuses(tab, cast) == ["done"] * LINES
    opened = tab.store.open(cast)
    files = export(opened, ExportOptions("wav"), tmp_path, lambda *_: None)
    assert Path(files[0]).stat().st_size > 1000
    line = next(line.id for line in opened.script.lines if line.speaker == "Anna")
    assert heard([each for each in payloads_of(tab.playback.listen(cast, line)) if each])
    [refused] = payloads_of(tab.playback.redo(cast, line))
    assert "Anna" in refused["ended"]["message"]
    assert statuses(tab, cast) == ["done"] * LINES  # the take that there was is not given up
    assert ada.id in html(page(tab, cast).cast)


def test_lines_of_others_are_spoken_without_a_voice_that_is_gone(tab, cast, studio, ada):
    studio.library.delete(ada.id)
    opened = tab.store.open(cast)
    ben = next(line.id for line in opened.script.lines if line.speaker == "Ben")
    act(tab, cast, do="edit", line=ben, text="I looked for the key.", who="Ben")
    spoken(tab, cast, aloud=False)
    assert statuses(tab, cast) == ["done"] * LINES


def test_a_script_that_holds_names_is_read(tab, number, studio, ada):
    """As scripts were written before."""
    old = tab.store.open(number).project.casting.with_voice("Anna", "Ada")
    tab.store._projects.save(number, tab.store.open(number).project.having(casting=old))
    assert tab.store.open(number).project.casting.voice_of("Anna") == f"#{ada.id}"


def kept_take(studio, voice: str) -> str:
    form = SpeechForm("Hello there.", voice, seed=1)
    return payloads_of(speak(studio, form, "me"))[-1]["ended"]["take"]


@pytest.mark.parametrize(
    ("voice", "name"), [("ada", "Grace"), ("Ada(1)+ryan(2)", "Grace(1)+Ryan(2)")]
)
def test_a_take_shows_the_name_of_today_and_speaks_again(studio, ada, voice, name):
    number = kept_take(studio, voice)
    studio.library.rename(ada.id, "Grace")
    [take] = TakesTab(studio).find("grace hello", "all", "me")
    assert (take.id, take.voice) == (number, name)
    assert name in SpeakHandlers(studio).last("me")
    again = asked_for(take)
    with studio.engine.submit(again.request(studio.choices())) as stream:
        assert len(stream.collect())
    studio.library.delete(ada.id)
    [gone] = TakesTab(studio).find("ada hello", "all", "me")
    assert "ada" in gone.voice.casefold()
    with pytest.raises((UnknownVoice, RequestError)):
        asked_for(gone).request(studio.choices())


def test_a_deletion_asks_while_anything_uses_the_voice(tab, cast, studio, ada, tmp_path):
    kept_take(studio, "Ada")
    kept_take(studio, "ryan(1)+Ada(1)")
    voices = VoicesTab(studio, tmp_path)
    question, _, _, anyway, asked = voices.delete(ada.id)
    assert "1 script (“The Key”), 2 takes" in question
    assert anyway["visible"]
    assert studio.library.find("Ada")
    assert "deleted" in voices.delete_used(asked)[0]
    assert studio.library.find("Ada") is None


def test_a_guest_is_told_of_own_scripts_and_takes_alone(tab, cast, studio, ada, tmp_path):
    """Voices of two guests may have one id, since each has an own folder."""
    kept_take(studio, "Ada")
    object.__setattr__(studio, "guests", True)
    voices = VoicesTab(studio, tmp_path)
    assert "1 script (“The Key”), 1 take" in voices.delete(ada.id, "me", f"other {cast}")[0]
    assert "is used by 1 take." in voices.delete(ada.id, "me", "other")[0]
    assert "deleted" in voices.delete(ada.id, "another", "other")[0]


def test_a_voice_that_nothing_uses_is_deleted_at_once(studio, ada, tmp_path):
    assert "deleted" in VoicesTab(studio, tmp_path).delete(ada.id)[0]
    assert studio.library.find("Ada") is None
