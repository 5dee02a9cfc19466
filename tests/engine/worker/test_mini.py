"""The embedded model says exactly what the reference package makes it say: one sentence a way
of asking, greedy, recorded by `python -m bench.reference.make_golden`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.types import FRAME_SAMPLES
from engine.worker.codec.codec_graphs import FULL_SCALE
from engine.worker.worker import TorchWorker
from studio.cli.app_context import MINI
from tests.engine.worker.driver import GREEDY, running, speak
from tests.support.golden_cases import Case, record, tensors

GOLDEN = Path(__file__).parents[2] / "mini"
CASES = [Case(GOLDEN, name, case) for name, case in record(GOLDEN)["cases"].items()]
SILENCE = 12_000  # samples put behind the reference before it was encoded


@pytest.fixture(scope="module")
def worker() -> Iterator[TorchWorker]:
    with running(MINI) as worker:
        yield worker


@pytest.mark.parametrize("case", CASES, ids=str)
def test_greedy_codes_and_their_sound(worker: TorchWorker, case: Case) -> None:
    prompt = case.prompt(worker._checkpoints[MINI.name])
    speech = speak(worker, prompt, draw=replace(GREEDY, repetition_penalty=1.0))
    np.testing.assert_array_equal(speech.codes, case.tensor("codes").numpy())
    assert speech.ended
    wave = case.tensor("wav").numpy()[-case.frames * FRAME_SAMPLES :]
    np.testing.assert_allclose(speech.pcm / FULL_SCALE, wave, rtol=0, atol=1e-4)


def test_a_recording_becomes_the_same_voice(worker: TorchWorker) -> None:
    made = tensors(GOLDEN)
    wave = made["reference_wav"].numpy()
    padded = np.concatenate((wave, np.zeros(SILENCE, np.float32)))
    codes = worker.encode(MINI.name, padded, "What was said.").codes
    np.testing.assert_array_equal(codes, made["reference_codes"].numpy())
    vector = worker.encode(MINI.name, wave, "").vector
    np.testing.assert_allclose(vector, made["reference_embedding"].numpy(), rtol=0, atol=1e-4)
