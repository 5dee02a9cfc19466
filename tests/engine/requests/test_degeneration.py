"""Speech that does not end, ends too soon, loops or falls silent."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Preset, SamplingParams, SpeechRequest
from engine.requests.degeneration import (
    LONGEST_PERIOD,
    LOOP_FRAMES,
    MIN_BUDGET,
    SILENT_FRAMES,
    LoopDetector,
    SilenceDetector,
    ended_too_early,
    frame_budget,
)
from engine.types import FRAME_SAMPLES, Codes, Pcm
from tests.support.simulation import Listener, Simulation

WORDS = "a sentence of ordinary length"
LANGUAGES = st.sampled_from(["auto", "english", "chinese", "japanese", "russian"])


def spoken(simulation: Simulation, words: str = WORDS, **more: object) -> Listener:
    listener = simulation.ask(SpeechRequest(words, Preset("ryan"), **{"seed": 1, **more}))
    assert listener is not None
    simulation.finish()
    return listener


def endless(simulation: Simulation, seeds: set[int] | None = None) -> None:
    """Speech with these seeds (or all) never ends by itself."""
    usual = simulation.worker.frames_of
    simulation.worker.frames_of = lambda admit, prompt: (
        10**9 if seeds is None or admit.seed in seeds else usual(admit, prompt)
    )


# The budget.


@given(st.integers(0, 5000), st.integers(0, 500), LANGUAGES)
@settings(deadline=None)
def test_the_budget_grows_with_the_text_and_is_generous(tokens, more, language):
    budget = frame_budget(tokens, language)
    assert MIN_BUDGET <= budget <= frame_budget(tokens + more, language)
    assert budget >= 7 * tokens  # slow digits, twice over what speech takes
    assert frame_budget(tokens, "auto") >= budget


@given(st.integers(0, 5000))
@settings(deadline=None)
def test_no_speech_within_the_speed_of_people_is_too_short(letters):
    frames = letters / 25 / 0.08
    assert not ended_too_early(math.ceil(frames), letters)
    assert not ended_too_early(0, min(letters, 11))
    assert letters < 12 or ended_too_early(math.floor(frames / 2), letters)


# The detectors.


def tell(detector: LoopDetector, codes: list[int]) -> bool:
    """Tell them all; whether any was found to loop."""
    return sum(detector.looping(code) for code in codes) > 0


@given(st.integers(1, LONGEST_PERIOD), st.lists(st.integers(0, 2047), max_size=80))
@settings(deadline=None)
def test_a_loop_is_found_after_its_time_whatever_came_before(period, before):
    detector = LoopDetector()
    if tell(detector, before):
        return
    pattern = list(range(5000, 5000 + period))
    verdicts = [detector.looping(pattern[at % period]) for at in range(LOOP_FRAMES + 2 * period)]
    assert not any(verdicts[:LOOP_FRAMES])
    assert verdicts[LOOP_FRAMES + period - 1]


@given(st.integers(0, 10**6))
@settings(deadline=None)
def test_speech_is_no_loop(seed):
    source = random.Random(seed)
    detector = LoopDetector()
    assert not tell(detector, [source.randrange(2048) for _ in range(500)])


def test_a_long_vowel_is_no_loop():
    detector = LoopDetector()
    codes = [7] * (LOOP_FRAMES // 2) + [8] + [7] * (LOOP_FRAMES // 2)
    assert not tell(detector, codes)


def sound(frames: int, loud: bool) -> Pcm:
    level = 3000 if loud else 20
    return (level * np.sin(np.arange(frames * FRAME_SAMPLES) / 20)).astype(np.int16)


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=12))
@settings(deadline=None)
def test_silence_is_told_by_its_length_however_it_is_cut(pieces):
    detector, silent = SilenceDetector(), 0
    for frames, loud in pieces:
        silent = 0 if loud else silent + frames
        assert detector.silent(sound(frames, loud)) == (silent >= SILENT_FRAMES)


def test_silence_counts_from_the_last_sound_within_a_chunk():
    detector = SilenceDetector()
    mixed = np.concatenate([sound(1, True), sound(SILENT_FRAMES - 1, False)])
    assert not detector.silent(mixed)
    assert detector.silent(sound(1, False))


# What becomes of them.


def test_a_live_runaway_ends_at_its_budget_and_says_so():
    simulation = Simulation(max_num_seqs=2)
    endless(simulation)
    listener = spoken(simulation, language="english")
    assert listener.stream.end.reason == "runaway"
    assert listener.stream.end.error is None
    assert listener.frames == frame_budget(len(WORDS), "english")


def test_a_file_that_ran_away_is_made_again_with_another_seed():
    simulation = Simulation(max_num_seqs=2)
    endless(simulation, {1})
    listener = spoken(simulation, live=False)
    assert listener.stream.end.reason == "finished"
    assert listener.frames == len(WORDS)
    assert listener.stream.end.seed == listener.stream.seed != 1
    assert simulation.engine.stats().retried == 1
    again = Simulation(max_num_seqs=2)
    endless(again, {1})
    assert spoken(again, live=False).stream.seed == listener.stream.seed  # the same every time


def test_a_file_that_runs_away_twice_is_handed_over_as_it_is():
    simulation = Simulation(max_num_seqs=2)
    endless(simulation)
    listener = spoken(simulation, live=False)
    assert listener.stream.end.reason == "runaway"
    assert listener.frames > 0
    assert simulation.engine.stats().retried == 1


@pytest.mark.parametrize("live", [True, False])
def test_only_a_file_is_made_again_when_it_ends_too_soon(live):
    simulation = Simulation(max_num_seqs=2)
    usual = simulation.worker.frames_of
    simulation.worker.frames_of = lambda admit, prompt: (
        3 if admit.seed == 1 else usual(admit, prompt)
    )
    listener = spoken(simulation, live=live)
    assert listener.stream.end.reason == ("incomplete" if live else "finished")
    assert listener.frames == (3 if live else len(WORDS))


@pytest.mark.parametrize("more", [{"sampling": SamplingParams(greedy=True)}, {"max_frames": 40}])
def test_what_would_come_out_the_same_or_was_asked_for_is_not_made_again(more):
    simulation = Simulation(max_num_seqs=2)
    endless(simulation)
    spoken(simulation, live=False, **more)
    assert simulation.engine.stats().retried == 0


def test_a_loop_stops_long_before_the_budget():
    simulation = Simulation(max_num_seqs=2)
    endless(simulation)
    simulation.worker.codes_of = _stuck_after(20)
    listener = spoken(simulation, "x" * 300)
    assert listener.stream.end.reason == "runaway"
    assert 20 + LOOP_FRAMES <= listener.frames <= 20 + LOOP_FRAMES + 2


def _stuck_after(frames: int):
    from engine.testing.fake_worker import fake_codes

    def codes(prompt, seed: int, frame: int) -> Codes:
        return fake_codes(prompt, seed, min(frame, frames))

    return codes


def test_endless_silence_stops_long_before_the_budget():
    simulation = Simulation(max_num_seqs=2)
    endless(simulation)
    simulation.worker.sound_of = lambda codes: np.zeros(len(codes) * FRAME_SAMPLES, np.int16)
    listener = spoken(simulation, "x" * 300)
    assert listener.stream.end.reason == "runaway"
    assert SILENT_FRAMES <= listener.frames <= SILENT_FRAMES + 24


@pytest.mark.parametrize("more", [{"stop_degeneration": False}, {"ignore_end": True}])
def test_detection_can_be_turned_off(more):
    guard = {"stop_degeneration": False} if "stop_degeneration" in more else {}
    simulation = Simulation(max_num_seqs=2, **guard)
    endless(simulation)
    simulation.worker.sound_of = lambda codes: np.zeros(len(codes) * FRAME_SAMPLES, np.int16)
    simulation.worker.codes_of = _stuck_after(3)
    wanted = {key: value for key, value in more.items() if key != "stop_degeneration"}
    listener = spoken(simulation, max_frames=700, **wanted)
    assert listener.frames == 700
    assert listener.stream.end.reason == "length"
