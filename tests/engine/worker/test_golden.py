"""Every stage of every golden case, through the worker's own steps, against the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.plan import Prompt
from engine.types import FRAME_SAMPLES
from engine.worker.codec.codec_graphs import FULL_SCALE
from engine.worker.model_runner import ModelRunner
from engine.worker.worker import TorchWorker
from tests.conftest import golden_folders
from tests.engine.worker.conftest import Workers
from tests.engine.worker.driver import Voice, admission, begin, speak, step
from tests.support.golden_cases import Case, record, speech_cases, tensors

CASES = speech_cases()
CLONING = [folder for folder in golden_folders() if "reference_codes" in tensors(folder)]


def checkpoint(worker: TorchWorker, case: Case) -> LocalCheckpoint:
    return worker._checkpoints[case.folder.name]


def runner(worker: TorchWorker, case: Case) -> ModelRunner:
    return worker._runners[case.folder.name]


def prompt(worker: TorchWorker, case: Case) -> Prompt:
    return case.prompt(checkpoint(worker, case))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_prompts_and_what_they_lead_to(workers: Workers, case: Case) -> None:
    """The prompt's rows, the text that trails, the first hidden state and logits."""
    worker = workers(case.folder)
    model_runner, voice = runner(worker, case), Voice(admission(worker, prompt(worker, case)))
    begin(worker, voice)
    with torch.inference_mode():
        layout = model_runner.row_states[0].prompt
        rows = model_runner.row_states[0].prompt.embed(0, len(layout))
        trailing = model_runner.slots.text[
            0, len(layout) - layout.body : model_runner.row_states[0].texts
        ]
        if not len(trailing):  # the reference puts one padding row there
            trailing = model_runner.embedder.pad[None]
        hidden = model_runner.slots.hidden[:1]
        logits = model_runner.talker.logits(hidden)
    step(worker, release=(voice.slot,))
    close = {"rtol": 0, "atol": 1e-5}
    torch.testing.assert_close(rows[None], case.tensor("prefill"), **close)
    torch.testing.assert_close(trailing[None], case.tensor("trailing"), **close)
    torch.testing.assert_close(
        model_runner.embedder.pad[None, None], case.tensor("tts_pad"), **close
    )
    torch.testing.assert_close(hidden[None], case.tensor("first_hidden"), rtol=0, atol=1e-4)
    torch.testing.assert_close(logits, case.tensor("first_logits"), rtol=0, atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_greedy_codes_and_their_sound(workers: Workers, case: Case) -> None:
    worker = workers(case.folder)
    limit = record(case.folder)["greedy"]["max_new_tokens"] - 1
    speech = speak(worker, prompt(worker, case), max_frames=limit)
    assert len(speech.codes) == case.frames
    assert speech.ended == case.asked["ended_by_eos"]
    np.testing.assert_array_equal(speech.codes, case.tensor("codes").numpy())
    # behind a reference, the package's cut may leave one sample too many in front
    wave = case.tensor("wav").numpy()[-case.frames * FRAME_SAMPLES :]
    np.testing.assert_allclose(speech.pcm / FULL_SCALE, wave, rtol=0, atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_waveforms_before_they_are_rounded(workers: Workers, case: Case) -> None:
    worker = workers(case.folder)
    with torch.inference_mode():
        worker._codec().open([(0, prompt(worker, case).reference)])
        codec_runner, codes = worker._codec(), case.tensor("codes")[None]
        wave = codec_runner._stepper.step.waves(codes, codec_runner._state, torch.tensor([0]))[0]
    expected = case.tensor("wav")[-case.frames * FRAME_SAMPLES :]
    torch.testing.assert_close(wave, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("folder", CLONING, ids=lambda folder: folder.name)
def test_recordings_become_voices(workers: Workers, folder: Path) -> None:
    made, worker = tensors(folder), workers(folder)
    name = next(iter(worker._checkpoints))
    clone = worker.encode(name, made["reference_wav"].numpy(), "What was said.")
    np.testing.assert_array_equal(clone.codes, made["reference_codes"].numpy())
    expected = made["reference_embedding"].numpy()
    scale = max(1.0, float(np.abs(expected).max()))  # random weights make huge vectors
    np.testing.assert_allclose(clone.vector / scale, expected / scale, rtol=0, atol=1e-4)
    assert clone.transcript == "What was said."
    assert worker.encode(name, made["reference_wav"].numpy(), "").codes is None


def test_there_are_cases_to_hold_against() -> None:
    assert CASES
    assert CLONING
