"""The fake engine: deterministic, audible, and strict about the contract with the worker."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Preset, SamplingParams, SpeechRequest
from engine.errors import StepFailed
from engine.plan import Admit, AppendText, CodecDecode, Prefill, Prompt, StepPlan
from engine.testing import FakeCheckpoint, FakeEngine
from engine.testing.fake_engine import Costs, FakeWorker, VirtualClock
from engine.testing.fake_worker import fake_codes, fake_frames, fake_sound
from engine.types import CODEBOOKS, FRAME_SAMPLES

CHECKPOINT = FakeCheckpoint()


def prompt(text: str = "hello", layout: str = "whole", open_text: bool = False) -> Prompt:
    ids = CHECKPOINT.text_ids(text)
    return CHECKPOINT.prompt(ids, Preset("ryan"), "auto", layout, open_text)


def admit(slot: int = 0, seed: int = 1, **more: object) -> Admit:
    draw = CHECKPOINT.resolve_sampling(SamplingParams())
    return Admit(slot, "fake", prompt(**more), draw, seed, max_frames=100)


def worker() -> FakeWorker:
    made = FakeWorker(slots=2)
    made.load("fake")
    return made


def whole(prefill: Prompt, slot: int = 0) -> Prefill:
    return Prefill(slot, 0, len(prefill))


@given(st.text("abc é漢", min_size=2, max_size=30), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_what_it_speaks_follows_from_text_and_seed(text, seed):
    spoken = prompt(text)
    codes = [fake_codes(spoken, seed, frame) for frame in range(fake_frames(spoken))]
    again = [fake_codes(spoken, seed, frame) for frame in range(fake_frames(spoken))]
    other = [fake_codes(spoken, seed + 1, frame) for frame in range(fake_frames(spoken))]
    assert np.array_equal(codes, again)
    assert not np.array_equal(codes, other)
    assert np.shape(codes) == (len(text), CODEBOOKS)
    assert 0 <= np.min(codes) <= np.max(codes) < 2048


def test_it_is_audible_and_never_clips():
    spoken = prompt("a longer sentence")
    codes = np.stack([fake_codes(spoken, 3, frame) for frame in range(20)])
    pcm = fake_sound(codes)
    assert pcm.shape == (20 * FRAME_SAMPLES,)
    loudness = np.abs(pcm.reshape(20, -1).astype(int)).max(axis=1)
    assert loudness.min() > 6000
    assert loudness.max() < 20_000
    assert len({frame.tobytes() for frame in pcm.reshape(20, -1)}) > 5  # frames differ


def test_text_told_later_gives_the_codes_of_the_same_text_told_at_once():
    ids = CHECKPOINT.text_ids("hello there")
    full = prompt("hello there", "streamed")
    for frame in range(len(ids)):
        known = prompt("hello there"[: frame + 2], "streamed", open_text=True)
        assert np.array_equal(fake_codes(known, 5, frame), fake_codes(full, 5, frame))


def test_one_plan_is_enough_for_the_first_sound():
    made, first = worker(), admit()
    plan = StepPlan(
        0,
        admit=(first,),
        prefill=(whole(first.prompt),),
        decode=(0,),
        codec_decode=(CodecDecode(0, 0, 1),),
    )
    pending = made.launch(plan)
    assert not pending.result().frames[0].ended
    assert pending.audio()[0].shape == (FRAME_SAMPLES,)


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        (StepPlan(1, admit=(admit(),)), "taken"),
        (StepPlan(1, admit=(admit(slot=9),)), "another talker"),
        (StepPlan(1, decode=(1,)), "free"),
        (StepPlan(1, decode=(0,)), "end of prefill"),
        (StepPlan(1, prefill=(Prefill(0, 1, 2),)), "out of order"),
        (StepPlan(1, prefill=(Prefill(0, 0, 999),)), "out of order"),
        (StepPlan(1, codec_decode=(CodecDecode(0, 0, 1),)), "out of order"),
        (StepPlan(1, append_text=(AppendText(0, (1,), False),)), "complete"),
        (StepPlan(1, release=(0,), decode=(0,)), "free"),
    ],
)
def test_a_plan_out_of_order_is_refused(plan, fault):
    made = worker()
    made.launch(StepPlan(0, admit=(admit(),))).result()
    with pytest.raises(StepFailed, match=fault):
        made.launch(plan).result()


def test_open_text_is_not_stepped_past_its_words():
    made, spoken = worker(), admit(text="ab", layout="streamed", open_text=True)
    start = StepPlan(0, admit=(spoken,), prefill=(whole(spoken.prompt),), decode=(0,))
    made.launch(start).result()
    with pytest.raises(StepFailed, match="without text"):
        made.launch(StepPlan(1, decode=(0,))).result()
    made.reset()
    made.launch(start).result()
    made.launch(StepPlan(2, append_text=(AppendText(0, (99,), True),), decode=(0,))).result()
    assert made.launch(StepPlan(3, decode=(0,))).result().frames[0].ended


def test_time_passes_as_the_costs_say_and_steps_queue_up():
    clock = VirtualClock()
    made = FakeWorker(slots=2, costs=Costs(step=0.01, row=0.001, prefill_row=0.002), clock=clock)
    made.load("fake")
    first = admit()
    rows = len(first.prompt)
    one = made.launch(StepPlan(0, admit=(first,), prefill=(whole(first.prompt),), decode=(0,)))
    two = made.launch(StepPlan(1, decode=(0,)))
    assert clock.now() == 0  # launching does not wait
    assert one.result().seconds == pytest.approx(0.011 + 0.002 * rows)
    assert clock.now() == pytest.approx(0.011 + 0.002 * rows)
    two.result()
    assert clock.now() == pytest.approx(0.022 + 0.002 * rows)


def test_it_needs_no_torch():
    code = (
        "import sys, engine.testing as own; "
        "own.FakeEngine().close(); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_it_speaks():
    with FakeEngine() as engine:
        stream = engine.submit(SpeechRequest("hello", Preset("vivian")))
        assert stream.collect().size == 5 * FRAME_SAMPLES
