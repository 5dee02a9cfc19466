"""A trained voice on the embedded model: same seed, same codes, beside 63 others and elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from engine import Clone, InvalidVoice, Preset, SpeechRequest, open_engine, open_zerogpu
from engine.engine import Engine
from engine.plan import Checkpoint
from engine.remote.process import process_engine
from engine.speech_engine import SpeechEngine
from engine.types import Codes
from studio.cli.app_context import MINI
from tests.support.programs import CACHE
from tests.support.serving import wait_until

OTHERS = {"here": 63, "apart": 7}  # a process of its own adds the way there and back, no slots
SLOTS = 86  # of which what is not live gets three quarters
FRAMES = 10
TEXT = "The morning train was late again."


def mini(_: Mapping[str, Checkpoint] | None = None) -> Engine:
    return open_engine([MINI], "cpu", cache=CACHE, max_num_seqs=SLOTS)


ENGINES: dict[str, Callable[[], SpeechEngine]] = {
    "here": mini,
    "apart": lambda: process_engine(mini),
}


@pytest.fixture(params=ENGINES)
def crowd(request: pytest.FixtureRequest) -> Iterator[tuple[SpeechEngine, int]]:
    """An engine, and how many others speak on it."""
    with ENGINES[request.param]() as opened:
        yield opened, OTHERS[request.param]


def trained(engine: SpeechEngine, seed: int, count: int) -> Clone:
    """Rows of lengths that a training leaves: no two voices have the same."""
    capabilities = engine.checkpoints()[MINI.name].capabilities
    random = np.random.default_rng(seed)
    vector, *rows = random.normal(0, 0.2, (1 + count, capabilities.width)).astype(np.float32)
    return Clone(vector, model=MINI.name, rows=np.stack(rows), digest=capabilities.digest)


def codes(engine: SpeechEngine, request: SpeechRequest) -> Codes:
    return np.concatenate([chunk.codes for chunk in engine.submit(request)])


def test_a_trained_voice_is_the_same_alone_and_among_others(
    crowd: tuple[SpeechEngine, int],
) -> None:
    engine, count = crowd
    mine = SpeechRequest(TEXT, trained(engine, 1, 8), seed=5, max_frames=FRAMES, live=False)
    alone = codes(engine, mine)
    assert alone.shape == (FRAMES, 16)
    voices = [Preset("clara"), Preset("robert"), trained(engine, 2, 8), trained(engine, 3, 64)]
    others = [
        engine.submit(SpeechRequest(f"{TEXT} {n}. {TEXT}", voices[n % 4], seed=n, live=False))
        for n in range(count)
    ]
    wait_until(lambda: engine.stats().running == count, seconds=120)
    among = codes(engine, mine)
    going = [other for other in others if other.end is None]
    for other in others:
        other.cancel()
    np.testing.assert_array_equal(among, alone)
    assert len(going) == count  # all of them were in every step of it
    elsewhere = SpeechRequest(TEXT, trained(engine, 1, 7), seed=5, max_frames=FRAMES, live=False)
    assert not np.array_equal(codes(engine, elsewhere), alone)  # its rows are heard


@pytest.mark.skipif(not hasattr(os, "fork"), reason="ZeroGPU forks, and this system cannot")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_trained_voice_is_the_same_on_a_device_that_is_lent() -> None:
    from tests.support.zerogpu import spaces

    with mini() as here:
        mine = SpeechRequest(TEXT, trained(here, 1, 8), seed=5, max_frames=FRAMES)
        expected = codes(here, mine)
    with open_zerogpu([MINI], spaces.GPU, "cpu") as lent:
        np.testing.assert_array_equal(codes(lent, mine), expected)
        other = replace(mine, voice=replace(trained(lent, 1, 8), digest="of other weights"))
        with pytest.raises(InvalidVoice, match="exact weights"):
            lent.submit(other)
