"""A training's folder: what was asked for, the data, how far it is, and what came of it.

The studio writes a job and reads its status; the process that trains does the rest. Both may end at
any time: each file appears whole, and a process that is started again goes on from the last epoch.
No torch.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, TypeAlias

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from engine import InvalidSetting, Message, Settings, explain_write_errors, write_atomic
from engine.atomic import had_within

Phase: TypeAlias = Literal[
    "waiting", "preparing", "training", "stopped", "done", "refused", "failed"
]
ENDED: tuple[Phase, ...] = ("stopped", "done", "refused", "failed")
LARGEST = 8 << 20  # bytes of a card
LOOKS = 500  # at a lock that another program has, in five seconds


Said: TypeAlias = Annotated[
    Message, PlainValidator(Message.restored), PlainSerializer(lambda message: message.stored)
]
NOTHING = Message("")


class Spoken(Settings):
    """A segment of the recordings and its words. `doubtful` says why it is left out."""

    file: str = Field(pattern=r"^([0-9]{4}\.wav)?$")  # none: of a list without files
    source: str = ""
    seconds: float = 0.0
    text: str = Field(max_length=2_000)
    doubtful: Said = NOTHING
    flaw: Said = NOTHING  # of its sound, which somebody who knows better may pass over
    mended: bool = False  # somebody heard it and gave these words
    anyway: bool = False  # somebody wanted it whatever its sound, and whoever seems to speak

    @property
    def trusted(self) -> bool:
        """Whether somebody vouches for who speaks."""
        return self.mended or self.anyway

    @property
    def takeable(self) -> bool:
        """Whether nothing but its sound keeps it out."""
        return bool(self.doubtful) and self.doubtful == self.flaw

    @property
    def reason(self) -> Message:
        """Which line is left out, and why."""
        if not self.text or (self.takeable and "name" in self.flaw.values):  # of a whole recording
            return self.doubtful
        source = " ".join(self.source.split())
        return Message(
            "{source} ({text}): {why}", source=source, text=self.text[:40], why=self.doubtful
        )


_LINES = TypeAdapter(tuple[Spoken, ...])


class Job(Settings):
    """What is to be learned, by whose leave."""

    name: str = Field(min_length=1, max_length=80)
    model: str  # the checkpoint's folder
    language: str = "auto"
    consent: str = Field(min_length=1, max_length=400)  # whose, and in what words
    way: Literal["rows", "adapter"] = "rows"
    rows: int = Field(8, ge=1, le=64)
    epochs: int = Field(8, ge=1, le=40)
    device: str = "auto"
    seed: int = 0
    lines: tuple[Spoken, ...] = ()
    created: str = ""


class Epoch(Settings):
    """What the judges say of an epoch; 0 is the clone that training began from."""

    number: int
    stopped: float  # share of the sentences that ended by themselves
    pace: float  # seconds a letter over the recordings'
    likeness: float  # cosine by the model's speaker encoder
    pitch: float  # semitones above the recordings
    spectrum: float = 0.0  # dB between its long-term spectrum and the recordings'
    hold: float = 0.0  # how far codebook 0 has moved on general texts, nats
    loss: float = 0.0  # of the acoustic codebooks, on lines that were held out
    words: float | None = None  # share of wrong words, where a recogniser is there
    refused: Said = NOTHING  # why it cannot be the best

    @property
    def distance(self) -> float:
        """From the person, as heard: a semitone of pitch counts as half a decibel of timbre."""
        return self.spectrum + abs(self.pitch) / 2


class Status(Settings):
    """How far it is, in words and numbers."""

    phase: Phase = "waiting"
    text: Said = NOTHING  # a sentence for people
    epoch: int = 0
    epochs: int = 0
    seconds_left: float | None = None
    history: tuple[Epoch, ...] = ()
    best: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_before(cls, values: Any) -> Any:
        """Until 2026-11-29 the key and the values of its text lay beside it."""
        if isinstance(values, dict) and isinstance(values.get("values"), dict):
            parts = {"key": values.get("key") or values.get("text", ""), "values": values["values"]}
            rest = {name: each for name, each in values.items() if name not in parts}
            return {**rest, "text": parts}
        return values

    def saying(self, text: str, **changes: object) -> Status:
        """The same with another sentence."""
        return self.model_copy(update={"text": Message.restored(text), **changes})


@dataclass(frozen=True)
class JobFolder:
    """The folder that holds all files of a training. Deleting it deletes the recordings too."""

    path: Path

    @property
    def segments(self) -> Path:
        return self.path / "segments"

    @property
    def dataset(self) -> Path:
        return self.path / "dataset.safetensors"

    @property
    def state(self) -> Path:
        return self.path / "state.safetensors"

    @property
    def samples(self) -> Path:
        return self.path / "samples"

    @property
    def voice(self) -> Path:
        """The best epoch's voice, as the library imports it."""
        return self.path / "best.voice.safetensors"

    @property
    def left_out(self) -> tuple[Spoken, ...]:
        """The lines that nothing is learned from."""
        with suppress(OSError, ValidationError):
            return _LINES.validate_json(_bytes(self.path / "left-out.json"))
        with suppress(OSError, ValueError):  # until 2026-11-28 it was a list of reasons
            told = _bytes(self.path / "left-out.txt").decode().splitlines()
            return tuple(Spoken(file="", text="", doubtful=Message(each)) for each in told)
        return ()

    @property
    def adapter(self) -> Path:
        return self.path / "adapter.safetensors"

    @property
    def merged(self) -> Path:
        """The model with the best epoch's adapter, in the published layout."""
        return self.path / "model"

    @property
    def kept(self) -> Path:
        """Where that model goes once it is kept, under its name."""
        return self.path / "kept"

    def write(self, job: Job) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomic(self.path / "job.json", job.model_dump_json(indent=1).encode())

    def read(self) -> Job:
        """Raises InvalidSetting where there is no job that can be read."""
        try:
            return Job.model_validate_json(_bytes(self.path / "job.json"))
        except (OSError, ValidationError) as error:
            raise InvalidSetting("There is no training in {path}.", path=self.path) from error

    def leave_out(self, lines: Iterable[Spoken]) -> None:
        """Say which lines are doubtful, and why."""
        doubtful = tuple(each for each in lines if each.doubtful)
        write_atomic(self.path / "left-out.json", _LINES.dump_json(doubtful, indent=1))

    def tell(self, status: Status) -> None:
        write_atomic(self.path / "status.json", status.model_dump_json().encode())

    def status(self) -> Status:
        try:
            return Status.model_validate_json(_bytes(self.path / "status.json"))
        except (OSError, ValidationError):
            return Status()

    def stop(self) -> None:
        """Ask the process to save its state and end."""
        write_atomic(self.path / "stop", b"")

    def go_on(self) -> None:
        (self.path / "stop").unlink(missing_ok=True)

    @property
    def stopping(self) -> bool:
        return (self.path / "stop").exists()

    def lock(self) -> BinaryIO:
        """Hold the folder for the process that learns there; waits for those that only look.

        Raises InvalidSetting where a program does not let go of it, as one that was stopped.
        """
        if file := had_within(LOOKS, partial(take_lock, self.path / "lock")):
            return file
        raise InvalidSetting(
            "Another program holds {path}. End it, then try again.", path=self.path
        )

    @property
    def locked(self) -> bool:
        """Whether a process learns here now. Who looks writes nothing: it may be another user's."""
        with suppress(OSError):  # nobody has learned here, or it was deleted meanwhile
            if looking := take_lock(self.path / "lock", shared=True):
                looking.close()
            return looking is None
        return False

    def delete(self) -> None:
        """Recordings, voice and all; the job first: no list has it from here on."""
        with explain_write_errors(self.path):
            (self.path / "job.json").unlink(missing_ok=True)
            shutil.rmtree(self.path)


def take_lock(path: Path, shared: bool = False) -> BinaryIO | None:
    """A file that is held until all processes that have it open have ended; None where others do.

    `shared`: beside others that only look; raises OSError where there is none. Without locks
    (Windows, some file systems) it is always had. Raises NotSaved where it may not be written.
    """
    if shared:
        file: BinaryIO = path.open("rb")
    else:
        with explain_write_errors(path):
            file = path.open("ab")
    with suppress(ImportError, OSError):
        import fcntl

        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
    return file


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LARGEST)
