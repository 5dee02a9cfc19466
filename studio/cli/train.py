"""`train`: a voice of one's own from recordings, on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from engine import (
    Capabilities,
    InvalidSetting,
    Library,
    TimbreError,
    UnknownVoice,
    forget_packed,
)
from studio.cli.console import Reporter
from studio.layout import COMMAND
from studio.voices.voice_training import VoiceTraining
from training.voice.job import Status
from training.voice.prepare import Wish
from training.voice.recordings import Flawed

LOOK = 0.5  # seconds between two looks at the status
ANYWAY = (
    "To learn from a recording that only its sound keeps out: {}. Noise, echo, music or another "
    "person in it become a part of the voice."
)


class TrainingFailed(TimbreError):
    """The training has ended without a voice; its message says why."""


@dataclass(frozen=True)
class TrainOptions:
    recordings: Sequence[Path]
    wish: Wish
    transcriber: str = ""
    resume: str = ""  # the id of a training that was stopped
    anyway: Sequence[str] = ()  # names of recordings that are taken in spite of their sound


def list_trainings(data: Path) -> Iterator[str]:
    """A line for each training, the newest first."""
    trainings = VoiceTraining(data)
    for training in trainings.list():
        with suppress(UnknownVoice):  # it was deleted meanwhile
            status, name = trainings.status(training), "?"
            with suppress(InvalidSetting):  # its card is damaged
                name = trainings.folder(training).read().name
            yield f"{training}  {name}  {status.phase}  {status.text}".rstrip()


def delete_training(data: Path, training: str, cache: Path) -> str:
    """Delete a training with its recordings; a voice that was saved stays, unless it is a model.
    Returns what to say."""
    trainings = VoiceTraining(data)
    voice, kept = "A saved voice stays.", trainings.kept_model(training)
    if kept:
        voice = "Its voice too. A server that has loaded it speaks with it until it is stopped."
        forget_packed(kept.folder, cache)
    trainings.delete(training)
    return f"Training {training} and its recordings are deleted. {voice}"


def train(
    options: TrainOptions,
    data: Path,
    library: Library,
    there: Mapping[str, Capabilities],
    tell: Reporter,
) -> str:
    """Train with progress, and save the voice. Returns its name as an option of `say`. `there`: the
    models that it is spoken beside."""
    trainings = VoiceTraining(data, options.transcriber)
    training = options.resume or _prepared(trainings, options, tell)
    for source in options.anyway if options.resume else ():
        trainings.take_anyway(training, source)
    try:
        trainings.start(training)
    except InvalidSetting as error:
        raise TrainingFailed(
            "{text} This one waits: {command} train --resume {training}",
            text=error.message,
            command=COMMAND,
            training=training,
        ) from error
    try:
        status = _followed(trainings, training, tell)
    except KeyboardInterrupt:
        trainings.stop(training)
        tell.progress("Stopping …")
        while not trainings.wait(training, 60):
            tell.progress("waiting for the step to end …")
        raise KeyboardInterrupt(f"Stopped. Go on: {COMMAND} train --resume {training}") from None
    if status.phase == "refused":
        raise TrainingFailed(status.text)
    if status.phase != "done":
        raise TrainingFailed(
            "{text} ({command} train --resume {training} goes on.)",
            text=status.text,
            command=COMMAND,
            training=training,
        )
    tell.line(status.text)
    if trainings.makes_model(training):
        return f"--voice {quote(trainings.keep_model(training, there, library).speaker)}"
    return f"--voice {quote(trainings.keep(training, library, there).name)}"


def _prepared(trainings: VoiceTraining, options: TrainOptions, tell: Reporter) -> str:
    if not options.recordings:
        raise InvalidSetting("Name recordings, or a folder of them.")
    tell.line("Reading the recordings …")
    recognise = _recogniser(options.transcriber)
    try:
        training = trainings.prepare(options.wish, options.recordings, recognise, options.anyway)
    except Flawed as error:
        raise Flawed(
            "{flaw} {how}", flaw=error.message, how=ANYWAY.format("--anyway NAME")
        ) from error
    lines = trainings.folder(training).read().lines
    used = [line for line in lines if not line.doubtful]
    tell.line(
        f"{sum(line.seconds for line in used) / 60:.1f} minutes in {len(used)} lines; "
        f"{len(lines) - len(used)} set aside."
    )
    left_out = trainings.folder(training).left_out
    for reason in dict.fromkeys(line.reason for line in left_out):
        tell.line(f"  {reason}")
    if flawed := sorted({line.source for line in left_out if line.takeable}):
        named = " ".join(f"--anyway {quote(name)}" for name in flawed)
        tell.line(f"  {ANYWAY.format(named)}")
    return training


def _recogniser(model: str) -> Callable[..., str] | None:
    if not model:
        return None
    from studio.voices.transcription import open_transcriber

    return open_transcriber(model)


def _followed(trainings: VoiceTraining, training: str, tell: Reporter) -> Status:
    """Show progress until the process ends."""
    epochs, left_out = -1, trainings.folder(training).left_out
    while not trainings.wait(training, LOOK):
        status = trainings.status(training)
        tell.progress(status.text)
        if len(status.history) != epochs:
            epochs = len(status.history)
            for line in trainings.folder(training).left_out:
                if line not in left_out:  # what the model hears only
                    tell.line(f"  Left out: {line.reason}")
            left_out = trainings.folder(training).left_out
            if status.history:
                tell.line(_judged(status))
    return trainings.status(training)


def _judged(status: Status) -> str:
    last = status.history[-1]
    what = f"epoch {last.number}" if last.number else "the clone"
    words = "" if last.words is None else f", {last.words:.0%} of its words misheard"
    refused = f" (not this one: {last.refused})" if last.refused else ""
    return (
        f"{what}: {last.pitch:+.1f} semitones and {last.spectrum:.1f} dB from the recordings, "
        f"likeness {last.likeness:.3f}, "
        f"{last.stopped:.0%} stop by themselves{words}{refused}"
    )
