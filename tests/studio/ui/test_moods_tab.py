"""The moods of the library without a browser: shown, changed, sent, learned, deleted and back."""

from __future__ import annotations

from pathlib import Path

import gradio as gr
import pytest

from engine import Mooded, SavedMood, SpeechRequest, learn_shift, speaker_space
from engine.testing import fake_capabilities
from studio.context import Studio
from studio.ui.tabs.moods import MOST_PAIRS, MoodsTab
from tests.support.tab_makers import heard, payloads_of, recording, some_clone

SPACE = speaker_space(fake_capabilities())


@pytest.fixture
def tab(studio: Studio, tmp_path: Path) -> MoodsTab:
    return MoodsTab(studio, tmp_path / "outbox")


@pytest.fixture
def glad(studio: Studio) -> SavedMood:
    pair = (some_clone(1).vector, some_clone(2).vector)
    return studio.library.moods.save("glad", learn_shift([pair]), SPACE, words=("happy",))


def names(studio: Studio) -> list[str]:
    return [each.name for each in studio.library.moods.list()]


def test_a_mood_is_shown_and_changed(studio: Studio, tab: MoodsTab, glad: SavedMood) -> None:
    moods, voices, *_ = tab.listed(glad.id, None)
    assert (moods["value"], moods["choices"]) == (glad.id, [(f"glad · {SPACE}", glad.id)])
    assert voices["value"] == "ryan"
    _, name, words, note, about, file = tab.show(glad.id)
    assert (name, words, note) == ("glad", "happy", "")
    assert "one pair" in about
    assert Path(file).read_bytes() == studio.library.moods.export(glad.id)
    assert "is changed" in tab.change(glad.id, "joyful", "glad, merry , glad", "mine")[0]
    changed = studio.library.moods.get(glad.id)
    assert (changed.name, changed.mood.words, changed.card.note) == (
        "joyful", ("glad", "merry"), "mine",
    )  # fmt: skip
    assert (changed.mood.shift == glad.mood.shift).all()
    for wrong in ("", "a+b", "[x]"):
        refused, *form = tab.change(glad.id, wrong, "", "A note that took time.")
        assert "⚠️" in refused
        assert all(field == gr.skip() for field in form)  # nothing that was typed is lost
    assert "⚠️" in tab.change(None, "x", "", "")[0]


def test_a_deleted_mood_comes_back(studio: Studio, tab: MoodsTab, glad: SavedMood) -> None:
    status, ticket, _ = tab.delete(glad.id)
    assert "is deleted" in status
    assert tab.show(glad.id)[0] == gr.update(visible=False)
    assert tab.listed(glad.id, None)[0]["value"] is None
    assert "is back" in tab.restore(ticket)[0]
    assert names(studio) == ["glad"]


def test_a_file_of_a_mood_is_taken_and_no_other(
    studio: Studio, tab: MoodsTab, glad: SavedMood, tmp_path: Path
) -> None:
    file = tab.show(glad.id)[-1]
    tab.delete(glad.id)
    assert "is here" in tab.receive(file)
    assert names(studio) == ["glad"]
    voice = studio.library.save("Anna", some_clone(3), consent=True)
    other = tmp_path / "a.safetensors"
    other.write_bytes(studio.library.export(voice.id))
    assert "⚠️" in tab.receive(str(other))
    assert "⚠️" in tab.receive(None)


def test_a_mood_is_learned_from_voices_and_with_consent_from_recordings(
    studio: Studio, tab: MoodsTab, tmp_path: Path
) -> None:
    assert "is learned" in tab.learn("bright", "clear", [], [], ["ryan"], ["vivian"], False)
    sounds = [str(recording(tmp_path / f"{loud}.wav", loud=loud)) for loud in (0.3, 0.6)]
    mixed = ([sounds[0]], [sounds[1]], ["ryan"], ["vivian"])
    assert "agreed" in tab.learn("sad", "", *mixed, False)
    assert "2 pairs" in tab.learn("sad", "", *mixed, True)
    assert names(studio) == ["bright", "sad"]
    assert studio.library.moods.list()[1].card.consent


@pytest.mark.parametrize(
    "given",
    [
        ([], [], ["ryan"], []),
        (["a.wav"], [], [], ["ryan"]),
        ([], [], [], []),
        ([], [], ["nobody"], ["ryan"]),
        ([], [], ["ryan"], ["ryan"]),
        ([], [], ["ryan"] * (MOST_PAIRS + 1), ["vivian"] * (MOST_PAIRS + 1)),
    ],
)
def test_what_is_no_pair_is_refused(
    studio: Studio, tab: MoodsTab, given: tuple[list[str], ...]
) -> None:
    assert "⚠️" in tab.learn("sad", "", *given, True)
    assert "⚠️" in tab.learn(" ", "", [], [], ["ryan"], ["vivian"], True)
    assert names(studio) == []


def test_no_file_of_the_server_is_read_as_a_voice(
    studio: Studio, tab: MoodsTab, tmp_path: Path
) -> None:
    sound = str(recording(tmp_path / "secret.wav"))
    assert "No voice" in tab.learn("sad", "", [], [], [sound], ["ryan"], True)


def test_a_voice_is_heard_in_the_mood(
    studio: Studio, tab: MoodsTab, glad: SavedMood, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests, submit = list[SpeechRequest](), studio.engine.submit
    monkeypatch.setattr(
        studio.engine, "submit", lambda request: requests.append(request) or submit(request)
    )
    assert heard(payloads_of(tab.speak(glad.id, "ryan", 0.5, "Hi you.")))
    [request] = requests
    assert isinstance(request.voice, Mooded)
    assert [(mood.name, dose) for mood, dose in request.voice.moods] == [("glad", 0.5)]
    assert payloads_of(tab.speak(None, "ryan", 1.0, "Hi."))[-1]["ended"]["message"]
