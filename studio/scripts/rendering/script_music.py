"""The music of a store's scripts: added from a file, changed, removed; each can be undone.

Sounds lie beside those of the lines, named by what is in them, so a copy, a project file and the
deletion of what is unused take them along. Files are read by a `MusicReader`. Knows no page.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, Final, Protocol

import numpy as np
from pydantic import ValidationError

from engine import SAMPLE_RATE, InvalidSetting, InvalidText, Message, Pcm
from studio.scripts import LineAudio, Project
from studio.scripts.export.limiter import Limiter
from studio.scripts.export.loudness import LoudnessMeter, as_pcm
from studio.scripts.music.cue import LONGEST_NAME, MOST_CUES, Cue, check_lines, lines_under
from studio.scripts.open_script import OpenScript
from studio.scripts.store import ScriptStore
from studio.scripts.timeline import build_timeline, silence_of, sound_of
from studio.scripts.titles import plain

PREVIEW: Final = 10.0  # seconds
KEY: Final = "music-"  # what keys of music begin with
_BLOCK = SAMPLE_RATE


class MusicReader(Protocol):
    """Reads an uploaded file (studio/imports). Raises RequestError."""

    def music(self, path: Path) -> Pcm: ...


class ScriptMusic:
    """Thread-safe as the store is."""

    def __init__(self, store: ScriptStore, reader: MusicReader) -> None:
        self._store, self._reader = store, reader

    def add(self, number: str, path: Path, values: Mapping[str, Any]) -> OpenScript:
        """Add a cue with a file's sound; `values`: fields of a cue. Raises RequestError."""
        opened = self._store.open(number)
        if opened.sounds is None or not opened.script.lines:
            raise InvalidText("Write a text first: music plays under its lines.")
        if len(opened.project.cues) >= MOST_CUES:
            raise InvalidText("A script has at most {most} pieces of music.", most=MOST_CUES)
        found = self.cue(path, opened.sounds)

        def added(project: Project) -> Project:
            fresh = max((cue.id + 1 for cue in project.cues), default=0)
            cue = _made({**dict(found), **values, "id": fresh})
            if len(project.cues) >= MOST_CUES:
                raise InvalidText("A script has at most {most} pieces of music.", most=MOST_CUES)
            return project.having(cues=(*project.cues, check_lines(cue, project.script)))

        return self._store.change(number, added, Message("the music “{name}”", name=found.name))

    def cue(self, path: Path, sounds: LineAudio) -> Cue:
        """A file's sound, kept among others, under a whole script. Raises RequestError."""
        name = plain(PurePath(path).name)[:LONGEST_NAME]
        pcm = self._reader.music(path)
        key = f"{KEY}{hashlib.sha256(pcm.tobytes()).hexdigest()[:32]}"
        loudness = loudness_of(pcm)
        if key not in sounds:
            sounds.keep(key, pcm)
        return Cue(id=0, sound=key, name=name, loudness=loudness)

    def change(self, number: str, cue: int, values: Mapping[str, Any]) -> OpenScript:
        """Change fields of a cue. Raises RequestError."""

        def changed(cue: Cue, project: Project) -> tuple[Cue, ...]:
            kept = {"id": cue.id, "sound": cue.sound, "name": cue.name, "loudness": cue.loudness}
            return (check_lines(_made({**dict(cue), **values, **kept}), project.script),)

        return self._replaced(number, cue, changed)

    def remove(self, number: str, cue: int) -> OpenScript:
        return self._replaced(number, cue, lambda _, project: ())

    def _replaced(
        self, number: str, cue: int, work: Callable[[Cue, Project], tuple[Cue, ...]]
    ) -> OpenScript:
        name = Message("the music “{name}”", name=cue_of(self._store.look(number), cue).name)

        def replaced(project: Project) -> Project:
            cues = [work(each, project) if each.id == cue else (each,) for each in project.cues]
            return project.having(cues=[one for each in cues for one in each])

        return self._store.change(number, replaced, name)


def cue_of(opened: OpenScript, number: int) -> Cue:
    """Raises InvalidText when there is no such cue."""
    for cue in opened.project.cues:
        if cue.id == number:
            return cue
    raise InvalidText("This music is gone. Reload the page.")


def loudness_of(pcm: Pcm) -> float:
    """LUFS. Raises InvalidText for silence."""
    meter = LoudnessMeter()
    for start in range(0, len(pcm), _BLOCK):
        meter.feed(pcm[start : start + _BLOCK] / 32768.0)
    if not math.isfinite(meter.loudness):
        raise InvalidText("The music is silent. Choose another file.")
    return meter.loudness


def preview(opened: OpenScript, cue: Cue) -> Pcm:
    """The first seconds of the script with its music where a cue begins; where no line under the
    cue is spoken yet, the music alone. Raises InvalidSetting where its sound is missing."""
    music, sounds = opened.music, opened.sounds
    assert music is not None
    assert sounds is not None
    if cue in music.missing:
        music.check()
    check_lines(cue, opened.script)
    timeline = build_timeline(opened.script, opened.jobs, sounds)
    places = lines_under(cue, opened.script)
    place, wanted = places[0], round(PREVIEW * SAMPLE_RATE)
    bed, limiter = music.bed(timeline, place), Limiter()
    if not any(timeline.spans[each].samples for each in places):
        alone = bed.under(opened.script.lines[place].id, np.zeros(wanted, np.int16))
        return as_pcm(np.concatenate([limiter.feed(alone), limiter.finish()]))[:wanted]
    parts = []
    for span in timeline.spans[place:]:
        pauses = [(each, bool(span.key)) for each in silence_of(span)]
        for speech, spoken in [(sound_of(span, sounds), False), *pauses]:
            mixed = speech / 32768.0 + bed.under(span.line.id, speech, spoken)
            parts.append(limiter.feed(mixed[: max(0, wanted)]))
            wanted -= len(mixed)
        if wanted <= 0:
            break
    else:
        parts += [limiter.feed(rest) for rest in bed.tail()]
    return as_pcm(np.concatenate([*parts, limiter.finish()]))[: round(PREVIEW * SAMPLE_RATE)]


def _made(values: Mapping[str, Any]) -> Cue:
    try:
        return Cue.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field, problem = ".".join(map(str, first["loc"])), first["msg"]
        raise InvalidSetting("{field}: {problem}.", field=field, problem=problem) from error
