"""The Clone tab without a browser: checked, tried, kept, and refused in words."""

from __future__ import annotations

import re
from dataclasses import replace

import gradio as gr
import numpy as np
import pytest

from engine import (
    InvalidAudio,
    RecordingMarks,
    SpeechRequest,
    load_reference_audio,
    recorded_moods,
    speaking_seconds,
)
from engine.audio.recording_quality import Quality, Stretch
from studio.ui.recordings import checks, loaded
from studio.ui.recordings.checks import BEST, CHECKED, checks_of
from studio.ui.tabs.clone import NEED_CONSENT, READ_ALOUD, CloneTab, _filled
from tests.support.tab_makers import heard, payloads_of, recording


@pytest.fixture
def tab(studio):
    return CloneTab(studio)


@pytest.fixture
def spoken(tmp_path):
    return str(recording(tmp_path / "mine.wav"))


def test_a_recording_is_shown_as_the_model_hears_it(tab, studio, spoken):
    shown, message = tab.check(spoken)
    reference = load_reference_audio(spoken)
    assert f"{reference.seconds:.1f} s" in shown
    assert "disabled" not in shown
    payloads = payloads_of(tab.hear(spoken))
    pcm = np.frombuffer(heard(payloads), np.int16)
    assert np.abs(pcm / 32767 - reference.waveform).max() < 1e-4
    assert payloads[0]["voice"] == "Cleaned reference"
    assert reference.notes
    assert all((note in message) != (note.key in CHECKED) for note in reference.notes)


@pytest.mark.parametrize(
    ("flawed", "advice"),
    [
        ({"noise": 9.0}, "Record in a quiet room"),
        ({"fall": 3.0}, "Record among soft furniture"),
        ({"tones": 13.0, "noise": 30.0}, "Record without it"),
        ({"apart": 11.0}, "Cut out what others say"),
        ({"clipped": 0.02}, "lower the input level"),
    ],
)
def test_each_flaw_of_a_recording_says_what_to_do(spoken, flawed, advice):
    good = Quality(noise=45.0, fall=30.0, apart=1.0)
    whole = replace(load_reference_audio(spoken), quality=good, seconds=8.0)
    assert 'class="bad"' not in checks_of(whole)
    shown = checks_of(replace(whole, quality=replace(good, **flawed)))
    assert shown.count('class="bad"') == 1
    assert advice in shown
    assert shown.count("<svg") == 6  # a picture for each check


@pytest.mark.parametrize(
    ("flawed", "marks"),
    [
        ({"noise": 9.0}, {"pauses": ((0.5, 1.0),)}),
        ({"tones": 13.0, "noise": 30.0}, {"pauses": ((0.5, 1.0),)}),
        ({"fall": 3.0}, {"tails": ((0.5, 1.0),)}),
        ({"apart": 11.0}, {"others": (Stretch(0.5, 1.0, 220.0),)}),
        ({"clipped": 0.02}, {"clipped": ((0.5, 1.0),)}),
    ],
)
def test_each_flaw_is_marked_where_it_is(spoken, flawed, marks, monkeypatch):
    whole = replace(load_reference_audio(spoken), seconds=8.0)
    plain = RecordingMarks(np.full(800, -20.0), -60.0, (), (), (), (Stretch(0.5, 1.0, 220.0),), ())
    monkeypatch.setattr(checks, "marks_of", lambda recording: replace(plain, **marks))
    good = Quality(noise=45.0, fall=30.0, apart=1.0)
    for quality, bad in ((good, False), (replace(good, **flawed), True)):
        shown = checks_of(replace(whole, quality=quality))
        path = re.search(r'<path class="marked" d="([^"]+)"/>', shown)
        assert bool(path) == bad
        places_shown = "· 0.5–1.0 s" in shown
        assert places_shown == (bad and {*marks} <= {"others", "clipped"})
    places = {float(each) for each in re.findall(r"M([\d.]+) ", path[1])}
    assert min(places) >= 0.5 / 8 * 180 - 2
    assert max(places) <= 1.0 / 8 * 180 + 2


def test_an_unusable_recording_says_what_to_do(tab, studio, tmp_path):
    short = str(recording(tmp_path / "short.wav", seconds=0.2))
    shown, message = tab.check(short)
    assert "disabled" in shown
    assert "at least" in message
    assert "at least" in payloads_of(tab.hear(short))[-1]["ended"]["message"]
    foreign = tmp_path / "foreign.wav"
    foreign.write_bytes(b"no sound at all")
    assert "Use a WAV, AIFF, FLAC, OGG, MP3" in tab.check(str(foreign))[1]


@pytest.mark.parametrize("words", ["", "These are the words."])
def test_trying_speaks_the_copy(tab, studio, spoken, words):
    payloads = payloads_of(tab.speak(spoken, words, True, "hello"))
    voice = studio.engine.clone(load_reference_audio(spoken).waveform, words)
    assert voice.in_context == bool(words)
    seed = payloads[-1]["ended"]["seed"]
    expected = studio.engine.submit(SpeechRequest("hello", voice, seed=seed)).collect()
    assert heard(payloads) == expected.tobytes()
    assert studio.takes.search() == []  # a try is nobody's take


def test_without_consent_nothing_is_copied(tab, studio, spoken):
    assert payloads_of(tab.speak(spoken, "", False, "hi"))[-1]["ended"]["message"] == NEED_CONSENT
    assert NEED_CONSENT in tab.save("Me", "", "", spoken, "", False)
    assert studio.library.list() == ()


def test_without_a_recording_it_says_so(tab, studio):
    assert "first" in payloads_of(tab.speak(None, "", True, "hi"))[-1]["ended"]["message"]
    assert "first" in payloads_of(tab.hear(None))[-1]["ended"]["message"]
    assert "disabled" in tab.check(None)[0]


@pytest.mark.parametrize("words", ["", "These are the words."])
def test_what_is_kept_is_the_copy(tab, studio, spoken, words):
    assert "**Me**" in tab.save("Me", "#112233", " mine ", spoken, words, True)
    saved = studio.library.find("Me")
    voice = studio.engine.clone(load_reference_audio(spoken).waveform, words)
    assert np.array_equal(saved.voice.vector, voice.vector)
    assert saved.voice.in_context == bool(words)
    card = saved.card
    assert (card.kind, card.consent, card.note, card.colour) == ("clone", True, "mine", "#112233")
    assert card.made_from == "mine.wav"


def test_a_transcript_that_no_recording_can_hold_is_refused(tab, studio, spoken):
    """Before: “The text is too long to be spoken at once.”, when the voice was tried."""
    assert "Paste only what is said" in tab.save("Me", "", "", spoken, "word " * 400, True)
    assert studio.library.list() == ()
    assert "**Me**" in tab.save("Me", "", "", spoken, "word " * 19, True)


def test_programs_get_the_id_or_the_reason(tab, studio, spoken):
    assert studio.library.get(tab.program("Me", spoken, "Words.", True)).voice.in_context
    with pytest.raises(gr.Error, match="Tick the box"):
        tab.program("Not me", spoken, "", False)


def transcribing(studio, words):
    heard = []

    def transcribe(waveform):
        heard.append(waveform)
        return words

    return CloneTab(replace(studio, transcribe=transcribe)), heard


def test_the_words_of_a_recording_are_written_down(studio, spoken):
    tab, heard = transcribing(studio, "Good evening.")
    *_, (written, shown) = tab.transcribe(spoken)
    assert written == (spoken, "Good evening.")
    assert "value" not in shown  # what is typed meanwhile stays
    np.testing.assert_array_equal(heard[0], load_reference_audio(spoken).waveform)


@pytest.mark.parametrize(
    ("words", "typed", "filled"), [("a", "", "a"), ("a", "b", None), ("", "", None)]
)
def test_what_is_typed_goes_before_what_is_heard(words, typed, filled):
    assert _filled(("a.wav", words), "a.wav", typed).get("value") == filled


def test_the_words_of_one_recording_are_not_written_under_another():
    for now in ("b.wav", None):
        assert _filled(("a.wav", "Words of a."), now, "").get("value") is None


def test_without_a_recogniser_or_a_recording_nothing_is_written(studio, spoken, tmp_path):
    assert [written for written, _ in CloneTab(studio).transcribe(spoken)] == [("", "")]
    tab, heard = transcribing(studio, "made up")
    foreign = tmp_path / "foreign.wav"
    foreign.write_bytes(b"no sound at all")
    for path in (None, "", str(foreign)):
        assert [*tab.transcribe(path)][-1][0][1] == ""
    assert heard == []


@pytest.mark.parametrize("text", READ_ALOUD)
def test_a_sentence_to_read_is_as_long_as_a_good_recording(text):
    assert BEST[0] <= speaking_seconds(text) <= BEST[1]


def test_a_recording_in_a_mood_is_added_to_a_saved_clone(tab, studio, spoken):
    tab.save("Me", "", "", spoken, "", True)
    [(name, key)] = tab.clones()["choices"]
    assert name == "Me"
    assert "⚠️" in tab.add(None, "whisper", spoken, "", True)
    assert "⚠️" in tab.add(key, " ", spoken, "", True)
    assert "⚠️" in tab.add("no-such", "whisper", spoken, "", True)
    assert NEED_CONSENT in tab.add(key, "whisper", spoken, "", False)
    assert recorded_moods(studio.library.get(key).voice) == {}
    assert "whisper" in tab.add(key, "whisper", spoken, "What I whispered.", True)
    kept = recorded_moods(studio.library.get(key).voice)
    assert kept["whisper"].transcript.startswith("What I whispered.")


def test_a_recording_is_read_once_and_again_when_its_file_changes(tab, tmp_path, monkeypatch):
    paths = [str(recording(tmp_path / f"{name}.wav", seconds=3 + name / 10)) for name in range(3)]
    read = []

    def load(path):
        read.append(path)
        return load_reference_audio(path)

    monkeypatch.setattr(loaded, "load_reference_audio", load)
    tab.check(paths[0])
    tab.compare(paths[0], paths[1:], True)
    assert "**Me**" in tab.save("Me", "", "", paths[0], "", True, "", paths[1:], None)
    assert sorted(read) == paths
    recording(tmp_path / "0.wav", seconds=2.0)
    assert "2.2 s" in tab.check(paths[0])[0]
    with pytest.raises(InvalidAudio, match="no file"):
        loaded.recording_at(str(tmp_path / "gone.wav"))


def test_what_was_ticked_among_other_recordings_tells_nothing(tab, tmp_path):
    """Clone is pressed before the recordings that are left have been compared."""
    paths = [str(recording(tmp_path / f"{name}.wav", seconds=3 + name / 10)) for name in range(4)]

    def vector(more, used):
        return tab._voice(paths[0], "", True, "", more, used).vector

    ticked = [key for _, key in tab.compare(paths[0], paths[1:], True)[1]["choices"]]
    used = [ticked[0], ticked[1], ticked[3]]  # number 2 is left out
    assert np.array_equal(vector(paths[1:], used), vector([paths[1], paths[3]], None))
    left = paths[2:]  # number 1 is deleted: the places are others
    assert np.array_equal(vector(left, used), vector(left, None))
    assert not np.array_equal(vector(left, None), vector([paths[2]], None))
