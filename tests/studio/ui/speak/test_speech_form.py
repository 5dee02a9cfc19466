"""What a text with pauses, cues, a pronunciation list and a speed sounds like under Speak."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine import SAMPLE_RATE, InvalidSetting, Preset, SpeechRequest
from studio.time_stretch import stretch
from studio.ui.speech_form import MAX_PIECES, SpeechForm, asked_for
from studio.ui.tabs.take_compare import speak
from tests.support.tab_makers import heard, payloads_of, some_clone


def spoken(studio, form: SpeechForm) -> np.ndarray:
    sound = heard(
        payloads_of(studio.live.play(lambda: form.submit(studio.engine, studio.choices())))
    )
    return np.frombuffer(sound, np.int16)


def line(studio, text: str, instruct: str = "", seed: int = 3) -> np.ndarray:
    request = SpeechRequest(text, Preset("ryan", instruct), seed=seed)
    return studio.engine.submit(request).collect()


def test_a_pause_is_as_long_as_it_says(studio):
    form = SpeechForm("One door. [pause 1.5s] Another door.", "ryan", seed=3)
    silence = np.zeros(round(1.5 * SAMPLE_RATE), np.int16)
    wanted = np.concatenate([line(studio, "One door."), silence, line(studio, "Another door.")])
    np.testing.assert_array_equal(spoken(studio, form), wanted)


def test_a_cue_is_an_instruction_where_the_voice_can(studio):
    form = SpeechForm("Hello. [whispers] Come here.", "ryan", instruct="slowly", seed=3)
    wanted = [line(studio, "Hello.", "slowly"), line(studio, "Come here.", "slowly, whispers")]
    np.testing.assert_array_equal(spoken(studio, form), np.concatenate(wanted))
    assert form.dropped(studio.choices()) == ()


def test_a_cue_is_left_out_where_it_cannot(studio):
    studio.library.save("Ada", some_clone())
    form = SpeechForm("[whispers] Come here.", "Ada", seed=3)
    assert form.dropped(studio.choices()) == ("whispers",)
    request = SpeechRequest("Come here.", studio.library.find("Ada").voice, seed=3)
    np.testing.assert_array_equal(spoken(studio, form), studio.engine.submit(request).collect())


def test_a_tag_takes_the_person_s_own_recording_and_is_no_cue(studio, monkeypatch):
    saved = studio.library.save("Ada", some_clone(), consent=True)
    studio.library.keep_reference(saved.id, "whisper", some_clone(2))
    form = SpeechForm("Come in. [whisper] Come here. [/whisper]", "Ada", seed=3)
    assert form.dropped(studio.choices()) == ()
    assert form.said(studio.choices()) == "Come in. Come here."
    calls, submit = [], studio.engine.submit
    monkeypatch.setattr(
        studio.engine, "submit", lambda request: calls.append(request) or submit(request)
    )
    spoken(studio, form)
    assert [request.text for request in calls] == [form.text]
    other = SpeechForm(form.text, "ryan")
    assert other.said(studio.choices()) == "Come in. Come here."


def test_words_are_said_as_the_list_has_them(studio):
    form = SpeechForm("Nguyen is here.", "ryan", seed=3, spellings="Nguyen = win")
    np.testing.assert_array_equal(spoken(studio, form), line(studio, "Win is here."))
    with pytest.raises(InvalidSetting, match="Line 1"):
        SpeechForm("x", spellings="no list").submit(studio.engine, studio.choices())


@pytest.mark.parametrize("speed", [0.5, 1.25, 2.0])
def test_speed_changes_the_length_and_is_kept(studio, speed):
    form = SpeechForm("One door. [pause 1s] Another.", "ryan", seed=3, speed=speed)
    plain = spoken(studio, SpeechForm(form.text, "ryan", seed=3))
    np.testing.assert_array_equal(spoken(studio, form), stretch(plain, speed))
    take = studio.takes.get(payloads_of(speak(studio, form, "me"))[-1]["ended"]["take"])
    assert asked_for(take) == form


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan])
def test_another_length_is_refused(studio, seconds):
    with pytest.raises(InvalidSetting, match="more than 0 seconds"):
        SpeechForm("Hi.", "ryan", longest=seconds).submit(studio.engine, studio.choices())


@pytest.mark.parametrize("speed", [0.1, 3.0])
def test_another_speed_is_refused(studio, speed):
    with pytest.raises(InvalidSetting, match=r"from 0\.5 to 2"):
        SpeechForm("Hi.", speed=speed).submit(studio.engine, studio.choices())


def test_one_seed_is_drawn_for_all_pieces_and_few_are_asked_at_a_time(studio):
    form = SpeechForm("A. [pause 0.1s] " * 10 + "B.", "ryan")
    stream = form.submit(studio.engine, studio.choices())
    assert len(stream._streams) < 5
    stream.cancel()
    seed = payloads_of(speak(studio, form, "me"))[-1]["ended"]["seed"]
    again = SpeechForm(form.text, "ryan", seed=seed)
    kept = studio.takes.pcm(studio.takes.search()[0].id)
    np.testing.assert_array_equal(spoken(studio, again), kept)
    with pytest.raises(InvalidSetting, match="Script tab"):
        SpeechForm("A. [pause]" * (MAX_PIECES + 1)).submit(studio.engine, studio.choices())
