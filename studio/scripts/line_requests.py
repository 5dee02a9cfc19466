"""Turns lines into requests, with the key of each line's audio.

The key is a digest of everything that the audio depends on. A line is done if audio with its key
exists; an edit, another voice or another seed makes exactly the changed lines stale, and undoing it
finds the audio again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pydantic import Field

from engine import (
    Mood,
    Mooded,
    Preset,
    SamplingParams,
    SpeechRequest,
    Voice,
    has_words,
    mood_runs,
    open_tags,
    recorded_moods,
    spoken_size,
    without_tags,
)
from studio.scripts.model import MAX_SEED, Line, Record, Script
from studio.scripts.pauses import Pauses
from studio.scripts.text.cues import cues_of, said_of, unknown_moods, without_cues
from studio.scripts.text.passages import SpeechOptions
from studio.scripts.text.pronunciation import Speller, Spelling
from studio.scripts.text.tags import leading_closes
from studio.voices.moods import in_mood
from studio.voices.voice_digest import (
    clone_parts,
    digest_of,
    mood_digest,
    voice_digest,
    voice_parts,
)


class Delivery(Record):
    """How a script is spoken. One seed for all lines keeps voices stable."""

    language: str = "auto"
    seed: int = Field(0, ge=0, le=MAX_SEED)
    sampling: SamplingParams = SamplingParams()
    max_frames: int | None = None
    speed: float = Field(1.0, ge=0.5, le=2.0)
    model: str | None = None
    numbers: bool = True  # spell out figures for a model that needs it
    directions: bool = False  # pass directions in brackets to preset voices as instructions
    spellings: tuple[Spelling, ...] = ()
    pauses: Pauses = Pauses()
    manner: SpeechOptions = SpeechOptions()


@dataclass(frozen=True, eq=False)
class Job:
    """A line to be spoken. `request` None: it has no text, or its audio is locked.

    A line without text has no key.
    """

    line: int
    key: str
    request: SpeechRequest | None
    size: int  # letters, to estimate its duration
    pause: float  # seconds of silence after it
    speed: float = 1.0
    natural: str = ""  # the key of the same sound at its own speed, where that is another
    said: str = ""  # what is heard of its text: no cues, no tags of moods
    moods: Collection[str] = ()  # what tags in it may name
    held: str = ""  # tags of moods that hold on from earlier lines: "[lower 0.6]"


def plan(
    script: Script,
    voices: Mapping[str, Voice],
    delivery: Delivery,
    known: Mapping[str, str] | None = None,
    able: Collection[str] | None = None,
    moods: Mapping[str, Mood] = MappingProxyType({}),
) -> tuple[Job, ...]:
    """Every line's job, in order. `voices` by speaker, as resolve_cast gives them.

    `known`: digests by speaker of voices that are gone, so that what they said is found.
    `able`: the speakers whose voices follow instructions; None: all that are presets.
    `moods`: those that texts and directions may name.
    """
    wording = Wording(delivery)
    digests = {speaker: voice_digest(voice) for speaker, voice in voices.items()}
    digests.update(known or {})
    followers = [*script.lines, None][1:]
    every = frozenset(moods)
    nameable = {who: every.union(recorded_moods(voice)) for who, voice in voices.items()}
    closed = " ".join(line.text for line in script.lines if "/" in line.text)
    unknown = {names: unknown_moods(closed, names) for names in {every, *nameable.values()}}
    turn, still = None, ""  # tags of moods that hold on from earlier lines of a turn
    jobs: list[Job] = []
    for line, following in zip(script.lines, followers, strict=True):
        follows = able is None or line.speaker in able
        if (now := (line.chapter, line.paragraph, line.speaker)) != turn:
            turn, still = now, ""
        named = nameable.get(line.speaker, every)  # who only pauses has no voice
        text = without_tags(line.text, unknown[named])
        held = open_tags(still + leading_closes(text), named, directions=True)
        tagged = still + text
        still = open_tags(tagged, named, directions=True)
        spoken = said_of(text, named)
        request = None
        if has_words(spoken):
            request = _request(line, wording(tagged), voices, delivery, follows, moods)
        natural = _key(request, digests[line.speaker]) if request else ""
        speed = delivery.speed
        key = line.kept or (
            natural if speed == 1 or not natural else f"{natural}-{round(100 * speed)}"
        )
        pause = delivery.pauses.after(line, following)
        size = spoken_size(said_of(request.text, named)) if request else 0
        wanted = None if line.locked else request
        other = natural if natural != key else ""
        jobs.append(Job(line.id, key, wanted, size, pause, speed, other, spoken, named, held))
    return tuple(jobs)


class Wording:
    """A script's text with its pronunciations."""

    def __init__(self, delivery: Delivery) -> None:
        self._speller = Speller(delivery.spellings)

    def __call__(self, text: str) -> str:
        return self._speller(text).strip()


def _request(
    line: Line,
    spoken: str,
    voices: Mapping[str, Voice],
    delivery: Delivery,
    follows: bool,
    moods: Mapping[str, Mood],
) -> SpeechRequest:
    """The request for a line."""
    voice = voices[line.speaker]
    known = {*moods, *recorded_moods(voice)}
    text = without_cues(spoken, known)
    directions = [line.direction] if delivery.directions and line.direction else []
    directions += cues_of(spoken, known)
    mooded = in_mood(voice, line.direction.strip(" ()"), 1.0, moods) if line.direction else None
    if mooded is not None:
        voice = mooded
    elif directions and follows and isinstance(voice, Preset):
        voice = replace(voice, instruct=", ".join(directions))
    return SpeechRequest(
        text=text,
        voice=voice,
        language=delivery.language,
        sampling=delivery.sampling,
        seed=delivery.seed if line.seed is None else line.seed,
        max_frames=delivery.max_frames,
        live=False,
        model=delivery.model,
        spell_out=delivery.numbers,
        moods=moods if "[" in text or "(" in text else {},
    )


def _key(request: SpeechRequest, voice: str) -> str:
    direction = request.voice.instruct if isinstance(request.voice, Preset) else ""
    return digest_of([voice, direction, *_request_parts(request), *_mood_parts(request)])


def _mood_parts(request: SpeechRequest) -> list[Any]:
    """What the moods of a line add to its key; nothing where it has none."""
    parts: list[Any] = []
    if isinstance(request.voice, Mooded):
        parts.append(voice_parts(request.voice))
    recorded = recorded_moods(request.voice)
    for run in mood_runs(request.text, {*request.moods, *recorded}, request.language):
        name = run.spoken.mood
        if name in recorded:
            parts.append([name, *clone_parts(recorded[name])])
        elif name:
            parts.append([name, mood_digest(request.moods[name])])
    return parts


def _request_parts(request: SpeechRequest) -> list[Any]:
    sampling = request.sampling.model_dump()
    written = [] if request.spell_out else ["as written"]
    return [
        request.text, request.language, sampling, request.seed, request.max_frames, request.model,
        *written,
    ]  # fmt: skip
