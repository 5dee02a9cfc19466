"""Learning rows on trained weights: it learns, holds its words, and goes on as if never stopped."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.errors import CheckpointError, InvalidSetting
from engine.model.talker import Talker
from engine.types import Clone
from engine.voices.library import Library
from engine.voices.voice_format import VoiceCard, pack
from engine.worker.loading.model_loader import load_talker
from studio.cli.app_context import MINI
from studio.voices.voice_training import FOLDER, VoiceTraining
from tests.support.golden_cases import Case, record
from tests.support.programs import CACHE
from training.voice import job as job_module
from training.voice import trainer as trainer_module
from training.voice.adapter import Adapter
from training.voice.dataset import Dataset, other_people
from training.voice.job import Job, JobFolder, Spoken, Status, take_lock
from training.voice.rows import LARGEST, LearnedRows, padding_of
from training.voice.second_person import second_person
from training.voice.sequences import Line
from training.voice.trainer import Learner, VoiceTrainer

TRAINED_ON = Path(__file__).parents[2] / "mini"
CASE = Case(TRAINED_ON, "clone", record(TRAINED_ON)["cases"]["clone"])
CHECKPOINT = LocalCheckpoint(MINI)
ID = "0123456789ab"
JOB = Job(name="Ann", model=str(MINI), consent="Ann Lee, my own voice")


@pytest.fixture(scope="module")
def talker() -> Talker:
    return load_talker(MINI, torch.device("cpu"), torch.float32)


def lines() -> list[Line]:
    """A sentence of another voice of the model's, whole and cut short."""
    preset = Case(TRAINED_ON, "preset", record(TRAINED_ON)["cases"]["preset"])
    ids, codes = CHECKPOINT.text_ids(preset.asked["text"]), preset.tensor("codes").numpy()
    return [Line(ids, codes[:count]) for count in (34, 30, 26, 22)]


def made(
    talker: Talker, monkeypatch: pytest.MonkeyPatch, learner: Learner | None = None
) -> VoiceTrainer:
    monkeypatch.setattr(trainer_module, "BATCH_ROWS", 150)
    monkeypatch.setattr(trainer_module, "FRAMES", 24)
    trainer = VoiceTrainer(CHECKPOINT, talker, learner or untrained(talker), 3, "English")
    ids, codes = CHECKPOINT.text_ids(CASE.asked["text"]), CASE.tensor("codes").numpy()
    # lines of several lengths: with learned rows a batch holds fewer of them than without
    general = [Line(ids, codes[:count]) for count in (33, 19, 18, 17)]
    trainer.prepare(lines(), lines()[:1], general)
    return trainer


def untrained(talker: Talker) -> LearnedRows:
    assert isinstance(CASE.voice, Clone)
    return LearnedRows(CASE.voice.vector, 4, padding_of(talker, CHECKPOINT))


def rows(trainer: VoiceTrainer) -> torch.Tensor:
    assert isinstance(trainer.learner, LearnedRows)
    return trainer.learner.rows


def epoch(trainer: VoiceTrainer) -> None:
    assert list(trainer.run_epoch(lambda: False))[-1] == 1


def test_it_learns_and_goes_on_as_if_never_stopped(
    talker: Talker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = made(talker, monkeypatch)
    before = whole.measure()
    assert before.hold < 0.2  # rows that say nothing yet leave the words nearly as they were
    for _ in range(2):
        epoch(whole)
    whole.save(tmp_path / "state", "mine")
    again = made(talker, monkeypatch)
    again.resume(tmp_path / "state", "mine")
    assert again.epoch == 2
    for trainer in (whole, again):
        epoch(trainer)
    assert torch.equal(rows(whole), rows(again))
    after = whole.measure()
    assert after.rest < before.rest - 0.02
    assert after.hold < 0.2
    longest = float(rows(whole).detach().norm(dim=1).max())
    assert longest <= LARGEST * float(whole.learner.vector.norm()) + 1e-4
    with pytest.raises(CheckpointError, match="exchanged"):
        again.resume(tmp_path / "state", "another")
    assert isinstance(whole.learner, LearnedRows)
    voice = whole.learner.voice("mini", "digest")
    assert voice.rows is not None
    np.testing.assert_array_equal(voice.rows, rows(whole).detach().numpy())


def test_rows_that_have_learned_nothing_move_the_words_least(
    talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(CASE.voice, Clone)
    vector = CASE.voice.vector
    near = made(talker, monkeypatch)
    nothing = made(talker, monkeypatch, LearnedRows(vector, 4, torch.zeros(len(vector))))
    assert near.measure().hold < 0.8 * nothing.measure().hold


def test_an_adapter_learns_and_goes_on_as_if_never_stopped(
    talker: Talker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def adapted() -> VoiceTrainer:
        assert isinstance(CASE.voice, Clone)
        return made(talker, monkeypatch, Adapter(talker, CASE.voice.vector, rank=4))

    whole = adapted()
    with whole.learner.attached(talker):
        before = whole.measure()
        assert before.hold == pytest.approx(0, abs=1e-5)  # nothing is changed yet
        epoch(whole)
        epoch(whole)
        whole.save(tmp_path / "state", "mine")
        epoch(whole)
        after = whole.measure()
    again = adapted()
    again.resume(tmp_path / "state", "mine")
    with again.learner.attached(talker):
        epoch(again)
    for one, other in zip(whole.learner.parameters(), again.learner.parameters(), strict=True):
        assert torch.equal(one, other)
    assert after.rest < before.rest - 0.02
    assert after.hold < 0.2


def test_an_epoch_that_is_stopped_is_none(talker: Talker, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = made(talker, monkeypatch)
    assert list(trainer.run_epoch(lambda: True)) == []
    assert trainer.epoch == 0


def test_somebody_else_is_left_out_and_two_people_are_refused() -> None:
    random = np.random.default_rng(0)
    ann, ben = random.standard_normal((2, 32)).astype(np.float32)

    def lines(*people: np.ndarray, spread: float = 0.2) -> Dataset:
        noise = spread * random.standard_normal((len(people), 32))
        spoken = [
            Spoken(file=f"{n:04}.wav", source="ann.wav" if who is ann else "ben.wav", text="Hello.")
            for n, who in enumerate(people)
        ]
        return Dataset(tuple(spoken), (), (np.stack(people) + noise).astype(np.float32))

    assert other_people(lines(*[ann] * 30)) == set()
    assert other_people(lines(*[ann] * 20, ben, *[ann] * 9)) == {20}
    with pytest.raises(InvalidSetting, match=r"Two people .* “Hello\.” in ben\.wav"):
        other_people(lines(*[ann, ben, ann] * 10))
    asking = ann + 0.3 * ben  # one person in two ways of speaking, each always the same
    assert other_people(lines(*[ann, asking, ann] * 10, spread=0.05)) == set()


def test_a_single_stranger_is_no_middle_of_a_group() -> None:
    """Lines of a lively person lie along a way; those on the stranger's side are her own."""
    random = np.random.default_rng(1)
    ann, aside = random.standard_normal((2, 64))
    vectors = ann + np.outer(random.uniform(-0.25, 0.25, 24), aside)
    vectors += 0.12 * random.standard_normal(vectors.shape)
    vectors = vectors.astype(np.float32)
    assert second_person(vectors) == ()
    vectors[7] = ann + 0.7 * aside
    assert second_person(vectors) == (7,)


def folder_of(data: Path, status: Status | None = None) -> JobFolder:
    folder = JobFolder(data / FOLDER / ID)
    folder.write(JOB)
    if status:
        folder.tell(status)
    return folder


def test_a_killed_process_leaves_a_training_that_goes_on(tmp_path: Path) -> None:
    trainings = VoiceTraining(tmp_path)
    folder = folder_of(tmp_path, Status(phase="training", text="Epoch 2 of 8", epoch=2))
    code = (
        "import sys, time; from pathlib import Path; from training.voice.job import JobFolder\n"
        "with JobFolder(Path(sys.argv[1])).lock():\n"
        "    print(True, flush=True)\n    time.sleep(600)"
    )
    command = [sys.executable, "-c", code, str(folder.path)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"True\n"
        assert trainings.status(ID).phase == "training"  # of a studio that has ended since
        with pytest.raises(InvalidSetting, match="Delete it then"):
            trainings.delete(ID)
        process.send_signal(signal.SIGKILL)
        process.wait()
    status = trainings.status(ID)
    assert (status.phase, status.epoch) == ("stopped", 2)
    assert "goes on from the last epoch" in status.text
    trainings.delete(ID)
    assert not folder.path.exists()


def test_a_looker_that_was_stopped_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_module, "LOOKS", 3)
    folder = folder_of(tmp_path)
    folder.lock().close()
    looker = take_lock(folder.path / "lock", shared=True)
    assert looker
    with looker, pytest.raises(InvalidSetting, match="Another program holds"):
        VoiceTraining(tmp_path).start(ID)
    folder.lock().close()


def test_a_file_system_without_locks_holds_trainings_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refused)
    folder = folder_of(tmp_path)
    assert not folder.locked
    folder.lock().close()
    assert VoiceTraining(tmp_path).status(ID).phase == folder.status().phase


def test_of_two_programs_that_start_at_once_one_learns(tmp_path: Path) -> None:
    """Long before its process has read a line: to start one takes seconds."""
    other = "ba9876543210"
    for training in (ID, other):
        JobFolder(tmp_path / FOLDER / training).write(JOB)
    page, terminal = VoiceTraining(tmp_path), VoiceTraining(tmp_path)
    page.start(ID)
    for wanted, why in ((other, "Another voice"), (ID, "already")):
        with pytest.raises(InvalidSetting, match=why):
            terminal.start(wanted)
    assert terminal.status(ID).phase == "preparing"
    assert not terminal.wait(ID, 0.1)
    page.delete(ID)
    terminal.start(other)
    terminal.delete(other)


def test_a_full_disk_is_told_where_the_process_could_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last words need room too."""
    folder_of(tmp_path, Status(phase="training", text="Epoch 2 of 8", epoch=2))
    usage = SimpleNamespace(free=4_096)
    monkeypatch.setattr("studio.voices.voice_training.shutil.disk_usage", lambda _: usage)
    status = VoiceTraining(tmp_path).status(ID)
    assert (status.phase, status.epoch) == ("stopped", 2)
    assert "disk is full" in status.text


def test_a_training_ends_with_the_process_that_began_it() -> None:
    """The grandchild holds the pipe open: the pipe ends once it is gone too."""
    child = (
        "import os, sys, time; from training.voice.__main__ import end_with\n"
        "end_with(int(sys.argv[1])); print('begun', flush=True); time.sleep(600)"
    )
    parent = (
        "import os, subprocess, sys\n"
        "command = [sys.executable, '-c', sys.argv[1], str(os.getpid())]\n"
        "subprocess.Popen(command).wait()"
    )
    command = [sys.executable, "-c", parent, child]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.kill()
        assert process.stdout.read() == b""


def test_a_voice_is_kept_once_it_is_done(tmp_path: Path) -> None:
    trainings, library = VoiceTraining(tmp_path), Library(tmp_path / "voices")
    folder = folder_of(tmp_path, Status(phase="training"))
    with pytest.raises(InvalidSetting, match="no voice yet"):
        trainings.keep(ID, library, {})
    vector = np.ones(8, np.float32)
    voice = Clone(vector, model="mini", rows=np.ones((2, 8), np.float32), digest="d")
    card = VoiceCard(
        name="Ann", kind="trained", width=8, model="mini", digest="d", consent=True,
        made_from=JOB.consent,
    )  # fmt: skip
    folder.voice.write_bytes(pack(card, voice))
    folder.tell(Status(phase="done", best=1))
    saved = trainings.keep(ID, library, {})
    assert saved.card == card
    assert isinstance(saved.voice, Clone)
    assert saved.voice.trained
    assert trainings.list() == (ID,)
    trainings.delete(ID)
    assert trainings.list() == ()
    assert library.get(saved.id).card.made_from == JOB.consent


def test_a_voice_that_is_kept_is_not_hidden_by_a_preset(tmp_path: Path) -> None:
    trainings, library = VoiceTraining(tmp_path), Library(tmp_path / "voices")
    folder = folder_of(tmp_path, Status(phase="done", best=1))
    voice = Clone(np.ones(8, np.float32), model="mini", rows=np.ones((2, 8), np.float32))
    card = VoiceCard(
        name="Clara", kind="trained", width=8, model="mini", digest="d", consent=True,
        made_from=JOB.consent,
    )  # fmt: skip
    folder.voice.write_bytes(pack(card, voice))
    there = {"mini": CHECKPOINT.capabilities}
    assert trainings.keep(ID, library, there).name == "Clara 2"
    assert trainings.keep(ID, library, there).name == "Clara 2"  # once


@pytest.mark.parametrize("name", ["", "..", "../voices", "0123456789aB", "x" * 12])
def test_no_other_folder_is_a_training(tmp_path: Path, name: str) -> None:
    with pytest.raises(Exception, match="no training"):
        VoiceTraining(tmp_path).folder(name)


def test_a_trained_voice_is_the_same_alone_and_beside_others(talker: Talker) -> None:
    """Any rows: in one batch with a preset and a plain clone, as alone, same seed same codes."""
    from engine import Preset, SpeechRequest, open_engine

    assert isinstance(CASE.voice, Clone)
    rows = 0.3 * np.random.default_rng(3).standard_normal((8, len(CASE.voice.vector)))
    mine = replace(CASE.voice, rows=rows.astype(np.float32), digest=CHECKPOINT.capabilities.digest)

    def request(voice: Clone | Preset) -> SpeechRequest:
        return SpeechRequest("One two.", voice, seed=7, max_frames=12, ignore_end=True)

    with open_engine([MINI], device="cpu", cache=CACHE, max_num_seqs=4) as engine:
        alone = np.concatenate([chunk.codes for chunk in engine.submit(request(mine))])
        streams = [engine.submit(request(each)) for each in (Preset("clara"), mine, CASE.voice)]
        together = [np.concatenate([chunk.codes for chunk in stream]) for stream in streams]
    np.testing.assert_array_equal(together[1], alone)
    assert (together[2] != alone).any()
