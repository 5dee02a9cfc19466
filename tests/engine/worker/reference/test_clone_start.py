"""A clone in context begins with a moment of silence, as all speech does, however long its
recording is. Of a recording's last frame that was not whole the encoder made a sound, and the
talker went on with it."""

from __future__ import annotations

import numpy as np

from engine import Engine, Preset, SpeechRequest, Voice, open_engine
from engine.types import SAMPLE_RATE, Waveform
from studio.cli.app_context import MINI
from tests.support.programs import CACHE

SAID = "I keep a spare key under the blue flower pot."


def spoken(engine: Engine, text: str, voice: Voice, frames: int | None = None) -> Waveform:
    request = SpeechRequest(text, voice, "english", seed=3, live=False, max_frames=frames)
    stream = engine.submit(request)
    return stream.collect().astype(np.float32) / 32768


def test_a_clone_in_context_begins_in_silence() -> None:
    with open_engine([str(MINI)], "cpu", cache=CACHE) as engine:
        recording = spoken(engine, SAID, Preset("june"))
        for cut in (700, 1000, 1600):  # samples; a frame has 1,920
            voice = engine.clone(recording[:-cut], SAID)
            wave = spoken(engine, "The ferry left early.", voice, frames=10)
            first = np.abs(wave[: SAMPLE_RATE // 25])
            assert first.max() < 0.01 * np.abs(wave).max()
