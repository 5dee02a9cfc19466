"""A training's run: what is judged and what is learned stay together, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from engine import InvalidSetting, Preset, SpeechRequest, open_engine
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.worker.loading.model_loader import load_talker
from studio.cli.app_context import MINI
from tests.support.programs import CACHE
from training.voice import run as run_module
from training.voice.dataset import Dataset, other_words
from training.voice.job import Epoch, Job, JobFolder, Spoken, Status
from training.voice.judge import Person
from training.voice.run import Stopped, Training, run
from training.voice.sequences import LineRows
from training.voice.texts import ENGLISH
from training.voice.trainer import Losses

JOB = Job(name="Ann", model=str(MINI), consent="Ann Lee, my own voice", epochs=3, device="cpu")
OWN = LocalCheckpoint(MINI).capabilities.digest
PERSON = Person(np.ones(4, np.float32), 200.0, 0.1, np.zeros(4))


def judged(number: int) -> Epoch:
    """Each epoch is nearer than the one before."""
    return Epoch(number=number, stopped=1, pace=1, likeness=0.9, pitch=0, spectrum=9 - number)


class Trainer:
    """Epochs without a network; the state is the number of the last one."""

    learner = None
    epochs = JOB.epochs

    def __init__(self) -> None:
        self.epoch = 0

    def run_epoch(self, stopping: Callable[[], bool]) -> Iterator[float]:
        yield 1.0
        self.epoch += 1

    def measure(self) -> Losses:
        return Losses(0, 0, 0)

    def save(self, path: Path, _: str) -> None:
        path.write_text(str(self.epoch))

    def resume(self, path: Path, _: str) -> None:
        self.epoch = int(path.read_text())


class Run(Training):
    """Judges who need no sound. `told` is called with each epoch that is judged."""

    def __init__(self, folder: JobFolder, report: Callable[[int], object]) -> None:
        super().__init__(folder, folder.read(), None)
        self._report = report

    def run(self) -> None:
        trainer = Trainer()
        self._resume(trainer)  # type: ignore[arg-type]
        if not self._status.history:
            self._history((judged(0),))
        self._train(trainer, (), PERSON)  # type: ignore[arg-type]
        self._finish(trainer)  # type: ignore[arg-type]

    def _judge_learned(self, number: int, *_: object) -> Epoch:
        self._report(number)
        return judged(number)

    def _keep(self, _: object) -> None:
        self.folder.voice.write_text(str(self._status.best))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobFolder:
    monkeypatch.setattr(run_module, "yield_to_others", lambda _: None)
    folder = JobFolder(tmp_path / "job")
    folder.write(JOB)
    return folder


@pytest.mark.parametrize("number", [1, 2, 3])
def test_who_stops_while_an_epoch_is_judged_keeps_it(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    seen: list[int] = []

    def stop(judging: int) -> None:
        seen.append(judging)
        if judging == number:
            folder.stop()

    monkeypatch.setattr(run_module, "Training", lambda folder, *_: Run(folder, stop))
    status = run(folder.path)
    assert (status.phase, status.best) == ("stopped", number)
    folder.go_on()
    status = run(folder.path)
    assert [each.number for each in status.history] == [0, 1, 2, 3]
    assert seen == [1, 2, 3]
    assert (status.phase, status.best, folder.voice.read_text()) == ("done", 3, "3")


def test_an_epoch_without_its_state_is_learned_again(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(judging: int) -> None:
        if judging == 3:
            raise OSError("no space left")

    monkeypatch.setattr(run_module, "Training", lambda folder, *_: Run(folder, lost))
    assert run(folder.path).phase == "failed"
    folder.state.write_text("1")  # killed before that of the second was written
    monkeypatch.setattr(run_module, "Training", lambda folder, *_: Run(folder, lambda _: None))
    status = run(folder.path)
    assert [each.number for each in status.history] == [0, 1, 2, 3]
    assert (status.phase, status.best) == ("done", 3)


def test_the_minutes_that_are_left_are_also_the_judges(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, told = [0.0], list[str]()

    def judging(_: int) -> None:
        told.append(folder.status().text)
        clock[0] += 120

    monkeypatch.setattr(run_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(run_module, "Training", lambda folder, *_: Run(folder, judging))
    run(folder.path)
    left = "Epoch 2 of 3, about 4 minutes left", "Epoch 3 of 3, about 2 minutes left"
    assert tuple(told[1:]) == left


def test_recordings_that_no_voice_comes_of_are_refused(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told to go on: the recordings are the same then."""

    def refuse(_: int) -> None:
        raise InvalidSetting("Two people speak in these recordings.")

    monkeypatch.setattr(run_module, "Training", lambda folder, *_: Run(folder, refuse))
    assert run(folder.path).phase == "refused"


def test_what_another_model_encoded_is_encoded_again(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "pick_dtype", lambda _: (_ for _ in ()).throw(Stopped))
    folder.tell(Status(history=(judged(0),)))
    for digest, kept in (({}, True), ({"digest": OWN}, True), ({"digest": "other"}, False)):
        save_file({"codes": np.zeros(1)}, folder.dataset, digest)
        assert run(folder.path).phase == "stopped"
        assert folder.dataset.exists() == kept
        assert bool(folder.status().history) == kept
    save_file({"codes": np.zeros(1)}, folder.dataset, {"digest": "other"})
    folder.tell(Status(history=(judged(0), judged(1))))
    folder.state.write_text("1")  # it has learned: put the model back, and it goes on
    status = run(folder.path)
    assert (status.phase, len(status.history)) == ("failed", 2)
    assert "exchanged" in status.text
    assert folder.dataset.exists()


def test_a_fault_is_told_as_one(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """To be called interrupted, and to be started again for ever, helps nobody."""

    def fault(_: int) -> None:
        raise ValueError("a damaged file")

    monkeypatch.setattr(run_module, "Training", lambda folder, *_: Run(folder, fault))
    status = run(folder.path)
    assert status.phase == "failed"
    assert "ValueError" in status.text
    assert "log.txt" in status.text


def test_a_sentence_that_is_said_twice_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a list read a second time, as people do to have more to learn from."""
    checkpoint = LocalCheckpoint(MINI)
    talker = load_talker(MINI, torch.device("cpu"), torch.float32)
    texts = ["The tall ship waited.", "Bring me the letter.", "We walked along.", "It is far."] * 2
    spoken = tuple(Spoken(file=f"{n:04}.wav", text=text) for n, text in enumerate(texts))
    codes = tuple(np.full((8, 16), number, np.int64) for number, _ in enumerate(texts))
    width = checkpoint.capabilities.width
    dataset = Dataset(spoken, codes, np.ones((len(texts), width), np.float32))
    compared: list[tuple[bool, int]] = []

    def margin(made: Sequence[LineRows], *_: object) -> float:
        same = [np.array_equal(made[0].text, each.text) for each in made[1:]]
        compared.append((any(same), len(same)))
        return 1.0

    monkeypatch.setattr("training.voice.dataset._margin", margin)
    assert other_words(dataset, checkpoint, talker, "english") == set()
    assert compared == [(False, 3)] * len(texts)


def test_wrong_transcripts_are_found_among_right_ones() -> None:
    """Before, each was compared with one other text, and half of the wrong ones were learned."""
    texts = ENGLISH[:12]
    with open_engine([MINI], "cpu", cache=CACHE) as engine:
        voice = engine.checkpoints()[MINI.name].speaker_vector("robert")
        requests = [
            SpeechRequest(text, Preset("robert"), seed=7, live=False, max_frames=70)
            for text in texts
        ]
        streams = [engine.submit(request) for request in requests]
        codes = [np.concatenate([chunk.codes for chunk in stream]) for stream in streams]
    checkpoint = LocalCheckpoint(MINI)
    talker = load_talker(MINI, torch.device("cpu"), torch.float32)

    def dataset(wrong: Sequence[int]) -> Dataset:
        said = list(texts)
        for number, other in zip(wrong, [*wrong[1:], *wrong[:1]], strict=True):
            said[number] = texts[other]
        spoken = tuple(Spoken(file=f"{n:04}.wav", text=text) for n, text in enumerate(said))
        return Dataset(spoken, tuple(codes), np.stack([voice] * len(texts)))

    wrong = (2, 5, 9)
    assert other_words(dataset(wrong), checkpoint, talker, "english") == {*wrong}
    with pytest.raises(InvalidSetting, match="6 of 12 lines fit no better"):
        other_words(dataset(range(1, 12, 2)), checkpoint, talker, "english")


def test_lines_that_somebody_heard_and_mended_make_no_list_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody could take their words back, and the training would never begin."""
    checkpoint = LocalCheckpoint(MINI)
    talker = load_talker(MINI, torch.device("cpu"), torch.float32)
    texts = ["The tall ship waited.", "Bring me the letter.", "We walked along.", "It is far."]
    spoken = tuple(
        Spoken(file=f"{n:04}.wav", text=text, mended=n > 0) for n, text in enumerate(texts)
    )
    width = checkpoint.capabilities.width
    dataset = Dataset(spoken, (np.zeros((8, 16), np.int64),) * 4, np.ones((4, width), np.float32))
    monkeypatch.setattr("training.voice.dataset._margin", lambda *_: 0.0)
    assert other_words(dataset, checkpoint, talker, "english") == {0}
