"""Texts that are too long for one run of a checkpoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import EngineSettings, Preset, SpeechRequest
from engine.requests import text_groups as module
from engine.requests.text_groups import text_groups
from engine.testing import FakeCheckpoint, FakeEngine, fake_capabilities
from engine.text.sentences import LANGUAGE_CODES, letters, spoken_size
from tests.support.simulation import Simulation

SENTENCES = "The harbour was quiet. A man in a blue coat counted the boxes twice! Nobody spoke? "
TEXTS = st.text(st.sampled_from("abc de.f!?… 你好。,;\n\"'(1"), max_size=400) | st.text(
    max_size=200
)


@given(TEXTS, st.integers(40, 200), st.sampled_from(sorted(LANGUAGE_CODES)))
@settings(deadline=None, max_examples=200)
def test_groups_joined_are_the_text_and_none_is_too_long_or_silent(text, longest, language):
    groups = text_groups(text, longest, language)
    assert "".join(groups) == text
    for group in groups:
        spoken = group.strip(" \n.!?…,;\"'(。")
        assert spoken_size(spoken) <= longest + 2  # one character may be three letters
        assert letters(group) or len(groups) == 1 or not letters(text)


def test_groups_are_whole_sentences_where_they_fit():
    groups = text_groups(SENTENCES * 3, 60)
    assert all(group.rstrip()[-1] in ".!?" for group in groups)
    assert len(groups) == 6


def test_marks_without_letters_are_read_once(monkeypatch):
    """They all join one group, whose size must not be counted again for each."""
    counted = []
    monkeypatch.setattr(module, "spoken_size", lambda text: counted.append(len(text)) or len(text))
    text = "好。" + "。 " * 2000
    assert text_groups(text, 300) == [text]
    assert sum(counted) < 10 * len(text)


def engine(longest: int = 60, **more: object) -> FakeEngine:
    return FakeEngine(
        [FakeCheckpoint(fake_capabilities(max_letters=longest))],
        EngineSettings(max_num_seqs=2, **more),  # type: ignore[arg-type]
    )


def frames(text: str, longest: int = 60) -> int:
    """The fake worker speaks a frame an id, and no space at a joint is spoken."""
    return sum(len(group.strip()) for group in text_groups(text, longest))


def ask(text: str, **more: object) -> SpeechRequest:
    return SpeechRequest(text, Preset("ryan"), **{"seed": 7, **more})


@pytest.mark.parametrize("live", [True, False])
def test_a_long_text_is_spoken_whole_in_one_stream(live):
    text = SENTENCES * 20
    with engine() as fake:
        stream = fake.submit(ask(text, live=live))
        chunks = list(stream)
        assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
        assert sum(chunk.frames for chunk in chunks) == frames(text)
        assert (stream.end.reason, stream.end.frames, stream.seed) == ("finished", frames(text), 7)
        assert stream.text_tokens == frames(text)
        assert fake.stats().running == 0


@pytest.mark.parametrize("step", [1, 7, 60, 1000])
def test_an_open_text_is_spoken_whole_however_it_arrives(step):
    text = SENTENCES * 6
    with engine() as fake:
        stream = fake.submit(ask("", open_text=True))
        for start in range(0, len(text), step):
            stream.append(text[start : start + step])
        stream.close_text()
        heard = sum(chunk.frames for chunk in stream)
        assert len(text) - len(text_groups(text, 40)) <= heard < len(text)
        assert stream.end.reason == "finished"


def test_an_open_text_that_ends_with_a_group_ends():
    with engine() as fake:
        stream = fake.submit(ask(SENTENCES, open_text=True))
        stream.append("x")  # what shows that the last sentence was one
        stream.close_text()
        assert sum(chunk.frames for chunk in stream) == len(
            SENTENCES.strip()
        )  # without the space at its joint, and x


def test_the_same_seed_speaks_the_same_whole_or_streamed():
    with engine() as fake:
        live, again, file = (
            fake.submit(ask(SENTENCES * 4, live=live)).collect() for live in (True, True, False)
        )
    assert np.array_equal(live, again)
    assert np.array_equal(live, file)


def test_leaving_in_the_middle_frees_the_slot_within_a_step():
    simulation = Simulation(max_num_seqs=1, max_letters=60)
    listener = simulation.ask(ask(SENTENCES * 20))
    while listener.frames < 200:
        simulation.turn()
    listener.stream.cancel()
    simulation.turn()
    simulation.turn()
    assert simulation.engine.stats().running == simulation.engine.stats().waiting == 0


def test_a_listener_hears_no_gap_between_groups_while_others_wait():
    simulation = Simulation(max_num_seqs=2, max_letters=60)
    listener = simulation.ask(ask(SENTENCES * 8))
    for _ in range(6):
        simulation.ask(ask(SENTENCES))
    simulation.finish()
    assert listener.frames == frames(8 * SENTENCES)
    assert not listener.gaps


def test_the_frames_that_a_request_allows_are_those_of_all_groups():
    with engine() as fake:
        stream = fake.submit(ask(SENTENCES * 4, max_frames=150))
        assert sum(chunk.frames for chunk in stream) == 150
        assert stream.end.reason == "length"


def test_a_group_that_ends_early_is_made_again_for_a_file_and_told_of_a_stream():
    simulation = Simulation(max_num_seqs=2, max_letters=60)
    usual, text = simulation.worker.frames_of, SENTENCES * 3
    simulation.worker.frames_of = lambda admit, prompt: (
        3 if admit.seed == 7 else usual(admit, prompt)
    )
    file = simulation.ask(ask(text, live=False))
    simulation.finish()
    assert (file.frames, file.stream.end.reason) == (frames(text), "finished")
    assert file.stream.seed == 7  # the same seed gives the same again
    live = simulation.ask(ask(text))
    simulation.finish()
    assert live.stream.end.reason == "incomplete"
    assert live.frames < len(text)
