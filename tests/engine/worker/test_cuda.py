"""On a GPU: the same codes, the same random stream, and steps that never wait for the device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.plan import AppendText, CodecDecode, StepPlan
from engine.types import SAMPLE_RATE
from engine.worker.state.sampling import seed_keys, uniforms
from engine.worker.talker.decode_graphs import GraphDecoder
from engine.worker.worker import TorchWorker
from engine.worker.worker_settings import WorkerSettings
from tests.engine.worker.driver import (
    DRAWN,
    Voice,
    admission,
    begin,
    land,
    running,
    speak,
    synchronize,
)
from tests.support.golden_cases import Case, record, speech_cases, tensors

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
CASES = speech_cases()


@contextmanager
def on_gpu(case: Case, dtype: torch.dtype | None = torch.float32) -> Iterator[TorchWorker]:
    checkpoints = {case.folder.name: LocalCheckpoint(case.folder)}
    settings = WorkerSettings(4, 512, "cuda", dtype, reference_silence=0.0)
    worker = TorchWorker(checkpoints, settings)
    try:
        worker.load(case.folder.name)
        yield worker
    finally:
        worker.close()


@contextmanager
def no_waiting() -> Iterator[None]:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_greedy_codes_in_float32(case: Case) -> None:
    limit = record(case.folder)["greedy"]["max_new_tokens"] - 1
    with on_gpu(case) as worker:
        prompt = case.prompt(worker._checkpoints[case.folder.name])
        speech = speak(worker, prompt, max_frames=limit)
    np.testing.assert_array_equal(speech.codes, case.tensor("codes").numpy())


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_part_of_a_step_waits(case: Case) -> None:
    with on_gpu(case, None) as worker:
        prompt = case.prompt(worker._checkpoints[case.folder.name])
        speak(worker, prompt, max_frames=2)  # libraries set themselves up
        voices = [Voice(admission(worker, prompt, DRAWN, slot=slot)) for slot in (0, 2)]
        admit, slots = tuple(voice.admit for voice in voices), tuple(v.slot for v in voices)
        pieces = tuple(piece for voice in voices for piece in voice.prefills())
        decode = tuple(CodecDecode(slot, 0, 1) for slot in slots)
        with no_waiting():
            first = worker.launch(StepPlan(0, admit=admit, prefill=pieces, decode=slots))
            feed = (AppendText(slots[0], (1, 2), True),)
            second = worker.launch(StepPlan(1, append_text=feed, decode=slots, codec_decode=decode))
        made = land(first), land(second)
        for voice in voices:
            voice.take(made[0])
            voice.take(made[1])
        assert all(len(speech.codes) >= 2 for speech in synchronize(worker, voices))


@pytest.mark.parametrize("rows", [1, 3, 4])
def test_replayed_frames_are_the_frames_as_they_are_written(rows: int) -> None:
    """In the dtype that is served in, whatever the bucket."""
    with on_gpu(CASES[0], None) as worker, torch.inference_mode():
        runner = worker._runners[CASES[0].folder.name]
        prompt = CASES[0].prompt(worker._checkpoints[CASES[0].folder.name])
        spoken = []
        for steps in (runner.decoder, GraphDecoder(runner.step, lambda work: work)):
            runner.decoder = steps
            voices = [
                Voice(admission(worker, prompt, DRAWN, slot, slot, 200)) for slot in range(rows)
            ]
            for voice in voices:
                begin(worker, voice)
            spoken.append([speech.codes for speech in synchronize(worker, voices)])
        for replayed, written in zip(*spoken, strict=True):
            np.testing.assert_array_equal(replayed, written)


def test_uniforms_are_those_of_the_cpu() -> None:
    keys = torch.tensor([seed_keys(seed) for seed in range(200)])
    frames = torch.arange(200) * 37 - 1
    there = uniforms(keys.cuda(), frames.cuda(), 16).cpu()
    assert torch.equal(there, uniforms(keys, frames, 16))


@pytest.mark.parametrize("seconds", [1.0, 1.7, 3.0, 21.0])
def test_recordings_are_heard_as_on_a_cpu(seconds: float) -> None:
    """The second of a length is replayed; the longest is not."""
    case = next(case for case in CASES if "reference_wav" in tensors(case.folder))
    wave = np.resize(tensors(case.folder)["reference_wav"].numpy(), round(seconds * SAMPLE_RATE))
    with on_gpu(case) as card, running(case.folder) as plain:
        for audio in (wave, 0.9 * wave):
            made = card.encode(case.folder.name, audio, "Words.")
            wanted = plain.encode(case.folder.name, audio, "Words.")
            assert made.codes.shape == wanted.codes.shape
            same = (made.codes == wanted.codes).all(1)  # some lie equally near
            assert same.mean() > 0.8
            size = np.abs(wanted.vector).max()
            np.testing.assert_allclose(made.vector / size, wanted.vector / size, atol=2e-3)
