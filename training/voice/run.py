"""Runs one training in its folder, from the recordings' codes to the best epoch's voice.

    encode once ─▶ look for other people and other words ─▶ the clone speaks and is judged
        ─▶ an epoch ─▶ its state, its sounds, the judges ─▶ … ─▶ the best epoch as a voice file

Started in a process of its own, at the lowest priority and, on CPUs, with one core less than there
are; what it says is in the status.
"""

from __future__ import annotations

import os
import shutil
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from engine import (
    Clone,
    Engine,
    InvalidSetting,
    Message,
    Preset,
    TimbreError,
    Waveform,
    open_engine,
    write_atomic,
)
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.model.talker import Talker
from engine.voices.voice_format import VoiceCard, pack
from engine.worker.device import pick_device, pick_dtype
from engine.worker.loading.model_loader import load_talker
from training.voice import judge
from training.voice.adapter import Adapter
from training.voice.dataset import (
    Dataset,
    encode,
    is_of_another,
    other_people,
    other_words,
    read_segment,
)
from training.voice.export import export_merged
from training.voice.job import NOTHING, Epoch, Job, JobFolder, Status
from training.voice.judge import Person, Recognise
from training.voice.recordings import write_wave
from training.voice.rows import LearnedRows, padding_of
from training.voice.sequences import Line
from training.voice.texts import general_texts, judged_texts
from training.voice.trainer import Learner, VoiceTrainer, exchanged

JUDGED = 16  # sentences an epoch
GENERAL = 24  # texts that the words are held by
SAMPLES = 6  # sounds kept of an epoch, for the blind comparison
LEAST_LINES = 8
NICENESS = 19
VOICE = "own"  # the preset that an adapted model has


class Stopped(Exception):
    """The user asked for it; the state is on disk."""


def run(path: Path, recognise: Recognise | None = None) -> Status:
    """Train to the end, or until it is stopped. What goes wrong is told by the status."""
    folder = JobFolder(path)
    _run(folder, recognise)
    return folder.status()


def _run(folder: JobFolder, recognise: Recognise | None) -> None:
    training = None
    try:
        training = Training(folder, folder.read(), recognise)
        training.run()
    except Stopped:
        _end(folder, "stopped", "Stopped. It goes on from the last epoch when you start it again.")
    except InvalidSetting as error:  # of the recordings: to go on would say it again
        _end(folder, "refused", error.message)
    except TimbreError as error:
        _end(folder, "failed", error.message)
    except (OSError, torch.OutOfMemoryError) as error:
        ended = Message("It ended: {error}. It goes on from the last epoch.", error=error)
        _end(folder, "failed", ended)
    except Exception as error:  # a damaged file, or a fault of ours: to begin again helps nobody
        traceback.print_exc()
        fault = Message(
            "It ended by a fault ({fault}); log.txt in {folder} has more.",
            fault=type(error).__name__,
            folder=folder.path,
        )
        _end(folder, "failed", fault)
    finally:
        if training is not None:
            training.close()


def _end(folder: JobFolder, phase: str, text: str) -> None:
    status = folder.status()
    folder.tell(status.saying(text, phase=phase, seconds_left=None))


def yield_to_others(device: torch.device) -> None:
    """Live listeners go first."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    if device.type == "cpu":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        torch.set_num_threads(max(1, cores - 1))


class Training:
    """One run of a job."""

    def __init__(self, folder: JobFolder, job: Job, recognise: Recognise | None) -> None:
        self.folder, self.job = folder, job
        self._recognise = recognise
        self._device = pick_device(None if job.device == "auto" else job.device)
        yield_to_others(self._device)
        self._checkpoint = LocalCheckpoint(Path(job.model))
        self._digest = self._checkpoint.capabilities.digest
        self._engine: Engine | None = None
        self._trial = folder.path / "trial"  # an adapted model that is judged
        self._judging = 0.0  # seconds that the last epoch was judged
        self._status = folder.status().model_copy(update={"epochs": job.epochs})
        if not self._checkpoint.capabilities.clone:
            raise InvalidSetting(
                "{name} cannot clone, so it cannot begin a voice from recordings. Use a Base "
                "model.",
                name=self._checkpoint.capabilities.name,
            )

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
        shutil.rmtree(self._trial, ignore_errors=True)

    def run(self) -> None:
        self._check_model()
        self._tell("preparing", "Listening to the recordings …")
        talker = load_talker(Path(self.job.model), self._device, pick_dtype(self._device))
        dataset = self._dataset(talker)
        learned, unseen = dataset.split()
        person = self._person(dataset)
        learner = self._learner(talker, dataset).to(self._device)
        trainer = VoiceTrainer(
            self._checkpoint, talker, learner, self.job.epochs, self.job.language, self.job.seed
        )
        self._resume(trainer)
        texts = [each.text for each in dataset.spoken]
        clone = Clone(dataset.vector)
        general = general_texts(self.job.language, texts, GENERAL)
        self._tell("preparing", "Hearing the clone that it begins from …")
        began = time.monotonic()
        lines = self._general_lines(clone, general)
        self._judging = (time.monotonic() - began) * JUDGED / GENERAL  # until one was judged
        judged = self._judged_texts(texts, unseen)
        if not self._status.history:
            began = time.monotonic()
            self._history((self._judge(0, clone, judged, person),))
            self._judging = time.monotonic() - began
        trainer.prepare(learned.lines(self._checkpoint), unseen.lines(self._checkpoint), lines)
        with learner.attached(talker):
            self._train(trainer, judged, person)
        self._finish(trainer)

    def _check_model(self) -> None:
        """What another model encoded is encoded again. Raises CheckpointError where it has learned
        from that."""
        if not is_of_another(self.folder.dataset, self._digest):
            return
        if self.folder.state.exists():
            raise exchanged()
        self.folder.dataset.unlink()
        self._history(())

    def _resume(self, trainer: VoiceTrainer) -> None:
        """Go on after the last epoch whose state is there; one that was judged without is again."""
        if self.folder.state.exists():
            trainer.resume(self.folder.state, self._digest)
        history = self._status.history
        self._history(tuple(each for each in history if each.number <= trainer.epoch))

    def _history(self, history: tuple[Epoch, ...]) -> Epoch | None:
        """Keep what the judges said; the best of it."""
        best = judge.best_of(history) if history else None
        update = {"history": history, "best": best.number if best else None}
        self._status = self._status.model_copy(update=update)
        return best

    def _learner(self, talker: Talker, dataset: Dataset) -> Learner:
        if self.job.way == "adapter":
            return Adapter(talker, dataset.vector, seed=self.job.seed)
        padding = padding_of(talker, self._checkpoint)
        return LearnedRows(dataset.vector, self.job.rows, padding, self.job.seed)

    def _dataset(self, talker: Talker) -> Dataset:
        """What is learned from, without the lines that are somebody's or something else's."""
        model = Path(self.job.model)
        encoded = encode(self.folder, model, self.job.lines, self._device, self._digest)
        strangers = other_people(encoded)
        wrong = other_words(encoded, self._checkpoint, talker, self.job.language)
        dataset = encoded.without(strangers | wrong)
        if len(dataset.spoken) < LEAST_LINES:
            raise InvalidSetting(
                "Only {count} lines can be learned from; at least {least} are needed. Record more.",
                count=len(dataset.spoken),
                least=LEAST_LINES,
            )
        self._left_out(encoded, strangers, wrong)
        return dataset

    def _left_out(self, encoded: Dataset, strangers: set[int], wrong: set[int]) -> None:
        other, doubt = Message("sounds like somebody else"), Message("are these its words?")
        reasons = {encoded.spoken[n].file: other for n in strangers}
        reasons |= {encoded.spoken[n].file: doubt for n in wrong}
        self.folder.leave_out(
            each.model_copy(update={"doubtful": each.doubtful or reasons.get(each.file, NOTHING)})
            for each in self.job.lines
        )

    def _person(self, dataset: Dataset) -> Person:
        waves = [read_segment(self.folder.segments / each.file) for each in dataset.spoken]
        pitches = [found for wave in waves[:40] if (found := judge.pitch(wave)) > 0]
        spoken = zip(dataset.spoken, waves, strict=True)
        pace = judge.pace((each.text, len(wave)) for each, wave in spoken)
        pitch = float(np.median(pitches)) if pitches else 0.0
        return Person(dataset.vector, pitch, pace, judge.spectrum_of(waves))

    def _judged_texts(self, recorded: Sequence[str], unseen: Dataset) -> list[str]:
        """The person's own that were held out, and others: nothing is learned from either."""
        held_out = [each.text for each in unseen.spoken][: JUDGED // 2]
        return [*held_out, *judged_texts(self.job.language, recorded, JUDGED - len(held_out))]

    def _general_lines(self, clone: Clone, texts: Sequence[str]) -> list[Line]:
        """What the untouched model says of general texts."""
        takes = judge.speak(self._speaker(), clone, texts, self.job.language)
        spoken = [(take.text, take.codes) for take in takes if take.finished]
        return [
            Line(self._checkpoint.text_ids(text), codes)
            for text, codes in spoken
            if codes is not None
        ]

    def _judge_learned(
        self, number: int, learner: Learner, texts: Sequence[str], person: Person
    ) -> Epoch:
        """An adapter is heard as what it is exported as."""
        if isinstance(learner, LearnedRows):
            voice = learner.voice(self._checkpoint.capabilities.name, self._digest)
            return self._judge(number, voice, texts, person)
        shutil.rmtree(self._trial, ignore_errors=True)
        export_merged(Path(self.job.model), learner, VOICE, self._trial)
        with open_engine([self._trial], device=self.job.device) as engine:
            return self._judge(number, Preset(VOICE), texts, person, engine)

    def _judge(
        self,
        number: int,
        voice: Clone | Preset,
        texts: Sequence[str],
        person: Person,
        speaker: Engine | None = None,
    ) -> Epoch:
        engine = self._speaker()
        takes = judge.speak(speaker or engine, voice, texts, self.job.language)
        self.folder.samples.mkdir(exist_ok=True)
        for index, take in enumerate(takes[-SAMPLES:]):
            write_wave(self.folder.samples / f"{number}-{index}.wav", take.wave)

        def embed(wave: Waveform) -> Waveform:
            return engine.clone(wave).vector

        return judge.measure(number, takes, person, embed, self._recognise)

    def _train(self, trainer: VoiceTrainer, texts: Sequence[str], person: Person) -> None:
        while trainer.epoch < trainer.epochs:
            number, began = trainer.epoch + 1, time.monotonic()
            for share in trainer.run_epoch(lambda: self.folder.stopping):
                self._progress(number, share, time.monotonic() - began)
            if trainer.epoch < number:
                raise Stopped
            began = time.monotonic()
            measured = trainer.measure()
            epoch = self._judge_learned(number, trainer.learner, texts, person).model_copy(
                update={"hold": measured.hold, "loss": measured.rest}
            )
            self._judging = time.monotonic() - began
            history = self._status.history
            epoch = epoch.model_copy(update={"refused": judge.refusal(epoch, history[0])})
            if self._history((*history, epoch)) is epoch:
                self._keep(trainer.learner)
            self.folder.tell(self._status)  # first: a state whose epoch nobody judged would be none
            trainer.save(self.folder.state, self._digest)
            self._look()

    def _keep(self, learner: Learner) -> None:
        job = self.job
        if isinstance(learner, Adapter):
            learner.save(self.folder.adapter, self._digest)
            shutil.rmtree(self.folder.merged, ignore_errors=True)
            self._trial.rename(self.folder.merged)
            return
        voice = learner.voice(self._checkpoint.capabilities.name, self._digest)
        card = VoiceCard(
            name=job.name,
            kind="trained",
            consent=True,
            made_from=job.consent,
            created=job.created,
            model=voice.model,
            digest=voice.digest,
            width=len(voice.vector),
        )
        write_atomic(self.folder.voice, pack(card, voice))

    def _finish(self, trainer: VoiceTrainer) -> None:
        best = self._status.best
        if best is None:
            reasons = {each.refused for each in self._status.history[1:] if each.refused}
            none = Message("no epoch is nearer to the person")
            why = Message.listed(sorted(reasons), "; ") if reasons else none
            refused = "The clone is better than what was learned: {why}. Use it, or record more."
            self._tell("refused", Message(refused, why=why))
            return
        clone, *epochs = self._status.history
        chosen = next(each for each in epochs if each.number == best)
        self._tell(
            "done",
            Message(
                "Epoch {best} of {all} is the best: {pitch} semitones and {spectrum} dB from the "
                "recordings, the clone {clone_pitch} and {clone_spectrum}.",
                best=best,
                all=trainer.epochs,
                pitch=f"{chosen.pitch:+.1f}",
                spectrum=f"{chosen.spectrum:.1f}",
                clone_pitch=f"{clone.pitch:+.1f}",
                clone_spectrum=f"{clone.spectrum:.1f}",
            ),
        )

    def _progress(self, number: int, share: float, spent: float) -> None:
        after = self.job.epochs - number
        left = spent / share * (1 - share + after) + self._judging * (1 + after)
        minutes, told = round(left / 60), {"number": number, "all": self.job.epochs}
        text = Message("Epoch {number} of {all}, about 1 minute left", **told)
        if minutes > 1:
            text = Message(
                "Epoch {number} of {all}, about {minutes} minutes left", **told, minutes=minutes
            )
        self._status = self._status.model_copy(update={"epoch": number, "seconds_left": left})
        self._tell("training", text)

    def _tell(self, phase: str, text: str) -> None:
        if phase != "done":
            self._look()
        self._status = self._status.saying(text, phase=phase)
        self.folder.tell(self._status)

    def _look(self) -> None:
        """Raises Stopped where it is to stop."""
        if self.folder.stopping:
            raise Stopped

    def _speaker(self) -> Engine:
        """The engine that speaks what is judged."""
        if self._engine is None:
            self._engine = open_engine([self.job.model], device=self.job.device)
        return self._engine
