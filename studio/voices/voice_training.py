"""Trainings of voices: each a folder of the data folder, learned in a process of its own.

Starting, stopping, keeping and deleting are here; what is learned is `training/voice`'s. A training
whose process is gone is started again where it ended. Knows no pages and no torch.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final

from engine import Capabilities, InvalidSetting, Library, SavedVoice, UnknownVoice
from studio.layout import SEARCHED
from studio.voices.kept_models import FOLDER, ID, KeptModel, keep_model, kept_model, kept_models
from training.voice.job import ENDED, JobFolder, Spoken, Status, take_lock
from training.voice.prepare import Wish, make_job, mend, mendable, take_anyway
from training.voice.segments import Recognise

PROGRAM: Final = JobFolder.__module__.rpartition(".")[0]  # the package that trains
ENDING: Final = 20.0  # seconds that a process may need for its end
LEAST_FREE: Final = 1 << 20  # bytes; with less of the disk a training ends
ANOTHER: Final = "Another voice is being trained. Wait until it is done, or stop it."
ALREADY: Final = "This voice is being trained already, by another program."
NONE_YET: Final = "This training has no voice yet."
WAITING: Final = "It has not begun. Go on begins it, once no other voice is being trained."
BEGINS: Final = "It begins …"
STOPPING: Final = "It stops at its next step …"
INTERRUPTED: Final = "It was interrupted. Start it again: it goes on from the last epoch."
FULL: Final = (
    "The disk is full. Make room and start it again: what was learned until the last epoch is kept."
)
LARGEST_VOICE: Final = 1 << 20  # bytes, as of any voice file


@dataclass
class VoiceTraining:
    """The trainings of one data folder; one at a time learns."""

    data: Path
    transcriber: str = ""
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def prepare(
        self,
        wish: Wish,
        recordings: Sequence[Path],
        recognise: Recognise | None = None,
        anyway: Collection[str] = (),
    ) -> str:
        """Check and cut recordings into a new training. Returns its id. `anyway`: the names of
        those that are taken whatever a check says of their sound."""
        training = secrets.token_hex(6)
        folder = JobFolder(self.data / FOLDER / training)
        try:
            make_job(folder.path, wish, recordings, recognise, anyway)
        except BaseException:
            if folder.path.exists():
                folder.delete()
            raise
        return training

    def start(self, training: str) -> None:
        """Begin, or go on. Raises InvalidSetting while one learns, also by another program."""
        folder = self.folder(training)
        if folder.status().phase in ENDED:  # its process may have said so, and not quite ended
            self.wait(training, ENDING)
        with self._lock, ExitStack() as held:
            if self._alive(training):
                return
            turn = take_lock(self.data / FOLDER / "lock")  # of all programs one may start
            if turn is None or any(self._running(other) for other in self.list()):
                raise InvalidSetting(ALREADY if folder.locked else ANOTHER)
            held.enter_context(turn)
            lock = held.enter_context(folder.lock())
            folder.go_on()
            folder.tell(folder.status().saying(BEGINS, phase="preparing"))
            command = [sys.executable, "-m", PROGRAM, str(folder.path.resolve())]
            command += ["--parent", str(os.getpid())]
            if self.transcriber:
                command += ["--transcriber", self.transcriber]
            with (folder.path / "log.txt").open("ab") as log:
                self._processes[training] = subprocess.Popen(
                    command,
                    cwd=SEARCHED,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[turn.fileno(), lock.fileno()] if os.name == "posix" else (),
                )

    def status(self, training: str) -> Status:
        """How far it is. A process that was killed leaves its training stopped."""
        folder = self.folder(training)
        status = folder.status()
        with self._lock:
            if status.phase == "waiting":
                return status.saying(WAITING)
            if status.phase in ENDED:
                return status
            if self._running(training):
                return status.saying(STOPPING) if folder.stopping else status
        fresh = folder.status()  # it may have ended between the two looks
        if fresh.phase in ENDED:
            return fresh
        full = shutil.disk_usage(self.data).free < LEAST_FREE  # then it could not tell this itself
        text = FULL if full else INTERRUPTED
        return fresh.saying(text, phase="stopped")

    def stop(self, training: str) -> None:
        self.folder(training).stop()

    def wait(self, training: str, seconds: float) -> bool:
        """Whether its process, also another program's, has ended within so many seconds."""
        process, end = self._processes.get(training), time.monotonic() + seconds
        try:
            if process is not None:
                process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        while self.folder(training).locked:
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def list(self) -> tuple[str, ...]:
        """Ids, the newest first. Folders with other names are copies that somebody has made."""
        place = self.data / FOLDER
        there = [path.parent for path in place.glob("*/job.json")] if place.is_dir() else []
        trainings = {
            path.name: changed
            for path in there
            if ID.fullmatch(path.name)
            if (changed := _changed(path))
        }
        return tuple(sorted(trainings, key=trainings.__getitem__, reverse=True))

    def keep(
        self, training: str, library: Library, there: Mapping[str, Capabilities]
    ) -> SavedVoice:
        """Save the best epoch's voice, once, under a name that no preset of `there` has. The
        recordings stay until they are deleted."""
        folder = self.folder(training)
        if self.status(training).phase != "done" or not folder.voice.is_file():
            raise InvalidSetting(NONE_YET)
        created = folder.read().created
        for saved in library.list():
            if (saved.card.kind, saved.card.created) == ("trained", created):
                return saved
        with folder.voice.open("rb") as file:
            return library.import_file(file.read(LARGEST_VOICE + 1), _speakers(there))

    def makes_model(self, training: str) -> bool:
        """Whether what it learns is a model, not a voice of the library."""
        return self.folder(training).read().way == "adapter"

    def kept_model(self, training: str) -> KeptModel | None:
        return kept_model(self.folder(training))

    def keep_model(
        self, training: str, there: Mapping[str, Capabilities], library: Library
    ) -> KeptModel:
        """Keep the best epoch's model, once. `there`: the models beside which it is loaded; its
        voice has a name that none of theirs and none of the library's has."""
        folder = self.folder(training)
        if self.status(training).phase != "done":
            raise InvalidSetting(NONE_YET)
        kept = kept_model(folder)
        if kept and not folder.merged.is_dir():
            return kept
        speakers = [*_speakers(there), *(saved.name for saved in library.list())]
        others = [path.name for path in kept_models(self.data)]
        return keep_model(folder, [*there, *others], speakers)

    def mendable(self, training: str) -> Sequence[Spoken]:
        """The lines that are left out and can be heard."""
        return mendable(self.folder(training))

    def mend(self, training: str, file: str, text: str) -> None:
        """Take such a line with these words. Raises InvalidSetting while it is being trained."""
        with self._resting(training) as folder:
            mend(folder, file, text)

    def take_anyway(self, training: str, source: str) -> None:
        """Take a recording that its sound keeps out. Raises InvalidSetting while it is trained."""
        with self._resting(training) as folder:
            take_anyway(folder, source)

    @contextmanager
    def _resting(self, training: str) -> Iterator[JobFolder]:
        """The folder of a training that no process learns in meanwhile."""
        folder = self.folder(training)
        with self._lock, ExitStack() as held:
            lock = None if self._alive(training) else take_lock(folder.path / "lock")
            if lock is None:
                raise InvalidSetting("It is being trained. Stop it first.")
            held.enter_context(lock)
            yield folder

    def delete(self, training: str) -> None:
        """Stop it and delete its recordings, samples and voice."""
        self.end(training)
        self.folder(training).delete()

    def end(self, training: str) -> None:
        """End its process. Raises InvalidSetting where another program has it: that is asked to."""
        folder = self.folder(training)
        with self._lock:
            process = self._processes.pop(training, None)
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()
        elif folder.locked:
            folder.stop()
            raise InvalidSetting(
                "It is being trained and will stop at its next step. Delete it then."
            )

    def folder(self, training: str) -> JobFolder:
        folder = JobFolder(self.data / FOLDER / training)
        if not ID.fullmatch(training) or not (folder.path / "job.json").is_file():
            raise UnknownVoice("There is no training '{name}'.", name=training[:40])
        return folder

    def _running(self, training: str) -> bool:
        """Whether it runs, possibly started by a studio that has ended since."""
        return self._alive(training) or self.folder(training).locked

    def _alive(self, training: str) -> bool:
        process = self._processes.get(training)
        return process is not None and process.poll() is None


def remove_unfinished(data: Path, seconds: float) -> None:
    """Delete recordings whose preparation was killed so many seconds ago: no list has them."""
    for path in (data / FOLDER).glob("*"):
        there = [path, path / "segments"]
        training = path.is_dir() and not path.is_symlink() and ID.fullmatch(path.name)
        if not training or (path / "job.json").exists():
            continue
        if max(map(_changed, there)) < time.time() - seconds:
            shutil.rmtree(path, ignore_errors=True)


def _changed(path: Path) -> float:
    """When a folder was changed last; 0 where it is gone meanwhile."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _speakers(there: Mapping[str, Capabilities]) -> list[str]:
    """The presets of these models."""
    return [name for each in there.values() for name in each.speakers]
