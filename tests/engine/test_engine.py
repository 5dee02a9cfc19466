"""The engine's methods: refusals, loading and unloading models, and closing."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from engine import (
    Blend,
    Busy,
    Clone,
    Design,
    EngineClosed,
    EngineSettings,
    InvalidSetting,
    InvalidText,
    InvalidVoice,
    NotCapable,
    Preset,
    RequestError,
    SpeechRequest,
    UnknownLanguage,
    UnknownVoice,
)
from engine.requests.input_processor import layout_of
from engine.testing import Costs, FakeCheckpoint, FakeEngine, fake_capabilities
from engine.types import FRAME_SAMPLES

RYAN = Preset("ryan")
VECTOR = np.ones(16, np.float32)
CUSTOM = FakeCheckpoint(fake_capabilities("custom", clone=False, design=False))
BASE = FakeCheckpoint(fake_capabilities("base", speakers=(), preset=False, design=False))
DESIGN = FakeCheckpoint(fake_capabilities("design", speakers=(), preset=False, clone=False))


@pytest.fixture(scope="module")
def fake():
    with FakeEngine([FakeCheckpoint(max_positions=600)]) as engine:
        yield engine


def ask(text: str = "hello there", voice: object = RYAN, **more: object) -> SpeechRequest:
    return SpeechRequest(text, voice, **more)


@pytest.mark.parametrize(
    ("request_", "error", "says"),
    [
        (ask(""), InvalidText, "no text"),
        (ask(" \n "), InvalidText, "no text"),
        (ask("x" * 200_001), InvalidText, "200001 characters"),
        (ask("x" * 590), InvalidText, "parts"),
        (ask("bell\x07"), InvalidText, "U\\+0007"),
        (ask("half \ud800 pair"), InvalidText, "U\\+D800"),
        (ask(b"bytes"), InvalidText, "must be text"),
        (ask(voice=Preset("nobody")), UnknownVoice, "ryan"),
        (ask(voice="ryan"), InvalidSetting, "Preset"),
        (ask(voice=Clone(np.ones(5, np.float32))), InvalidVoice, "5"),
        (ask(voice=Clone(np.full(16, np.nan, np.float32))), InvalidVoice, "damaged"),
        (ask(voice=Preset("ryan", "calm\x00")), InvalidText, "U\\+0000"),
        (ask(language="klingon"), UnknownLanguage, "english"),
        (ask(seed=-1), InvalidSetting, "seed"),
        (ask(seed=2**63), InvalidSetting, "seed"),
        (ask(seed=1.5), InvalidSetting, "seed"),
        (ask(seed=True), InvalidSetting, "seed"),
        (ask(max_frames=0), InvalidSetting, "max_frames"),
        (ask(max_frames=10**6), InvalidSetting, "max_frames"),
        (ask(ignore_end=True), InvalidSetting, "max_frames"),
        (ask(layout="sideways"), InvalidSetting, "layout"),
        (ask(layout="whole", open_text=True), InvalidSetting, "open text"),
        (ask(sampling={"temperature": 1}), InvalidSetting, "Sampling"),
        (ask(model="no-such-model"), InvalidSetting, "fake"),
    ],
)
def test_bad_requests_get_one_clear_error_and_cost_nothing(fake, request_, error, says):
    steps = fake.stats().steps
    with pytest.raises(error, match=says) as caught:
        fake.submit(request_)
    assert isinstance(caught.value, RequestError)
    assert fake.stats().steps == steps
    assert fake.stats().waiting == fake.stats().running == 0


def test_what_a_model_lacks_is_told_with_what_it_has():
    with FakeEngine([CUSTOM]) as engine:
        with pytest.raises(NotCapable, match="preset"):
            engine.submit(ask(voice=Design("a calm voice")))
        with pytest.raises(NotCapable, match="preset"):
            engine.clone(np.zeros(24_000, np.float32))


def test_the_voice_picks_the_model():
    with FakeEngine([CUSTOM, BASE, DESIGN]) as engine:
        voices = [RYAN, Clone(VECTOR), Design("calm"), Blend(((RYAN, 1.0), (Preset("eric"), 2.0)))]
        spoken = [engine.resolve(voice).checkpoint for voice in voices]
        assert spoken == ["custom", "base", "design", "custom"]
        for voice in voices:
            assert engine.submit(ask(voice=voice)).collect().size
        assert list(engine.capabilities()) == ["custom", "base", "design"]


def test_a_blend_of_a_voice_with_itself_is_that_voice():
    with FakeEngine() as engine:
        voice = Clone(VECTOR)
        alone = engine.submit(ask(voice=voice, seed=3)).collect()
        blend = Blend(((voice, 1.0), (voice, 3.0)))
        assert engine.submit(ask(voice=blend, seed=3)).collect().tobytes() == alone.tobytes()


def test_a_blend_of_presets_speaks_as_the_vector_it_is_kept_as():
    with FakeEngine() as engine:
        blend = Blend(((Preset("ryan"), 0.7), (Preset("vivian"), 0.3)))
        kept = engine.resolve(blend).voice
        mixed = engine.submit(ask(voice=blend, seed=3)).collect()
        assert engine.submit(ask(voice=kept, seed=3)).collect().tobytes() == mixed.tobytes()


def test_layouts_follow_the_voice():
    clone, preset = Clone(VECTOR), RYAN
    assert layout_of(ask(voice=preset)) == "whole"
    assert layout_of(ask(voice=Design("calm"))) == "whole"
    assert layout_of(ask(voice=clone)) == "streamed"
    assert layout_of(ask(voice=Blend(((preset, 1.0),)))) == "streamed"
    assert layout_of(ask(open_text=True)) == "streamed"
    assert layout_of(ask(voice=clone, layout="whole")) == "whole"


def test_clones_continue_their_recording():
    recording = np.linspace(-1, 1, 48_000, dtype=np.float32)
    with FakeEngine() as engine:
        voice = engine.clone(recording, "what was said")
        assert voice.in_context
        for layout in ("whole", "streamed"):
            stream = engine.submit(ask(voice=voice, layout=layout))
            assert stream.collect().size == len("hello there") * FRAME_SAMPLES


def test_open_text_with_a_recording_waits_for_enough_words():
    recording = np.linspace(-1, 1, 48_000, dtype=np.float32)  # 25 frames
    with FakeEngine() as engine:
        voice = engine.clone(recording, "said")
        stream = engine.submit(ask("hi ", voice=voice, open_text=True))
        time.sleep(0.05)
        assert not engine.worker.plans  # four and two letters stand against 26 rows
        stream.append("and now enough words to begin with. ")
        assert next(stream).frames
        stream.close_text()
        assert sum(chunk.frames for chunk in stream) > 0


def test_max_frames_stops_speech_and_says_so():
    with FakeEngine() as engine:
        stream = engine.submit(ask("x" * 100, max_frames=10))
        assert stream.collect().size == 10 * FRAME_SAMPLES
        assert stream.end.reason == "length"


def test_ignore_end_speaks_exactly_max_frames():
    with FakeEngine() as engine:
        engine.worker.frames_of = lambda admit, prompt: 10**9 if admit.ignore_end else 5
        stream = engine.submit(ask("short", max_frames=300, ignore_end=True))
        assert stream.collect().size == 300 * FRAME_SAMPLES


def test_the_queue_is_bounded_and_a_refusal_is_plain():
    settings = EngineSettings(max_num_seqs=2, max_waiting=3)
    with FakeEngine(settings=settings, costs=Costs(step=0.01)) as engine:
        streams = [engine.submit(ask("x" * 300)) for _ in range(5)]
        with pytest.raises(Busy, match="Try again in about") as caught:
            engine.submit(ask())
        assert caught.value.retry_after > 0
        assert caught.value.waiting == 3
        assert engine.stats().refused == 1
        streams[0].cancel()
        deadline = time.monotonic() + 30
        while streams[0].end is None and time.monotonic() < deadline:
            time.sleep(0.002)
        engine.submit(ask()).cancel()


def test_a_file_is_one_delivery_at_the_end():
    with FakeEngine() as engine:
        stream = engine.submit(ask("x" * 50, live=False))
        assert stream.collect().size == 50 * FRAME_SAMPLES
        assert engine.stats().first_audio is None  # no stream was open


def test_submissions_from_many_threads_are_all_served():
    with FakeEngine(settings=EngineSettings(max_num_seqs=4, max_waiting=500)) as engine:
        heard: list[int] = []

        def speak() -> None:
            for number in range(10):
                heard.append(engine.submit(ask("x" * (5 + number))).collect().size)

        threads = [threading.Thread(target=speak) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
        assert sorted(heard) == sorted([(5 + n) * FRAME_SAMPLES for n in range(10)] * 8)
        assert engine.stats().ended == {"finished": 80}


# The end.


def test_draining_lets_the_speaking_finish_and_nobody_in():
    engine = FakeEngine(costs=Costs(step=0.005))
    stream = engine.submit(ask("x" * 60))
    result: list[bool] = []
    closer = threading.Thread(target=lambda: result.append(engine.drain(30)))
    closer.start()
    while engine.alive:
        time.sleep(0.001)
    with pytest.raises(EngineClosed, match="shutting down"):
        engine.submit(ask())
    assert stream.collect().size == 60 * FRAME_SAMPLES
    closer.join(30)
    assert result == [True]
    assert engine.worker.closed


def test_a_closed_engine_says_so():
    engine = FakeEngine()
    assert engine.alive
    engine.close()
    engine.close()
    assert not engine.alive
    for call in (lambda: engine.submit(ask()), lambda: engine.load("fake")):
        with pytest.raises(EngineClosed, match="closed"):
            call()
    with pytest.raises(EngineClosed):
        engine.clone(np.zeros(24_000, np.float32))


def test_stats_add_up():
    with FakeEngine() as engine:
        for words in ("one", "two words", "three whole words"):
            engine.submit(ask(words)).collect()
        engine.submit(ask("x" * 10, max_frames=4)).collect()
        stats = engine.stats()
    assert stats.ended == {"finished": 3, "length": 1}
    assert stats.audio_seconds == pytest.approx((3 + 9 + 17 + 4) * 0.08)
    assert 0 <= stats.first_audio[0] <= stats.first_audio[1]
    assert stats.steps > 0
    assert stats.memory > 0
    assert (stats.slots, stats.running, stats.waiting, stats.refused) == (8, 0, 0, 0)


@pytest.mark.parametrize(("most", "live"), [(0, True), (1, False)])
def test_a_short_queue_refuses_nobody_while_no_model_is_there(most: int, live: bool):
    settings = EngineSettings(max_num_seqs=2, max_waiting=most)
    with FakeEngine(settings=settings, loaded=False) as engine:
        for _ in range(2):
            assert len(engine.submit(SpeechRequest("hello", Preset("ryan"), live=live)).collect())
            engine.unload("fake")


def test_a_live_request_is_in_a_hurry_until_it_has_sound_to_spare() -> None:
    with FakeEngine(start=False) as engine:
        file = engine.submit(ask(live=False))
        unwritten = engine.submit(ask("", open_text=True))
        assert not engine.hurried()
        live = engine.submit(ask())
        assert engine.hurried()
        assert engine.hurried({file.id, unwritten.id})
        assert not engine.hurried({live.id})
        heard = engine._registry.sequence(live.id)
        for seconds, now, late in ((0.08, 0.0, False), (0.08, 1.0, True), (2.0, 1.0, False)):
            heard.playback.deliver(seconds, now)
            assert heard.hurried(now, 1.3) is late
        live.cancel()
        assert not engine.hurried()
