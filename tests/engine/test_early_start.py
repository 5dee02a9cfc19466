"""On a machine slower than real time a listener may hear pieces at once, cut at pauses or not."""

from __future__ import annotations

import numpy as np
import pytest

from engine import EarlyStart, Preset, SpeechRequest
from engine.engine import Engine
from engine.testing import Costs, fake_worker
from engine.testing.fake_worker import TONES
from engine.types import FRAME_SAMPLES, Pcm
from tests.support.simulation import Listener, Simulation, ask

SLOW, NEARLY, QUICK = 0.16, 0.07, 0.02  # seconds of a frame
TEXT = "a" * 120


def spoken(row: float, early: EarlyStart | None, **settings: EarlyStart) -> Listener:
    simulation = Simulation(Costs(row=row), max_num_seqs=2, pipeline_depth=0, **settings)
    simulation.engine.loop.scheduler.step_cost.decode.anchor({1: row, 2: 2 * row})
    simulation.play([(0.0, SpeechRequest(TEXT, Preset("ryan"), seed=1, early_start=early))])
    (listener,) = simulation.listeners
    return listener


def joined(listener: Listener) -> Pcm:
    return np.concatenate([chunk.pcm for chunk in listener.chunks])


@pytest.fixture(autouse=True)
def paused_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three frames, at random, are silent; two in a row are a pause."""
    sounds = [np.full(FRAME_SAMPLES, 5000 * (tone % 3 == 0), np.int16) for tone in range(TONES)]
    monkeypatch.setattr(fake_worker, "_TABLE", sounds)


def test_pieces_come_early_and_end_in_silence() -> None:
    early, steady = spoken(SLOW, "pauses"), spoken(SLOW, "off")
    np.testing.assert_array_equal(joined(early), joined(steady))
    assert early.first is not None
    assert early.first < 20 * SLOW
    for piece, after in zip(early.chunks[:4], early.chunks[1:5], strict=True):
        assert not piece.pcm[-FRAME_SAMPLES:].any()
        assert not after.pcm[:FRAME_SAMPLES].any()


@pytest.mark.parametrize("row", [0.09, SLOW, 0.8])
def test_who_waits_hears_no_pause(row: float) -> None:
    """On a machine that takes a little or ten times as long as the speech lasts."""
    steady = spoken(row, "off")
    assert len(steady.chunks) > 1
    assert not steady.gaps


def test_who_waits_for_a_long_text_hears_pauses_only_between_its_groups() -> None:
    simulation = Simulation(Costs(row=SLOW), max_letters=60, max_num_seqs=2, pipeline_depth=0)
    simulation.engine.loop.scheduler.step_cost.decode.anchor({1: SLOW, 2: 2 * SLOW})
    text = "Here is a sentence of some length, for one group. " * 4
    simulation.play([(0.0, SpeechRequest(text, Preset("ryan"), seed=1))])
    (listener,) = simulation.listeners
    assert len(listener.gaps) < 4


def test_a_setting_says_so_for_requests_that_do_not() -> None:
    sizes = [
        [chunk.frames for chunk in each.chunks]
        for each in (
            spoken(SLOW, "pauses"),
            spoken(SLOW, None, early_start="pauses"),
            spoken(SLOW, None),
            spoken(SLOW, "off", early_start="pauses"),
        )
    ]
    assert sizes[0] == sizes[1]
    assert sizes[2] == sizes[3] != sizes[0]


def test_pieces_as_they_are_made_begin_with_the_first_frame_and_grow() -> None:
    pieces, steady = spoken(SLOW, "pieces"), spoken(SLOW, "off")
    np.testing.assert_array_equal(joined(pieces), joined(steady))
    assert pieces.first is not None
    assert pieces.first < 2 * SLOW
    assert [chunk.frames for chunk in pieces.chunks[:6]] == [1, 2, 4, 8, 12, 12]


def test_pieces_as_they_are_made_wait_for_no_reserve() -> None:
    """A machine that is just quick enough holds audio back after it was held up."""
    firsts = {}
    early: EarlyStart
    for early in ("off", "pieces"):
        simulation = Simulation(Costs(row=NEARLY), max_num_seqs=2, pipeline_depth=0)
        scheduler = simulation.engine.loop.scheduler
        scheduler.step_cost.decode.anchor({1: NEARLY})
        scheduler.lateness.observe_delivery(1.0, simulation.clock.now())
        simulation.play([(0.0, SpeechRequest(TEXT, Preset("ryan"), seed=1, early_start=early))])
        firsts[early] = simulation.listeners[0].first
    assert firsts["pieces"] is not None
    assert firsts["off"] is not None
    assert firsts["pieces"] < 2 * NEARLY < 6 * NEARLY < firsts["off"]


@pytest.mark.parametrize("early", ["pauses", "pieces"])
def test_a_quick_machine_does_not_change(early: EarlyStart) -> None:
    one, two = spoken(QUICK, early), spoken(QUICK, "off")
    assert [chunk.frames for chunk in one.chunks] == [chunk.frames for chunk in two.chunks]


@pytest.mark.parametrize("early", ["pauses", "pieces"])
def test_silence_between_pieces_is_no_fault_of_the_engine(early: EarlyStart) -> None:
    simulation = Simulation(Costs(row=SLOW), max_num_seqs=2, pipeline_depth=0)
    engine: Engine = simulation.engine
    engine.loop.scheduler.step_cost.decode.anchor({1: SLOW})
    simulation.play([(0.0, SpeechRequest(TEXT, Preset("ryan"), seed=1, early_start=early))])
    assert engine.stats().gaps == 0


def test_a_chunk_schedule_that_begins_with_large_chunks_ends_no_speech() -> None:
    simulation = Simulation(Costs(step=SLOW), pipeline_depth=0, chunk_schedule=(6, 12))
    listener = ask(simulation, TEXT, early_start="pauses")
    simulation.finish()
    assert listener.frames == len(TEXT)
