"""What goes wrong on the device stays where it went wrong; steps never wait for the device."""

from __future__ import annotations

import gc
import json
import shutil
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.errors import (
    CheckpointError,
    EngineClosed,
    EngineError,
    NotCapable,
    OutOfMemory,
    StepFailed,
)
from engine.plan import CodecDecode, Prefill, Prompt, StepPlan
from engine.types import FRAME_SAMPLES, SAMPLE_RATE
from engine.worker.worker import TorchWorker
from engine.worker.worker_settings import WorkerSettings
from tests.engine.worker.driver import (
    DRAWN,
    Voice,
    admission,
    advance,
    begin,
    land,
    running,
    speak,
    step,
    synchronize,
)
from tests.support.golden_cases import speech_cases, tensors

CASES = speech_cases()
CASE = CASES[0]
CLONES = next(case for case in CASES if "reference_codes" in tensors(case.folder))


@pytest.fixture
def worker(exact: TorchWorker) -> TorchWorker:
    return exact


def prompt_of(worker: TorchWorker) -> Prompt:
    return CASE.prompt(worker._checkpoints[CASE.folder.name])


def out_of_memory(*_: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory")


def failing_for(whom: Callable[[Any], bool], work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda given: out_of_memory() if whom(given) else work(given)


@pytest.mark.parametrize("stage", ["layout", "codec", "long"])
def test_an_admission_that_fails_harms_nobody(
    worker: TorchWorker, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """Running sequences and those admitted in the same step go on."""
    prompt, name = prompt_of(worker), CASE.folder.name
    alone = speak(worker, prompt, draw=DRAWN)
    good, fresh = (Voice(admission(worker, prompt, DRAWN, slot)) for slot in (0, 2))
    bad = admission(worker, replace(prompt), slot=1)
    begin(worker, good)
    layout, open_ = worker._runners[name].embedder.layout, worker._codec().open
    with monkeypatch.context() as patch:
        if stage == "layout":
            failing = failing_for(lambda given: any(each is bad.prompt for each in given), layout)
            patch.setattr(worker._runners[name].embedder, "layout", failing)
        elif stage == "codec":
            failing = failing_for(lambda given: bad.slot in dict(given), open_)
            patch.setattr(worker._codec(), "open", failing)
        else:
            bad = replace(bad, max_frames=10_000)
        pieces = (*fresh.prefills(), Prefill(bad.slot, 0, len(prompt)))
        frames = (good.slot, bad.slot)
        plan = StepPlan(7, admit=(fresh.admit, bad), prefill=pieces, decode=frames)
        result = land(worker.launch(plan))
    good.take(result)
    assert result.number == 7
    assert set(result.frames) == {good.slot}
    assert result.failed.keys() == {bad.slot}
    assert isinstance(result.failed[bad.slot], StepFailed if stage == "long" else OutOfMemory)
    # The host, a step ahead, has more planned for the slot before it knows.
    late = land(
        worker.launch(StepPlan(8, decode=frames, codec_decode=(CodecDecode(bad.slot, 0, 1),)))
    )
    good.take(late)
    assert set(late.frames) == {good.slot}
    assert not late.audio
    again = Voice(admission(worker, prompt, DRAWN, slot=1))
    begin(worker, again)
    for speech in synchronize(worker, [good, fresh, again]):
        np.testing.assert_array_equal(speech.codes, alone.codes)
        np.testing.assert_array_equal(speech.pcm, alone.pcm)


def test_a_step_that_raises_is_told_at_its_end(
    worker: TorchWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = speak(worker, prompt_of(worker))
    voice = Voice(admission(worker, prompt_of(worker)))
    begin(worker, voice)
    with monkeypatch.context() as patch:
        patch.setattr(worker._codec(), "_stepper", out_of_memory)
        advance(worker, [voice])
        with pytest.raises(OutOfMemory, match="memory"):
            advance(worker, [voice])
    worker.reset()
    np.testing.assert_array_equal(speak(worker, prompt_of(worker)).pcm, alone.pcm)


def test_a_slot_is_given_once(worker: TorchWorker) -> None:
    admit = admission(worker, prompt_of(worker))
    step(worker, admit=(admit,))
    assert admit.slot in worker.launch(StepPlan(1, admit=(admit,))).result().failed
    step(worker, release=(admit.slot,), admit=(admit,))
    step(worker, release=(admit.slot,))


def test_plans_for_what_is_not_there_are_engine_errors(worker: TorchWorker) -> None:
    for plan in (StepPlan(1, decode=(0,)), StepPlan(2, prefill=(Prefill(0, 0, 1),))):
        with pytest.raises(EngineError):
            worker.launch(plan).result()


class NoWaiting(TorchDispatchMode):
    """Raises where a tensor's numbers would have to be known to the host."""

    WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal", "is_nonzero")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().split("::")[-1].split(".")[0]
        if name in self.WAITS or (name == "index" and self._masks(args)):
            raise AssertionError(f"{func.name()} waits for the device")
        return func(*args, **(kwargs or {}))

    def _masks(self, args: tuple) -> bool:
        return any(index is not None and index.dtype == torch.bool for index in args[1])


@pytest.mark.parametrize("rows", [(0, 1), (0, 2)], ids=["neighbours", "apart"])
def test_nothing_in_a_step_waits_for_the_device(worker: TorchWorker, rows: tuple[int, int]) -> None:
    voices = [Voice(admission(worker, prompt_of(worker), DRAWN, slot=row)) for row in rows]
    slots = tuple(voice.slot for voice in voices)
    pieces = tuple(piece for voice in voices for piece in voice.prefills())
    with NoWaiting():
        admits = tuple(voice.admit for voice in voices)
        worker.launch(StepPlan(0, admit=admits, prefill=pieces, decode=slots))
        pending = worker.launch(StepPlan(1, decode=slots))
        with pytest.raises(AssertionError, match="waits"):
            torch.ones(3).sum().item()
    assert set(pending.result().frames) == set(slots)
    step(worker, release=slots)


def test_talkers_come_and_go_while_others_speak() -> None:
    folders = {case.folder.name: case.folder for case in CASES}
    with running(*folders.values(), slots=2, dtype=torch.float64) as worker:
        names = list(folders)
        ranges = [worker.slots(name) for name in names]
        assert len({slot for each in ranges for slot in each}) == 2 * len(names)
        alone, full = speak(worker, prompt_of(worker)), worker.memory()
        voice = Voice(admission(worker, prompt_of(worker)))
        begin(worker, voice)
        for name in names[1:]:
            worker.unload(name)
        assert worker.memory() < full
        assert [worker.slots(name) for name in names[1:]] == [range(0)] * (len(names) - 1)
        loader = threading.Thread(target=lambda: [worker.load(name) for name in names[1:]])
        loader.start()
        speech = synchronize(worker, [voice])[0]
        loader.join()
        assert [worker.slots(name) for name in names] == ranges
    np.testing.assert_array_equal(speech.pcm, alone.pcm)
    with pytest.raises(EngineClosed):
        worker.load(names[0])


def test_a_talker_whose_encoders_do_not_fit_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(talker: str) -> None:
        raise torch.OutOfMemoryError

    name = CASE.folder.name
    with running(CASE.folder, slots=2) as worker:
        worker.unload(name)
        with monkeypatch.context() as patched:
            patched.setattr(worker, "_warm_encoders", full)
            with pytest.raises(OutOfMemory):
                worker.load(name)
        assert not worker.slots(name)
        assert worker.load(name)


def test_an_unloaded_talker_needs_no_collector() -> None:
    """A server no longer collects what it began with (studio/server/process/gc_freeze.py)."""
    name = CASE.folder.name
    with running(CASE.folder, slots=2) as worker:
        speak(worker, prompt_of(worker))
        runner = weakref.ref(worker._runners[name])
        weight = weakref.ref(next(worker._runners[name].talker.parameters()))
        gc.collect()
        gc.disable()
        try:
            worker.unload(name)
            assert (runner(), weight()) == (None, None)
        finally:
            gc.enable()


def test_a_recording_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    audio = tensors(CLONES.folder)["reference_wav"].numpy()
    with running(CLONES.folder) as worker:
        name = CLONES.folder.name
        first, runs = worker.encode(name, audio, "One."), []
        for ears in (worker._reference_encoder._encoder, worker._speakers[name]):
            monkeypatch.setattr(ears, "network", runs.append)
        again = worker.encode(name, audio.copy(), "Two.")
    assert not runs
    np.testing.assert_array_equal(first.codes, again.codes)
    np.testing.assert_array_equal(first.vector, again.vector)
    assert (first.transcript, again.transcript) == ("One.", "Two.")


@pytest.mark.parametrize("samples", [40_000, 38_400])
def test_users_recordings_get_a_pause_at_their_end(samples: int) -> None:
    """The pause is as set by default, to the end of a frame, and does not change the vector."""
    audio = tensors(CLONES.folder)["reference_wav"].numpy()[:samples]
    checkpoints = {CLONES.folder.name: LocalCheckpoint(CLONES.folder)}
    worker = TorchWorker(checkpoints, WorkerSettings(1, 64, "cpu"))
    made = worker.encode(CLONES.folder.name, audio, "Words.")
    shortest = round(worker._settings.reference_silence * SAMPLE_RATE)
    pause = np.zeros(shortest + -(len(audio) + shortest) % FRAME_SAMPLES, np.float32)
    with running(CLONES.folder) as plain:
        padded = plain.encode(CLONES.folder.name, np.concatenate((audio, pause)), "Words.")
        bare = plain.encode(CLONES.folder.name, audio, "Words.")
    worker.close()
    assert len(pause) > 0
    np.testing.assert_array_equal(made.codes, padded.codes)
    np.testing.assert_array_equal(made.vector, bare.vector)


@pytest.mark.parametrize("added", [False, True])
def test_another_checkpoint_of_the_same_name_has_its_own_encoder(
    golden_dir: Path, added: bool
) -> None:
    audio = tensors(CLONES.folder)["reference_wav"].numpy()
    small, large = (LocalCheckpoint(golden_dir / name) for name in ("base-0b6", "base-1b7"))
    worker = TorchWorker({"one": small}, WorkerSettings(1, 64, "cpu"))
    before = worker.encode("one", audio, "").vector
    if added:
        worker.remove("one")
        worker.add("one", large)
    else:
        worker.exchange("one", "one", large)
    after = worker.encode("one", audio, "").vector
    fresh = TorchWorker({"one": large}, WorkerSettings(1, 64, "cpu"))
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(after, fresh.encode("one", audio, "").vector)


def test_the_slots_of_a_model_that_is_removed_are_taken_by_the_next_and_no_other_moves() -> None:
    checkpoint = LocalCheckpoint(CASE.folder)
    worker = TorchWorker(dict.fromkeys("abc", checkpoint), WorkerSettings(2, 64, "cpu"))
    assert [worker.load(name) for name in "ca"] == [range(4, 6), range(2)]
    worker.remove("b")
    assert worker.slots("c") == range(4, 6)
    for name in "de":
        worker.add(name, checkpoint)
    with pytest.raises(EngineError, match="room for 4 models"):
        worker.add("f", checkpoint)
    assert [worker.load(name) for name in "ed"] == [range(6, 8), range(2, 4)]
    worker.unload("d")
    worker.exchange("d", "g", checkpoint)
    assert worker.load("g") == range(2, 4)
    worker.close()


def test_a_model_that_is_in_use_again_is_not_removed() -> None:
    """A request that came before, and was long in preparation, has loaded it anew."""
    checkpoint = LocalCheckpoint(CASE.folder)
    worker = TorchWorker(dict.fromkeys("ab", checkpoint), WorkerSettings(1, 64, "cpu"))
    worker.load("b")
    with pytest.raises(EngineError, match="b is in use again"):
        worker.remove("b")
    assert worker.slots("b") == range(1, 2)
    worker.close()


def test_the_codec_has_slots_for_the_last_place_though_an_earlier_one_is_free() -> None:
    checkpoint = LocalCheckpoint(CASE.folder)
    worker = TorchWorker(dict.fromkeys("abcde", checkpoint), WorkerSettings(1, 64, "cpu"))
    worker.remove("a")
    assert worker.load("e") == range(4, 5)
    assert worker._codec()._padding_row not in worker.slots("e")
    worker.close()


def test_only_base_checkpoints_clone() -> None:
    case = next(case for case in CASES if "speaker" in case.asked)
    with running(case.folder) as worker, pytest.raises(NotCapable, match="Base"):
        worker.encode(case.folder.name, np.zeros(SAMPLE_RATE, np.float32), "")


@pytest.mark.parametrize(
    ("broken", "value"),
    [
        ("hidden_size", "many"),
        ("hidden_size", -3),
        ("num_hidden_layers", None),
        ("num_hidden_layers", 10**9),
        ("rope_theta", "wide"),
        ("head_dim", 10**9),
        ("num_attention_heads", 5),
        ("num_key_value_heads", 0),
    ],
)
def test_a_config_that_fits_no_network_is_named(tmp_path: Path, broken: str, value: object) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(CASE.folder, folder)
    raw = json.loads((folder / "config.json").read_text())
    raw["talker_config"]["code_predictor_config"][broken] = value
    (folder / "config.json").write_text(json.dumps(raw))
    worker = TorchWorker({"x": LocalCheckpoint(folder)}, WorkerSettings(1, 64, "cpu"))
    with pytest.raises(CheckpointError):
        worker.load("x")
    assert worker.slots("x") == range(0)
    worker.close()
