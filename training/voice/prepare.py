"""Makes a job's folder of somebody's recordings: checked, cut, with words and consent. No torch."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal, TypeAlias

import soundfile
from pydantic import ValidationError

from engine import InvalidSetting, InvalidText, RequestError, explain_write_errors
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.checkpoints.hub import resolve
from engine.messages import misfit
from engine.voices.voice_format import VoiceCard
from training.voice.job import NOTHING, Job, JobFolder, Spoken, Status
from training.voice.recordings import write_wave
from training.voice.segments import (
    LONGEST,
    SHORTEST,
    Recognise,
    Segment,
    check_enough,
    judged,
    segments_of,
)

MOST_LINES = 4_000
_WORDS = re.compile(r"(?=\w)[\u2e80-\U0003ffff]|\w+")  # Chinese and Japanese part none by spaces
NEED_CONSENT = (
    "Say whose voice this is and that they agree, for example: Ann Lee, it is my own voice."
)

Way: TypeAlias = Literal["rows", "adapter"]


@dataclass(frozen=True)
class Wish:
    """What somebody wants learned."""

    name: str
    model: str  # a folder or a hub id
    consent: str
    language: str = "auto"
    rows: int = 8
    epochs: int = 8
    device: str = "auto"
    way: Way = "rows"


def make_job(
    path: Path,
    wish: Wish,
    recordings: Sequence[Path],
    recognise: Recognise | None = None,
    anyway: Collection[str] = (),
) -> JobFolder:
    """Write the job's folder; the job itself comes last, so a folder without one is no job.
    `anyway`: the names of recordings that are learned from whatever a check says of their sound.

    Raises RequestError, InvalidAudio or InvalidSetting for what no voice can be learned from.
    """
    check_consent(wish.consent)
    folder, job = JobFolder(path), _job(wish)
    if (path / "job.json").exists():
        raise InvalidSetting("There is a training called {name} already.", name=wish.name)
    model = resolve(wish.model)
    LocalCheckpoint(model).language_id(wish.language, None)  # raises UnknownLanguage
    job = job.model_copy(update={"model": str(model)})
    with explain_write_errors(folder.segments):
        folder.segments.mkdir(parents=True, exist_ok=True)
    lines: list[Spoken] = []
    for segment in segments_of(recordings, recognise, anyway):  # hours of them: written one by one
        if len(lines) == MOST_LINES:
            raise InvalidSetting("There are more than {most:,} lines.", most=MOST_LINES)
        name = f"{len(lines):04d}.wav"
        if SHORTEST <= segment.seconds <= LONGEST:  # nothing is learned from longer ones
            write_wave(folder.segments / name, segment.waveform)
        lines.append(
            Spoken(
                file=name,
                source=segment.source,
                seconds=round(segment.seconds, 2),
                text=segment.text[:2_000],
                doubtful=segment.doubtful,
                flaw=segment.flaw,
                anyway=segment.source in anyway,
            )
        )
    check_enough(lines)
    folder.leave_out(lines)
    folder.write(job.model_copy(update={"lines": tuple(lines), "created": _now()}))
    return folder


def check_consent(said: str) -> None:
    """Whose voice it is, and that it may be learned: a sentence, not a tick."""
    if not has_consent(said):
        raise RequestError(NEED_CONSENT)


def has_consent(said: str) -> bool:
    return len(_WORDS.findall(said)) >= 2


def written_out(typed: str) -> str:
    """As a file can hold it: a browser may send half of an emoji."""
    return typed.encode(errors="replace").decode()


def mendable(folder: JobFolder) -> list[Spoken]:
    """The lines that are left out and whose recording is there to be heard."""
    return [each for each in folder.left_out if (folder.segments / each.file).is_file()]


def mend(folder: JobFolder, file: str, text: str) -> None:
    """Learn from a line that was left out, with these words; training begins again for it.

    Raises InvalidText where these cannot be its words either.
    """
    job, text = folder.read(), written_out(" ".join(text.split())[:2_000])
    if file not in {each.file for each in mendable(folder)}:
        raise InvalidText("Choose a line that is left out.")
    wave = soundfile.read(folder.segments / file, dtype="float32")[0]
    if reason := judged(Segment(file, wave, text)).doubtful:
        raise InvalidText("It is still left out: {reason}.", reason=reason)
    taken = {"text": text, "doubtful": NOTHING, "mended": True}
    _take(folder, (each.model_copy(update=taken) for each in job.lines if each.file == file))


def take_anyway(folder: JobFolder, source: str) -> None:
    """Learn from all lines of a recording that only its sound keeps out; training begins again.

    Raises InvalidText where there are none.
    """
    kept_out = [each for each in folder.left_out if each.source == source and each.takeable]
    if not kept_out:
        raise InvalidText("Nothing of {name} is left out for its sound.", name=source)
    _take(
        folder, (each.model_copy(update={"doubtful": NOTHING, "anyway": True}) for each in kept_out)
    )


def _take(folder: JobFolder, lines: Iterable[Spoken]) -> None:
    """Put these lines in the place of theirs, and forget what was learned without them."""
    taken, job = {each.file: each for each in lines}, folder.read()
    whole = tuple(taken.get(each.file, each) for each in job.lines)
    folder.dataset.unlink(missing_ok=True)  # first: it has the codes of the lines before
    folder.state.unlink(missing_ok=True)
    folder.write(job.model_copy(update={"lines": whole, "created": _now()}))  # another voice
    shutil.rmtree(folder.samples, ignore_errors=True)
    folder.leave_out(each for each in folder.left_out if each.file not in taken)
    folder.tell(Status())


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _job(wish: Wish) -> Job:
    """Without lines; what fits no job, or no voice in the end, is refused before all work."""
    try:
        VoiceCard(name=wish.name, kind="trained", made_from=wish.consent)
        return Job(**vars(wish))
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidSetting(
            "{field}: {problem}.", field=first["loc"][0], problem=misfit(first)
        ) from error
