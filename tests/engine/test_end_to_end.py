"""The whole engine on the golden checkpoints: host and device together, through open_engine."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import numpy as np
import pytest

from engine import (
    Capabilities,
    Clone,
    Design,
    Engine,
    Preset,
    SamplingParams,
    SpeechRequest,
    Voice,
    open_engine,
)
from engine.types import SAMPLE_RATE, Codes, Pcm
from tests.conftest import golden_folders

WORDS = "Hello there, how are you today?"
FRAMES = 14
ROUNDING = 2  # of 32,768: chunks of other lengths sum in another order


def a_voice(engine: Engine) -> Voice:
    """The checkpoint's first preset, or a clone of a recording."""
    able = next(iter(engine.capabilities().values()))
    if able.preset:
        return Preset(able.speakers[0])
    if able.design:
        return Design("a calm voice")
    noise = np.random.default_rng(0).standard_normal(2 * SAMPLE_RATE).astype(np.float32)
    return engine.clone(0.1 * noise, "what was said")


@pytest.fixture(scope="module", params=golden_folders(), ids=lambda folder: folder.name)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with open_engine([request.param], device="cpu", max_num_seqs=4, pipeline_depth=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def voice(engine: Engine) -> Voice:
    return a_voice(engine)


def ask(voice: Voice, text: str = WORDS, **more: object) -> SpeechRequest:
    wishes = {"seed": 5, "max_frames": FRAMES, "ignore_end": True, **more}
    return SpeechRequest(text, voice, **wishes)


def heard(engine: Engine, request: SpeechRequest) -> tuple[Codes, Pcm]:
    return together(engine.submit(request))


def together(stream) -> tuple[Codes, Pcm]:
    chunks = list(stream)
    pcm = np.concatenate([chunk.pcm for chunk in chunks])
    return np.concatenate([chunk.codes for chunk in chunks]), pcm


def assert_same(one: tuple[Codes, Pcm], other: tuple[Codes, Pcm]) -> None:
    np.testing.assert_array_equal(one[0], other[0])
    assert np.abs(one[1].astype(int) - other[1].astype(int)).max() <= ROUNDING


def test_the_same_speech_in_a_crowd(engine, voice):
    alone = heard(engine, ask(voice))
    others = [engine.submit(ask(voice, f"Somebody else, {n}.", seed=n)) for n in range(3)]
    crowded = heard(engine, ask(voice))
    others.extend(engine.submit(ask(voice, live=False, seed=n)) for n in range(2))
    again = heard(engine, ask(voice))
    for stream in others:
        stream.cancel()
    assert_same(alone, crowded)
    assert_same(alone, again)


def test_text_added_while_it_speaks_is_the_same_text(engine, voice):
    whole = heard(engine, ask(voice, layout="streamed"))
    stream = engine.submit(ask(voice, "", open_text=True))
    for word in WORDS.split(" "):
        stream.append(word if word == "Hello" else f" {word}")
        time.sleep(0.01)
    stream.close_text()
    assert_same(together(stream), whole)


def test_a_file_is_the_same_speech(engine, voice):
    live = heard(engine, ask(voice, ignore_end=False))
    assert_same(heard(engine, ask(voice, ignore_end=False, live=False)), live)


def test_greedy_speech_needs_no_seed(engine, voice):
    greedy = SamplingParams(greedy=True)
    one = heard(engine, ask(voice, sampling=greedy, seed=1))
    assert_same(one, heard(engine, ask(voice, sampling=greedy, seed=2)))


def test_a_clone_of_several_parts_is_heard(engine, voice):
    if not isinstance(voice, Clone):
        pytest.skip("this checkpoint makes no clones")
    plain = Clone(voice.vector)
    assert not np.array_equal(heard(engine, ask(plain))[0], heard(engine, ask(voice))[0])


def test_leaving_frees_the_slot(engine, voice):
    with engine.submit(ask(voice, max_frames=200)) as stream:
        next(stream)
    limit = time.monotonic() + 60
    while (engine.stats().running or not stream.end) and time.monotonic() < limit:
        time.sleep(0.005)
    assert engine.stats().running == 0
    assert stream.end.reason == "cancelled"


def test_reading_late_changes_nothing(engine, voice):
    folder = engine._checkpoints[next(iter(engine.capabilities()))].folder
    late = heard(engine, ask(voice))
    with open_engine([folder], device="cpu", max_num_seqs=2, pipeline_depth=0) as direct:
        assert_same(heard(direct, ask(voice)), late)


def voice_for(able: Capabilities) -> Voice:
    if able.preset:
        return Preset(able.speakers[0])
    return Design("calm") if able.design else Clone(np.ones(able.width, np.float32))


def test_several_checkpoints_in_one_engine(tmp_path):
    """The published ones share a codec; the golden ones are given one here."""
    codec = golden_folders()[0] / "speech_tokenizer"
    for folder in golden_folders():
        shutil.copytree(
            folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("speech*", "golden*")
        )
        (tmp_path / folder.name / "speech_tokenizer").symlink_to(codec)
    folders = sorted(tmp_path.iterdir())
    with open_engine(folders, device="cpu", max_num_seqs=2) as engine:
        for name, able in engine.capabilities().items():
            assert len(heard(engine, ask(voice_for(able), model=name))[0]) == FRAMES
        assert len(engine.stats().talkers) == len(folders)
        streams = [engine.submit(ask(voice_for(each), model=name)) for name, each in _each(engine)]
        assert all(len(together(stream)[0]) == FRAMES for stream in streams)


def _each(engine: Engine) -> list[tuple[str, Capabilities]]:
    return list(engine.capabilities().items())
