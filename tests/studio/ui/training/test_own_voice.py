"""Training in the Clone tab: begun with consent, followed, compared blindly, kept, deleted."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
import soundfile

from engine import (
    Clone,
    InvalidSetting,
    InvalidVoice,
    Message,
    Preset,
    SpeechEngine,
    Vector,
    Waveform,
)
from engine.testing.fake_checkpoint import FakeCheckpoint
from engine.voices.voice_format import VoiceCard, pack
from studio.ui import i18n
from studio.ui.tabs.own_voice import lines, recordings
from studio.ui.tabs.own_voice import tab as own_voice
from studio.ui.tabs.own_voice.lines import LinesForm
from studio.ui.tabs.own_voice.reading import ReadingForm
from studio.ui.tabs.own_voice.recordings import RecordingsTable
from studio.ui.tabs.own_voice.tab import NO_MODEL, OwnVoiceTab, told
from studio.voices import reading
from studio.voices.kept_models import keep_model, kept_models
from studio.voices.reading import Reading
from studio.voices.voice_training import VoiceTraining
from tests.studio.ui.test_i18n import shown
from tests.training.voice.test_preparation import voiced, written
from training.voice import segments
from training.voice.job import Epoch, Job, JobFolder, Spoken, Status, take_lock
from training.voice.judge import refusal
from training.voice.prepare import Wish
from training.voice.recordings import LongRecording, measured_recording
from training.voice.texts import ENGLISH

ID = "0123456789ab"
EPOCHS = (
    Epoch(number=0, stopped=1, pace=1, likeness=0.7, pitch=1.5),
    Epoch(number=1, stopped=1, pace=1, likeness=0.8, pitch=0.2, words=0.04),
)
DONE = Status(phase="done", text="Epoch 1 is <the> best", epochs=1, history=EPOCHS, best=1)


@pytest.fixture
def trainings(tmp_path: Path) -> VoiceTraining:
    return VoiceTraining(tmp_path / "data")


@pytest.fixture
def tab(studio, trainings):
    return OwnVoiceTab(studio, trainings)


@pytest.fixture
def done(trainings: VoiceTraining) -> JobFolder:
    """A training that has ended, as its process leaves it."""
    folder = JobFolder(trainings.data / "training" / ID)
    folder.write(Job(name="Ann", model="mini", consent="Ann Lee, my own voice"))
    folder.tell(DONE)
    folder.samples.mkdir()
    for epoch, level in ((0, 0.1), (1, 0.2)):
        for number in range(own_voice.PAIRS):
            tone = level * np.sin(np.arange(36_000) * (0.02 + 0.02 * epoch))
            soundfile.write(folder.samples / f"{epoch}-{number}.wav", tone, 24_000)
    learn(folder)
    return folder


def learn(folder: JobFolder, row: float = 1.0) -> None:
    """A voice, as an epoch leaves it."""
    rows = np.full((2, 16), row, np.float32)
    voice = Clone(np.ones(16, np.float32), model="fake", rows=rows, digest="weights of fake")
    card = VoiceCard(
        name="Ann",
        kind="trained",
        width=16,
        model="fake",
        digest=voice.digest,
        consent=True,
        created=folder.read().created,
    )
    folder.voice.write_bytes(pack(card, voice))


def test_nothing_begins_without_recordings_consent_or_a_model(
    tab, trainings, tmp_path, monkeypatch
):
    assert "Record a voice or drop a file" in tab.start(None, "Ann", "english", "Ann, mine")[0]
    sound = tmp_path / "one.wav"
    soundfile.write(sound, np.zeros(24_000), 24_000)
    files = [str(sound)]
    assert "Give the voice a name" in tab.start(files, " ", "english", "Ann Lee, mine")[0]
    assert NO_MODEL in tab.start(files, "Ann", "english", "Ann Lee, mine")[0]
    monkeypatch.setattr(OwnVoiceTab, "_model", lambda self: "presets/mini")
    assert "whose voice" in tab.start(files, "Ann", "english", "")[0]
    assert "silent" in tab.start(files, "Ann", "english", "Ann Lee, mine")[0]
    assert trainings.list() == ()


def test_why_nothing_begins_stays_told_beside_the_training_that_is_shown(tab, done):
    said, listed, shown = tab.start(None, "Bob", "english", "Bob, mine", picked=ID)
    assert "Record a voice or drop a file" in said
    assert listed == gr.skip()
    assert shown == tab.look(ID)[0]  # what the next look shows


def test_what_begins_is_shown_and_followed(studio, trainings, tmp_path, monkeypatch):
    begun: list[str] = []

    def transcribe(_: object) -> str:
        return "words"

    tab = OwnVoiceTab(replace(studio, transcribe=transcribe), trainings)

    def prepare(wish: Wish, files: Sequence[Path], recognise: object, anyway: Sequence[str]) -> str:
        assert (wish.way, recognise) == ("adapter", transcribe)  # a long file needs one
        assert anyway == ["a.wav"]
        assert [file.name for file in files] == ["a.wav", "a.txt"]
        assert len({file.parent for file in files}) == 1  # though uploads lie apart
        JobFolder(trainings.data / "training" / ID).write(
            Job(name="Ann", model="mini", consent="Ann Lee, mine")
        )
        return ID

    monkeypatch.setattr(OwnVoiceTab, "_model", lambda self: "presets/mini")
    monkeypatch.setattr(trainings, "prepare", prepare)
    monkeypatch.setattr(trainings, "start", begun.append)
    uploads = [tmp_path / "1" / "a.wav", tmp_path / "2" / "a.txt"]
    for upload in uploads:
        upload.parent.mkdir()
        upload.write_text("a")
    uploaded = [str(upload) for upload in uploads]
    _, listed, _ = tab.start(
        uploaded, "Ann", "english", "Ann Lee, mine", "adapter", anyway=["a.wav"]
    )
    assert begun == [ID]
    assert (listed["choices"], listed["value"]) == ([("Ann", ID)], ID)
    folder = trainings.folder(ID)
    with folder.lock():  # a process learns
        folder.tell(Status(phase="training", text="Epoch 1 of 8, about 4 minutes left"))
        text, timer = tab.look(ID)
        assert "about 4 minutes left" in text
        assert (timer.active, timer.value) == (True, own_voice.TICK)
        assert "next step" in tab.stop(ID)  # at once, though the process hears of it later
    text, timer = tab.look(ID)  # it was killed
    assert "goes on from the last epoch" in text
    assert (timer.active, timer.value) == (True, own_voice.REST)  # another page may go on


def test_one_that_has_just_stopped_goes_on_though_its_process_ends_a_little_later(
    trainings, done, monkeypatch
) -> None:
    """Before, Go on did nothing then, and said nothing."""
    ending = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"])
    trainings._processes[ID] = ending
    done.tell(DONE.model_copy(update={"phase": "stopped"}))
    begun: list[list[str]] = []

    def popen(command: list[str], **_: object) -> subprocess.Popen[bytes]:
        begun.append(command)
        return ending

    monkeypatch.setattr(subprocess, "Popen", popen)
    trainings.start(ID)
    assert str(done.path.resolve()) in begun[0]
    assert done.status().phase == "preparing"


def test_a_comparison_is_blind_and_counts(tab, done):
    tally, chosen = [0, 0], 0
    for _ in range(12):
        first, second, pair, spoken = tab.compare(ID)
        assert spoken == ""
        assert sorted(pair["order"]) == [0, 1]
        assert first[0] == second[0] == 24_000
        crossings = [int((np.diff(np.sign(each[1])) != 0).sum()) for each in (first, second)]
        assert (crossings[0] > crossings[1]) == (pair["order"][0] == 1)  # the sounds it says
        chosen += pair["order"][0] == 1
        answer, tally, pair = tab.choose(True, pair, tally)
        assert pair == {}  # whose answer is known is not blind any more
    assert tally == [chosen, 12]
    assert f"{chosen} of 12" in answer
    assert 0 < chosen < 12
    assert tab.choose(True, {}, [1, 2])[:2] == ("Press Compare first.", [1, 2])


def test_the_louder_of_two_compared_is_as_loud_as_the_other(tab, done) -> None:
    first, second, *_ = tab.compare(ID)
    assert np.abs(first[1]).max() == pytest.approx(np.abs(second[1]).max(), rel=0.01)


@pytest.mark.parametrize("sound", [np.zeros(1), np.sign(np.sin(np.arange(36_000) / 40))])
def test_an_epoch_that_says_nothing_or_shouts_is_heard_as_it_is(tab, done, sound) -> None:
    """Before, it was checked as a recording to clone, and nothing could be heard or compared."""
    for number in range(own_voice.PAIRS):
        soundfile.write(done.samples / f"0-{number}.wav", sound, 24_000)
    rate, pcm = tab.hear(ID, "0")
    np.testing.assert_allclose(pcm / 32_768, sound, atol=1e-4)
    first, second, pair, said = tab.compare(ID)
    assert (rate, said) == (24_000, "")
    clone, learned = (first, second) if pair["order"][0] == 0 else (second, first)
    assert len(clone[1]) == len(sound)
    assert learned[1].any()


def test_a_sample_that_goes_while_it_is_chosen_is_none(tab, done, monkeypatch) -> None:
    there = tab._samples(ID)
    monkeypatch.setattr(tab, "_samples", lambda training: there)
    shutil.rmtree(done.path)
    assert tab.hear(ID, "0") is None


def test_keeping_and_deleting(tab, studio, done, trainings):
    assert "Ann is saved" in tab.keep(ID)
    assert "Ann is saved" in tab.keep(ID)  # no second one
    saved = studio.library.find("Ann")
    assert saved.card.kind == "trained"
    assert saved.voice.trained
    spoken, asked = tab.delete(ID, "another", own_voice.SURE)
    assert "again" in spoken
    assert done.path.exists()
    spoken, _ = tab.delete(ID, asked, spoken)
    assert "with its recordings" in spoken
    listed = tab.listed(ID)
    assert (listed["choices"], listed["value"]) == ([], None)
    assert "No training yet" in tab.look(None)[0]
    assert not done.path.exists()
    assert studio.library.find("Ann") is not None  # what was kept stays
    assert "no training" in tab.keep(ID)


def test_what_is_learned_once_more_with_another_line_is_kept_too(
    tab, studio, done, trainings
) -> None:
    """Before, Keep said that it was saved, and the voice without the line stayed the only one."""
    done.segments.mkdir()
    written(done.segments / "0000.wav", voiced(4.5))
    line = Spoken(file="0000.wav", text="No", doubtful=Message("no words"))
    done.write(done.read().model_copy(update={"lines": (line,), "created": "2026-11-29T08:00:00"}))
    done.leave_out([line])
    learn(done)
    assert "Ann is saved" in tab.keep(ID)
    assert "is taken" in LinesForm(trainings).mend(ID, "0000.wav", ENGLISH[0])
    learn(done, 2.0)
    done.tell(DONE)
    for _ in range(2):  # once
        assert "Ann 2 is saved" in tab.keep(ID)
    assert [saved.voice.rows.max() for saved in studio.library.list()] == [1, 2]


def test_a_training_goes_though_somebody_looks_at_it_meanwhile(
    tab, trainings, done, monkeypatch
) -> None:
    looked, remove = list[object](), os.rmdir

    def late(path: Path, **where: int) -> None:
        if not looked and Path(path) == done.path:
            looked.append(done.locked)  # leaves no file in a folder that was emptied
        remove(path, **where)

    monkeypatch.setattr(os, "rmdir", late)
    assert "Deleted" in tab.delete(ID, ID, own_voice.SURE)[0]
    assert looked == [False]
    assert not done.path.exists()
    assert not done.locked
    assert "This training was deleted" in tab.told(ID)


def test_what_cannot_be_done_now_is_not_there(tab, done) -> None:
    """Stop, go on, keep, delete, sounds, comparison, mending."""

    def there(phase: str, **changes: object) -> str:
        done.tell(DONE.model_copy(update={"phase": phase, **changes}))
        return "".join("·x"[each["visible"]] for each in tab.parts(ID))

    assert there("done") == "··xxxx·"
    with done.lock():
        assert there("training", best=None) == "x··xx··"
    assert there("training") == there("stopped") == "·x·xxx·"  # it was killed
    assert there("refused", best=None) == "···xx··"
    done.segments.mkdir()
    written(done.segments / "0000.wav", voiced(2.0))
    done.leave_out([Spoken(file="0000.wav", text="heard", doubtful=Message("no words"))])
    assert there("refused", best=None) == "···xx·x"
    assert [each["visible"] for each in tab.parts("")] == [False] * 7


def test_two_who_read_at_once_have_readings_of_their_own(tab, trainings, tmp_path) -> None:
    form, recording = ReadingForm(trainings.data), tmp_path / "recording.wav"
    written(recording, voiced(4.5))
    form.take(str(recording), ENGLISH[0], "Ann Lee, mine", "one browser")
    form.take(str(recording), ENGLISH[1], "Ben Lee, mine", "another browser")
    for owner, text in (("one browser", ENGLISH[0]), ("another browser", ENGLISH[1])):
        own = Reading(trainings.data, owner)
        assert own.texts() == {text}
        assert {path.parent for path in own.files()} == {own.place}
    form.clear("one browser")
    assert "read: 1" in form.told("another browser")
    assert form.told("a third") == ""


def test_what_nobody_read_on_is_removed_after_a_while(trainings, tmp_path) -> None:
    recording = written(tmp_path / "recording.wav", voiced(4.5))
    for owner in ("left", "comes back"):
        Reading(trainings.data, owner).take(recording, ENGLISH[0], "Ann Lee, mine")
    left, back = (Reading(trainings.data, owner) for owner in ("left", "comes back"))
    for path in (*left.place.glob("*"), left.place, *back.place.glob("*"), back.place):
        os.utime(path, (0, 0))
    back.take(recording, ENGLISH[1], "Ann Lee, mine")
    reading.remove_abandoned(trainings.data, 3_600)
    assert not left.place.exists()
    assert back.texts() == {ENGLISH[0], ENGLISH[1]}


def test_a_line_that_was_left_out_is_heard_and_taken_with_other_words(
    tab, trainings, tmp_path, monkeypatch
) -> None:
    files = []
    for number, text in enumerate(ENGLISH[:9]):
        files.append(str(written(tmp_path / f"{number}.wav", voiced(4.5), text)))
        files.append(str(tmp_path / f"{number}.txt"))
    (tmp_path / "8.txt").write_text("No")
    monkeypatch.setattr(OwnVoiceTab, "_model", lambda self: "presets/mini")
    monkeypatch.setattr(trainings, "start", lambda training: None)
    _, listed, _ = tab.start(files, "Ann", "english", "Ann Lee, mine")
    training, form = listed["value"], LinesForm(trainings)
    folder = trainings.folder(training)
    for path in (folder.dataset, folder.state):
        path.write_bytes(b"of before")
    folder.tell(Status(phase="stopped", epochs=8, history=EPOCHS))
    folder.samples.mkdir()
    written(folder.samples / "1-0.wav", voiced(2.0))
    assert form.listed(training)["choices"] == [("8.wav: No", "0008.wav")]
    sound, text, why, flawed = form.hear(training, "0008.wav")
    assert (sound[0], text) == (24_000, "No")
    assert not flawed["visible"]  # not its sound is why
    assert "2 letters in" in why
    assert "still left out" in form.mend(training, "0008.wav", "No.")
    with folder.lock():
        assert "Stop it first" in form.mend(training, "0008.wav", ENGLISH[8])
    assert "is taken" in form.mend(training, "0008.wav", ENGLISH[8])
    assert form.listed(training, "0008.wav")["value"] is None
    line = folder.read().lines[8]
    assert (line.text, line.doubtful, line.mended) == (ENGLISH[8], "", True)
    assert not folder.dataset.exists()  # it has codes of eight lines
    assert not folder.state.exists()
    assert tab.sounds(training)["choices"] == []  # they were learned without the line
    assert "Go on begins it" in tab.told(training)
    assert "Choose a line" in form.mend(training, "0008.wav", ENGLISH[8])


def test_a_recording_that_its_sound_keeps_out_is_taken_anyway(
    tab, trainings, tmp_path, monkeypatch
) -> None:
    files = []
    for number, text in enumerate(ENGLISH[:10]):
        files += [str(tmp_path / f"{number}.wav"), str(tmp_path / f"{number}.txt")]
        sound = voiced(4.5) if number < 9 else noisy(4.5)
        written(tmp_path / f"{number}.wav", sound, text)
    written(tmp_path / "mute.wav", voiced(4.5) * 0, ENGLISH[10])
    files.append(str(tmp_path / "mute.wav"))
    *_, (html, choice) = tab.heard(files, [])
    assert "kept out: 2" in html
    assert (choice["choices"], choice["value"], choice["visible"]) == (["9.wav"], [], True)
    assert "kept out: 1" in tab.heard_again(files, ["9.wav", "mute.wav"])
    *_, (_, choice) = tab.heard(files[:-3], ["9.wav"])  # it was removed from the list
    assert (choice["choices"], choice["visible"]) == ([], False)
    monkeypatch.setattr(OwnVoiceTab, "_model", lambda self: "presets/mini")
    monkeypatch.setattr(trainings, "start", lambda training: None)

    def begun(anyway: list[str]) -> str:
        _, listed, _ = tab.start(files, "Ann", "english", "Ann Lee, mine", anyway=anyway)
        return listed["value"]

    folder = trainings.folder(begun(["9.wav", "mute.wav"]))
    line, mute = folder.read().lines[9:]
    assert (line.doubtful, line.anyway, "too noisy" in line.flaw) == ("", True, True)
    assert "silent" in mute.doubtful  # nobody can take that
    training, form = begun([]), LinesForm(trainings)
    folder = trainings.folder(training)
    folder.dataset.write_bytes(b"without it")
    assert "9.wav: too noisy" in tab.told(training)
    *_, why, offered = form.hear(training, "0009.wav")
    assert "too noisy" in why
    assert offered["visible"]
    with folder.lock():
        assert "Stop it first" in form.take_anyway(training, "0009.wav")
    assert "All of 9.wav is taken" in form.take_anyway(training, "0009.wav")
    line = folder.read().lines[9]
    assert (line.text, line.doubtful, line.anyway, line.mended) == (ENGLISH[9], "", True, False)
    assert not folder.dataset.exists()
    assert [each.source for each in folder.left_out] == ["mute.wav"]
    assert "Nothing of" in form.take_anyway(training, "0009.wav")


def noisy(seconds: float) -> np.ndarray:
    sound = voiced(seconds)
    noise = np.random.default_rng(3).standard_normal(len(sound)) * sound.std() / 4
    return (sound + noise).astype(np.float32)


def test_another_training_is_not_given_the_words_that_were_heard_of_one(trainings) -> None:
    """Lines of all trainings have the same names."""
    for training, text in ((ID, "heard"), ("ba9876543210", "of another")):
        folder = JobFolder(trainings.data / "training" / training)
        folder.write(Job(name="Ann", model="mini", consent="Ann Lee, mine"))
        folder.segments.mkdir()
        written(folder.segments / "0000.wav", voiced(2.0))
        folder.leave_out([Spoken(file="0000.wav", text=text, doubtful=Message("no words"))])

    async def built() -> tuple[gr.Blocks, gr.Dropdown]:
        with gr.Blocks() as page:
            picked = gr.Dropdown([])
            lines.build(trainings, picked, gr.Timer(active=False))
        return page, picked

    page, picked = asyncio.run(built())
    said: list[object] = []
    for event in page.fns.values():
        if (picked._id, "change") in event.targets:
            given = ["ba9876543210" if each is picked else "0000.wav" for each in event.inputs]
            found = event.fn(*given)
            said += found if isinstance(found, tuple) else (found,)
    line, *heard = said
    *heard, flawed = heard
    assert line["value"] is None
    assert heard == [None, "", ""]
    assert flawed["visible"] is False


def test_recordings_are_told_one_by_one_before_a_training(tmp_path) -> None:
    table = RecordingsTable(alike)
    good = written(tmp_path / "good.wav", voiced(4.5), "words")
    quiet = written(tmp_path / "quiet.wav", voiced(4.5) / 100, "words")
    noise = np.random.default_rng(0).normal(0, 0.1, 72_000)
    noisy = written(tmp_path / "<noisy>.wav", noise, "words")
    two = written(tmp_path / "two.wav", np.concatenate([voiced(4.5, 100), voiced(4.5, 190)]))
    assert table.told(None) == table.told([str(tmp_path / "good.txt")]) == ("", ())
    files = [str(path) for path in (good, quiet, noisy, two, tmp_path / "good.txt")]
    html, takeable = table.told(files)
    assert takeable == ("<noisy>.wav", "two.wav")
    assert "4 recordings, 0.1 minutes; kept out: 2" in html
    rows = {re.findall("<b>(.*?)</b>", row)[0]: row for row in html.split("<li>")[1:]}
    assert [*rows] == ["&lt;noisy&gt;.wav", "two.wav", "good.wav", "quiet.wav"]
    assert "Kept out: &lt;noisy&gt;.wav: too noisy" in rows["&lt;noisy&gt;.wav"]
    assert "Kept out: more than one person in it" in rows["two.wav"]
    assert "Too quiet" in rows["quiet.wav"]
    assert "Too quiet" not in rows["good.wav"]
    assert all("<svg" in row for row in rows.values())
    assert 'class="marked"' in rows["two.wav"]
    assert 'class="marked"' not in rows["good.wav"]
    html = table.told(files, ["two.wav", "gone.wav"]).html
    assert "4 recordings, 0.3 minutes; kept out: 1" in html
    assert "Taken anyway: more than one person in it" in html


def alike(_: Waveform) -> Vector:
    return np.ones(16, np.float32)


def test_a_recording_is_heard_once_until_it_changes(tmp_path, monkeypatch) -> None:
    heard: list[str] = []

    def measured(path: Path) -> LongRecording:
        heard.append(path.name)
        return measured_recording(path)

    monkeypatch.setattr(recordings, "measured_recording", measured)
    table = RecordingsTable(alike)
    files = [str(written(tmp_path / f"{name}.wav", voiced(2.0))) for name in "ab"]
    table.told(files[:1])
    table.told(files)
    assert "gone.wav cannot be read" in table.told([*files, str(tmp_path / "gone.wav")]).html
    assert table.told([str(tmp_path / "gone.wav")]).takeable == ()
    written(tmp_path / "a.wav", voiced(3.0))
    assert "3.0 s, level" in table.told(files).html
    assert heard == ["a.wav", "b.wav", "gone.wav", "gone.wav", "a.wav"]


def test_the_recordings_of_somebody_else_are_kept_out(tmp_path) -> None:
    def embed(wave: Waveform) -> Vector:
        vector = np.ones(16, np.float32)
        vector[0 if len(wave) > 4 * 24_000 else 1] += 4  # the other one is short of breath
        return vector

    lengths = [4.5] * 12 + [2.0]
    files = [
        str(written(tmp_path / f"{n}.wav", voiced(seconds))) for n, seconds in enumerate(lengths)
    ]
    html, takeable = RecordingsTable(embed).told(files)
    assert takeable == ("12.wav",)
    assert "13 recordings, 0.9 minutes; kept out: 1" in html
    assert html.index("<b>12.wav") < html.index("Kept out: sounds like somebody else")
    assert html.index("Kept out") < html.index("<b>0.wav")
    assert "Two people" not in html
    for number in range(5):
        files.append(str(written(tmp_path / f"short{number}.wav", voiced(2.0))))
    assert "Two people speak in these" in RecordingsTable(embed).told(files).html

    def unable(_: Waveform) -> Vector:
        raise InvalidVoice("No model clones.")

    assert "kept out: 0" in RecordingsTable(unable).told(files).html


def test_a_sentence_is_read_once_it_is_said_whose_voice_it_is(trainings, tmp_path) -> None:
    form, recording = ReadingForm(trainings.data), tmp_path / "recording.wav"
    for said in ("", "Ann", " , "):
        assert [each["visible"] for each in form.ready(said)] == [False, True]
    for said in ("Ann Lee", "李安，这是我自己的声音。"):
        assert [each["visible"] for each in form.ready(said)] == [True, False]
    written(recording, voiced(4.5))
    form.take(str(recording), ENGLISH[0], "李安，这是我自己的声音。", "the browser")
    assert form.agreed("", "the browser") == "李安，这是我自己的声音。"  # after a reload
    assert form.agreed("Ben Lee, mine", "the browser") == "Ben Lee, mine"
    assert form.agreed("", "another") == ""


def test_reasons_with_numbers_are_told_in_chinese_too() -> None:
    clone, epoch = EPOCHS
    refused = epoch.model_copy(update={"pitch": -4.9})
    refused = refused.model_copy(update={"refused": refusal(refused, clone)})
    why = Message.listed([refused.refused, Message("it does not always stop")], "; ")
    said = Message(
        "The clone is better than what was learned: {why}. Use it, or record more.", why=why
    )
    status = Status(phase="refused", history=(clone, refused)).saying(said)
    left_out = Spoken(
        file="0000.wav",
        source="a.wav",
        text="No",
        doubtful=Message("{seconds:.0f} s are too long for one line", seconds=15.2),
    )
    kept = Status.model_validate_json(status.model_dump_json())
    html = told(kept, [Spoken.model_validate_json(left_out.model_dump_json())])
    assert "its pitch is -4.9 semitones away; it does not always stop. Use it" in html
    english = re.sub('<span lang="en">.*?</span>', "", html)
    assert "音高相差 -4.9 半音; 并不总能停下" in english
    assert "a.wav（No）：一句 15 秒太长" in english
    for word in ("semitones", "stop", "Use", "too long"):
        assert word not in english.replace("Semitones", "")


def test_a_status_of_before_keeps_its_history() -> None:
    before = {"text": "Stopped at 3.", "key": "Stopped at {n}.", "values": {"n": 3}, "best": 1}
    assert Status.model_validate(before) == Status(text="Stopped at 3.", best=1)
    assert (
        Status.model_validate({"text": "Listening …", "key": "", "values": {}}).text
        == "Listening …"
    )


def test_how_far_it_is_is_told_in_chinese_too() -> None:
    status = Status().saying(
        Message("Epoch {number} of {all}, about 1 minute left", number=2, all=8)
    )
    html = told(Status.model_validate_json(status.model_dump_json()))
    assert "Epoch 2 of 8, about 1 minute left" in html
    assert "第 2 轮，共 8 轮" in html


def adapted(folder: JobFolder) -> None:
    """A training of an adapter that has ended, without its weights."""
    folder.write(folder.read().model_copy(update={"way": "adapter"}))
    folder.voice.unlink(missing_ok=True)
    folder.merged.mkdir()
    talker = {"spk_id": {"robert": 7, "own": 9}, "spk_is_dialect": {"robert": False, "own": False}}
    (folder.merged / "config.json").write_text(json.dumps({"talker_config": talker}))


@dataclass(frozen=True)
class Unread(FakeCheckpoint):
    """A model that lies in a folder."""

    folder: Path = Path()


@pytest.fixture
def adding(monkeypatch) -> Iterator[SimpleNamespace]:
    """Kept models are added to the engine without their weights, once that may `go` on."""
    adding = SimpleNamespace(added=[], begun=threading.Event(), go=threading.Event())
    adding.go.set()

    def add(engine: SpeechEngine, model: str) -> str:
        folder = Path(model)
        adding.added.append(folder)
        config = json.loads((folder / "config.json").read_text())["talker_config"]
        able = engine.capabilities()["fake"]
        able = replace(able, name=folder.name, speakers=tuple(config["spk_id"]))
        adding.begun.set()
        assert adding.go.wait(20)
        engine.add(able.name, Unread(able, folder=folder.resolve()))
        return able.name

    monkeypatch.setattr(own_voice, "add_model", add)
    yield adding
    adding.go.set()


def test_an_adapter_is_kept_as_a_voice_of_the_engine(tab, studio, trainings, done, adding) -> None:
    adapted(done)
    added = adding.added
    assert "Ann is saved" in tab.keep(ID)
    assert "Ann is saved" in tab.keep(ID)  # no second one
    assert [each.name for each in added] == ["Ann"]
    assert studio.engine.resolve(Preset("ann")).checkpoint == "Ann"
    assert "ann" in studio.choices().speakers()
    assert kept_models(trainings.data) == added  # a studio that is started again has it
    adapted(done)  # lines were mended, and it was trained again
    assert "Ann is saved" in tab.keep(ID)
    assert [*studio.engine.capabilities()] == ["fake", "Ann 2"]
    assert kept_models(trainings.data) == added[1:]
    spoken, asked = tab.delete(ID, ID, own_voice.SURE)  # asked before it had a voice
    assert "and its voice" in spoken
    tab.delete(ID, asked, spoken)
    assert [*studio.engine.capabilities()] == ["fake"]
    assert not done.path.exists()


def test_a_voice_that_is_deleted_while_it_is_loaded_is_gone(tab, studio, done, adding) -> None:
    adapted(done)
    adding.go.clear()
    with ThreadPoolExecutor(2) as pool:
        keeping = pool.submit(tab.keep, ID)
        assert adding.begun.wait(20)
        deleting = pool.submit(tab.delete, ID, ID, own_voice.SURE_MODEL)
        wait([deleting], 0.5)
        adding.go.set()
        assert "Ann is saved" in keeping.result()
        assert "Deleted" in deleting.result()[0]
    assert [*studio.engine.capabilities()] == ["fake"]
    assert not done.path.exists()


def test_a_voice_whose_training_cannot_be_deleted_now_is_spoken_with_still(
    tab, studio, done, adding
) -> None:
    adapted(done)
    tab.keep(ID)
    with done.lock():  # a line was mended, and another program learns
        assert "Delete it then" in tab.delete(ID, ID, own_voice.SURE_MODEL)[0]
    assert [*studio.engine.capabilities()] == ["fake", "Ann"]


def test_a_voice_is_kept_once_by_two_pages(tab, studio, done, adding) -> None:
    adapted(done)
    adding.go.clear()
    with ThreadPoolExecutor(2) as pool:
        keeping = [pool.submit(tab.keep, ID)]
        assert adding.begun.wait(20)
        keeping.append(pool.submit(tab.keep, ID))
        wait(keeping, 0.5)
        adding.go.set()
        assert all("Ann is saved" in each.result() for each in keeping)


def test_another_model_with_the_name_of_a_kept_one_stays(tab, studio, trainings, done, adding):
    """The studio was started again with a model in a folder of the same name."""
    adapted(done)
    kept = keep_model(done, [], [])
    able = replace(studio.engine.capabilities()["fake"], name="Ann")
    studio.engine.add("Ann", FakeCheckpoint(able))
    own = Unread(replace(able, name="Ann (2)"), folder=kept.folder.resolve())
    studio.engine.add("Ann (2)", own)
    tab.delete(ID, ID, own_voice.SURE_MODEL)
    assert [*studio.engine.capabilities()] == ["fake", "Ann"]


def test_a_kept_voice_stays_while_the_next_one_is_not_learned(tab, studio, done, adding) -> None:
    """Lines were mended in another page, whose training has not begun."""
    adapted(done)
    tab.keep(ID)
    adapted(done)
    done.tell(Status())
    assert "no voice yet" in tab.keep(ID)
    assert [*studio.engine.capabilities()] == ["fake", "Ann"]


def test_a_kept_voice_takes_no_saved_voice_s_name(tab, studio, trainings, done, adding) -> None:
    """Both ways were learned under one name; a preset would be spoken in the place of the other."""
    saved = trainings.keep(ID, studio.library, {})
    adapted(done)
    assert "Ann 2 is saved" in tab.keep(ID)
    vectors = [each.vector for each in (studio.choices().named("Ann"), saved.voice)]
    np.testing.assert_array_equal(*vectors)


def test_a_kept_voice_has_a_name_of_its_own(tab, studio, done, monkeypatch) -> None:
    adapted(done)
    done.write(done.read().model_copy(update={"name": "../Robert"}))
    taken = keep_model(done, ["___Robert"], ["../robert"])
    assert (taken.name, taken.speaker) == ("___Robert 2", "../robert 2")
    assert taken.folder.parent == done.kept
    adapted(done)
    done.write(done.read().model_copy(update={"name": "𠀀" * 80}))  # 320 bytes: no folder's name
    assert keep_model(done, [], []).speaker == "𠀀" * 80
    with pytest.raises(InvalidSetting, match="no voice yet"):
        keep_model(done, [], [])


def test_a_status_is_html_that_nobody_can_write_into():
    html = told(
        DONE, [Spoken(file="0000.wav", source="a.wav", text="<b>noise</b>", doubtful="why")]
    )
    assert "a.wav (&lt;b&gt;noise" in html
    assert "&lt;the&gt;" in html
    assert "+1.5" in html
    assert "4%" in html


def test_a_page_goes_on_with_a_server_that_was_started_again(studio, trainings) -> None:
    """It asks with what it has; the new server knows no choices of this page."""

    async def built() -> gr.Blocks:
        with gr.Blocks() as page:
            own_voice.build(studio, trainings)
        return page

    menus = [each for each in asyncio.run(built()).blocks.values() if isinstance(each, gr.Dropdown)]
    later = [each for each in menus if not each.choices]
    one = [each for each in later if not each.multiselect]
    assert [each.preprocess(ID) for each in one] == [ID] * 3
    assert [each.preprocess([ID]) for each in later if each not in one] == [[ID]]


def test_every_label_is_there_in_chinese(studio, trainings):
    async def built() -> object:
        with gr.Blocks() as page:
            own_voice.build(studio, trainings)
        return page.config

    assert set(shown(asyncio.run(built()))) - i18n.CHINESE.keys() == set()


def test_a_copy_of_a_training_beside_it_does_no_harm(tab, trainings, done) -> None:
    for name in (f"{ID}.bak", "a copy"):
        shutil.copytree(done.path, done.path.with_name(name))
    assert trainings.list() == (ID,)
    assert [value for _, value in tab.listed(None)["choices"]] == [ID]
    assert not any(trainings._running(each) for each in trainings.list())


def test_a_training_that_is_gone_or_damaged_is_no_fault(tab, trainings, done) -> None:
    assert tab.hear("ffffffffffff", "1") is None
    assert tab.hear(ID, "²") is None
    (done.path / "job.json").write_bytes(b"{")
    assert tab.listed(None)["choices"] == [(ID, ID)]


def test_two_recordings_of_one_name_are_told(tab, tmp_path: Path) -> None:
    files = [tmp_path / folder / "take.wav" for folder in ("a", "b")]
    said, *_ = tab.start([str(each) for each in files], "Ann", "english", "Ann Lee, my own")
    assert "take.wav" in said


def test_sentences_are_read_checked_kept_and_learned(tab, trainings, tmp_path, monkeypatch) -> None:
    form, recording = ReadingForm(trainings.data), tmp_path / "recording.wav"
    mine, whose = "Ann Lee, mine", "the browser"
    written(recording, voiced(4.5))
    assert "whose voice this is" in form.take(str(recording), ENGLISH[0], " ", whose)[2]
    assert not (trainings.data / "training").exists()
    assert "Choose a sentence" in form.take(str(recording), " ", mine, whose)[2]
    assert "are these its words" in form.take(str(recording), "Yes. " * 90, mine, whose)[2]
    _, following, told_, _ = form.take(str(recording), ENGLISH[0], mine, whose)
    assert following == ENGLISH[1]
    assert "read: 1, 0.1 minutes" in told_
    form.take(str(recording), ENGLISH[0], mine, whose)  # once more: the later one counts
    form = ReadingForm(trainings.data)  # the page was loaded again
    assert "read: 1" in form.told(whose)
    assert form.next("", whose) == ENGLISH[1]
    monkeypatch.setattr(OwnVoiceTab, "_model", lambda self: "presets/mini")
    assert "at least 30 are needed" in tab.start(None, "Ann", "english", mine, owner=whose)[0]
    assert "read: 1" in form.told(whose)
    for text in ENGLISH[1:8]:
        form.take(str(recording), text, mine, whose)
    with take_lock(trainings.data / "training" / "lock"):  # another program starts one
        said, listed, _ = tab.start(None, "Ann", "english", mine, owner=whose)
    assert "Another voice" in said
    assert "Go on begins it" in tab.told(listed["value"])
    spoken = trainings.folder(listed["value"]).read().lines
    assert sorted(line.text for line in spoken) == sorted(ENGLISH[:8])
    assert form.told(whose) == ""
    form.take(str(recording), ENGLISH[0], mine, whose)
    assert form.clear(whose) == ""


def test_a_sentence_whose_sound_is_doubted_is_kept_anyway(
    tab, trainings, tmp_path, monkeypatch
) -> None:
    form, recording = ReadingForm(trainings.data), tmp_path / "recording.wav"
    mine, whose = "Ann Lee, mine", "the browser"
    own = Reading(trainings.data, whose)
    noise = np.random.default_rng(0).standard_normal(round(4.5 * 24_000)) * 0.05
    written(recording, (voiced(4.5) + noise[: len(voiced(4.5))]).astype(np.float32))
    kept, following, why, offered = form.take(str(recording), ENGLISH[0], mine, whose)
    assert "noisy" in why
    assert offered["visible"]
    assert kept == following == gr.skip()  # it is there to be heard, and to be taken
    assert not own.files()
    emptied, following, told_, offered = form.take_anyway(str(recording), ENGLISH[0], mine, whose)
    assert (emptied, following, offered["visible"]) == (None, ENGLISH[1], False)
    assert "read: 1" in told_
    written(recording, np.zeros(24_000, np.float32))
    _, _, why, offered = form.take(str(recording), ENGLISH[1], mine, whose)
    assert not offered["visible"]  # of silence nothing is learned
    written(recording, voiced(4.5))
    for text in ENGLISH[1:9]:
        form.take(str(recording), text, mine, whose)
    assert len(own.anyway()) == 1
    monkeypatch.setattr(OwnVoiceTab, "_model", lambda self: "presets/mini")
    monkeypatch.setattr(trainings, "start", lambda training: None)
    _, listed, _ = tab.start(None, "Ann", "english", mine, owner=whose)
    lines = {line.text: line for line in trainings.folder(listed["value"]).read().lines}
    assert len(lines) == 9
    assert not lines[ENGLISH[0]].doubtful
    assert lines[ENGLISH[0]].anyway
    assert not lines[ENGLISH[1]].anyway
    assert not own.place.exists()


def test_a_sentence_in_which_others_seem_to_speak_is_kept_anyway(
    trainings, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(segments, "has_others", lambda wave: True)
    form, recording = ReadingForm(trainings.data), written(tmp_path / "a.wav", voiced(4.5))
    said = str(recording), ENGLISH[0], "Ann Lee, mine", "the browser"
    kept, _, why, offered = form.take(*said)
    assert "more than one person" in why
    assert offered["visible"]
    assert kept == gr.skip()
    assert "read: 1" in form.take_anyway(*said)[2]


def test_half_of_an_emoji_is_no_fault(trainings, tmp_path, done) -> None:
    half, recording = "\ud83d", written(tmp_path / "recording.wav", voiced(4.5))
    said = ENGLISH[0] + half, "Ann Lee, mine" + half
    assert "read: 1" in ReadingForm(trainings.data).take(str(recording), *said, "the browser")[2]
    assert Reading(trainings.data, "the browser").texts() == {ENGLISH[0] + "?"}
    done.segments.mkdir()
    written(done.segments / "0000.wav", voiced(4.5))
    line = Spoken(file="0000.wav", text="No", doubtful=Message("no words"))
    done.write(done.read().model_copy(update={"lines": (line,)}))
    done.leave_out([line])
    assert "is taken" in LinesForm(trainings).mend(ID, "0000.wav", said[0])
    assert done.read().lines[0].text == ENGLISH[0] + "?"


def test_a_sentence_read_again_needs_no_permission(trainings, tmp_path) -> None:
    own, recording = Reading(trainings.data, "browser"), tmp_path / "recording.wav"
    written(recording, voiced(4.5))
    own.take(recording, ENGLISH[0], "Ann Lee, mine", anyway=True)
    assert len(own.anyway()) == 1
    own.take(recording, ENGLISH[0], "Ann Lee, mine")
    assert own.anyway() == []
    assert len(own.files()) == 2


def test_what_is_read_while_a_training_is_prepared_is_kept(
    tab, trainings, tmp_path, monkeypatch
) -> None:
    """Words are recognised for minutes; the reader reads on."""
    recording = written(tmp_path / "recording.wav", voiced(4.5))
    own, prepare = Reading(trainings.data, "browser"), trainings.prepare

    def prepared(*given: object) -> str:
        training: str = prepare(*given)
        own.take(recording, ENGLISH[8], "Ann Lee, mine")
        return training

    for text in ENGLISH[:8]:
        own.take(recording, text, "Ann Lee, mine")
    monkeypatch.setattr(OwnVoiceTab, "_model", lambda self: "presets/mini")
    monkeypatch.setattr(trainings, "prepare", prepared)
    monkeypatch.setattr(trainings, "start", lambda training: None)
    tab.start(None, "Ann", "english", "Ann Lee, mine", owner="browser")
    assert own.texts() == {ENGLISH[8]}


def test_a_sentence_that_is_read_again_while_it_is_taken_breaks_no_reading(
    trainings, tmp_path, monkeypatch
) -> None:
    """Before, a sound without its text stayed, and nothing was told of any sentence any more."""
    own, recording = Reading(trainings.data, "browser"), tmp_path / "recording.wav"
    written(recording, voiced(4.5))
    own.take(recording, ENGLISH[0], "Ann Lee, mine")
    own.take(recording, ENGLISH[1], "Ann Lee, mine")
    taken, write = own.files()[2:], reading.write_wave

    def late(path: Path, wave: Waveform) -> None:
        own.taken(own.files()[:2])
        write(path, wave)

    text = taken[0].with_suffix(".txt").read_text()
    (other,) = own.texts() - {text}
    monkeypatch.setattr(reading, "write_wave", late)
    own.take(recording, other, "Ann Lee, mine")
    assert "read: 1, 0.1 minutes" in ReadingForm(trainings.data).told("browser")
    assert own.files() == taken


@pytest.mark.parametrize("what", ["sentence", "training"])
def test_a_full_disk_is_told_where_recordings_come_in(
    tab, trainings, tmp_path, monkeypatch, what
) -> None:
    from tests.chaos.disks import full_after  # not on Windows

    recording = written(tmp_path / "recording.wav", voiced(4.5), ENGLISH[0])
    monkeypatch.setattr(OwnVoiceTab, "_model", lambda self: "presets/mini")
    form, told_ = ReadingForm(trainings.data), list[str]()
    for limit in (0, 1_000, 100_000):
        with full_after(limit):
            if what == "sentence":
                told_.append(form.take(str(recording), ENGLISH[0], "Ann Lee, mine", "b")[2])
            else:
                told_.append(tab.start([str(recording)], "Ann", "english", "Ann Lee, mine")[0])
    assert all("the disk is full" in each for each in told_)
    assert trainings.list() == ()


def test_trainings_of_another_user_are_shown_and_every_change_is_refused(
    tab, trainings, done
) -> None:
    """As root's of a terminal: before, each look at one was a fault, and none could begin."""
    from tests.chaos.disks import read_only  # not on Windows

    for phase in ("training", "stopped"):
        done.tell(DONE.model_copy(update={"phase": phase}))
        with read_only(trainings.data):
            assert "+1.5" in tab.see(ID, None, "")[0]
            for said in (
                tab.go_on(ID),
                tab.stop(ID),
                tab.delete(ID, ID, own_voice.SURE)[0],
                LinesForm(trainings).take_anyway(ID, "one.wav"),
            ):
                assert "may not be written. Allow it" in said
    assert trainings.list() == (ID,)
    with done.lock(), read_only(trainings.data):
        assert trainings._running(ID)


def test_a_training_that_goes_while_it_is_looked_at_is_told_as_gone(
    tab, trainings, done, monkeypatch
) -> None:
    status = trainings.status

    def late(training: str) -> Status:
        found: Status = status(training)
        shutil.rmtree(done.path)
        return found

    monkeypatch.setattr(trainings, "status", late)
    assert "This training was deleted" in tab.told(ID)


def test_the_epoch_that_is_heard_stays_selected_while_others_come(tab, done) -> None:
    assert tab.sounds(ID)["value"] is None  # to choose it plays it
    assert "value" not in tab.sounds(ID, "0", ID)
    assert "value" not in tab.sounds(ID, None, ID)  # somebody may choose one now
    assert tab.sounds(ID, "7", ID)["value"] is None
    assert tab.sounds(ID, "0", "another")["value"] is None
