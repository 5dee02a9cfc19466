"""One request, several moods: each run has its own voice, and says which."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from engine.config import EngineSettings
from engine.errors import InvalidSetting, InvalidVoice
from engine.plan import Prompt
from engine.requests.input_processor import InputProcessor
from engine.requests.sequence import Sequence
from engine.testing.fake_checkpoint import FakeCheckpoint, fake_capabilities
from engine.types import Blend, Clone, Design, Mood, Mooded, Preset, SpeechRequest
from engine.voices.mood import speaker_space, with_moods

SPACE = speaker_space(fake_capabilities())
GLAD = Mood("glad", np.eye(16, dtype=np.float32)[0], SPACE, ("happy",))
MOODS = {"glad": GLAD, "happy": GLAD}
VECTOR = np.arange(1, 17, dtype=np.float32)
TEXT = "Good day. [glad 0.5] How nice! [/glad] Goodbye."


def sequence_of(request: SpeechRequest) -> Sequence:
    processor = InputProcessor({"fake": FakeCheckpoint()}, EngineSettings(), time.monotonic)
    return processor.process(request).sequence


def prompts_of(request: SpeechRequest) -> list[tuple[str, Prompt]]:
    found = [group.complete() for group in sequence_of(request).groups]
    return [("".join(map(chr, prompt.text_ids)), prompt) for prompt in found]


def test_each_run_has_the_voice_of_its_mood() -> None:
    found = prompts_of(SpeechRequest(TEXT, Clone(VECTOR), moods=MOODS))
    assert [text for text, _ in found] == ["Good day.", "How nice!", "Goodbye."]
    vectors = [prompt.vector for _, prompt in found]
    np.testing.assert_array_equal(vectors[0], VECTOR)
    np.testing.assert_array_equal(vectors[1], with_moods(VECTOR, [(GLAD, 0.5)]))
    np.testing.assert_array_equal(vectors[2], VECTOR)


def test_presets_stay_presets_where_no_mood_holds() -> None:
    found = prompts_of(SpeechRequest(TEXT, Preset("ryan"), moods=MOODS))
    assert [prompt.speaker_id is None for _, prompt in found] == [False, True, False]
    assert {prompt.layout for _, prompt in found} == {"whole"}


def test_a_tag_takes_the_place_of_the_voice_s_mood() -> None:
    sad = Mood("sad", np.eye(16, dtype=np.float32)[1], SPACE)
    found = prompts_of(SpeechRequest(TEXT, Mooded(Clone(VECTOR), ((sad, 1.0),)), moods=MOODS))
    np.testing.assert_array_equal(found[0][1].vector, with_moods(VECTOR, [(sad, 1.0)]))
    np.testing.assert_array_equal(found[1][1].vector, with_moods(VECTOR, [(GLAD, 0.5)]))


def test_an_own_recording_is_taken_before_what_was_learned_and_it_says_so() -> None:
    recorded = Clone(VECTOR[::-1].copy(), "said gladly", np.zeros((3, 16), np.int64))
    voice = replace(Clone(VECTOR), references=(("Happy", recorded),))
    request = SpeechRequest(TEXT, voice, moods=MOODS)
    found = prompts_of(request)
    np.testing.assert_array_equal(found[1][1].vector, recorded.vector)
    assert found[1][1].reference is not None
    assert found[0][1].reference is None
    assert "own recording" in str(sequence_of(request).notices)
    without = replace(request, voice=Clone(VECTOR))
    assert "glad (learned)" in str(sequence_of(without).notices)


def test_texts_without_known_tags_are_spoken_as_ever() -> None:
    plain = SpeechRequest("See [1] and [sad] (here).", Clone(VECTOR))
    with_moods_there = replace(plain, moods=MOODS)
    texts = [[text for text, _ in prompts_of(each)] for each in (plain, with_moods_there)]
    assert texts[0] == texts[1] == ["See [1] and [sad] (here)."]


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(InvalidVoice, match="described"):
        sequence_of(SpeechRequest(TEXT, Design("a man"), moods=MOODS))
    with pytest.raises(InvalidSetting, match=r"0 to 1\.5"):
        sequence_of(SpeechRequest("[glad 7] Hello.", Clone(VECTOR), moods=MOODS))
    blend = Blend(((Clone(VECTOR), 1), (Preset("ryan"), 1)))
    assert len(prompts_of(SpeechRequest(TEXT, blend, moods=MOODS))) == 3


def test_beside_a_style_instruction_moods_are_left_out_and_it_says_so() -> None:
    request = SpeechRequest(TEXT, Preset("ryan", "softly"), moods=MOODS)
    assert {prompt.speaker_id for _, prompt in prompts_of(request)} == {1000}
    assert "left out" in str(sequence_of(request).notices)


@pytest.mark.parametrize("moods", [MOODS, {}])
def test_a_closed_tag_that_names_no_mood_is_left_out_and_told(moods: dict[str, Mood]) -> None:
    request = SpeechRequest("[blue 0.5] Good day. [/blue]", Preset("ryan"), moods=moods)
    [(text, _)] = prompts_of(request)
    assert text.strip() == "Good day."
    assert any("blue" in str(each) for each in sequence_of(request).notices)
