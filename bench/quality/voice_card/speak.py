"""The takes of a card spoken by a model, many at a time; group by group onto disk.

What is on disk already is not said again, so a stopped run goes on. Needs what the engine needs:
torch, numpy, safetensors, tokenizers, pydantic, sentencex.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from bench.quality import acoustic_features
from bench.quality.voice_card import plan, recordings
from bench.quality.voice_card.plan import Sizes, Take
from bench.quality.voice_card.recordings import Spoken
from engine import (
    SAMPLE_RATE,
    Blend,
    Clone,
    Design,
    Engine,
    Preset,
    SpeechRequest,
    SpeechStream,
    Voice,
    open_engine,
)
from engine.checkpoints.hub import resolve

LANGUAGE = "english"
COMPARED = 10  # sentences a voice, to tell which is higher


class Cast:
    """The voices of takes; clones are made when they are first asked for."""

    def __init__(self, engine: Engine, references: Path | None) -> None:
        self._engine = engine
        self._references = {
            group: list(recordings.read(folder, group))
            for folder in ([references] if references else [])
            for group in recordings.groups(folder)
        }
        self._clones: dict[tuple[str, str], Clone] = {}

    def known(self) -> dict[str, list[str]]:
        """The references' voices by their group."""
        return {
            group: list(dict.fromkeys(each.take.voice for each in spoken))
            for group, spoken in self._references.items()
        }

    def voice(self, take: Take) -> Voice:
        if take.part == "designs":
            return Design(take.instruct)
        if take.part == "blends":
            first, second = take.voice.split("+")
            return Blend(((Preset(first), 1 - take.share), (Preset(second), take.share)))
        if take.part in ("vector", "context"):
            return self._clone(take)
        return Preset(take.voice, take.instruct)

    def _clone(self, take: Take) -> Clone:
        key = take.group, take.voice
        if key not in self._clones:
            recorded = self._references[take.group.split(".")[1]]
            first = next(each for each in recorded if each.take.voice == take.voice)
            transcript = first.take.text if take.part == "context" else ""
            self._clones[key] = self._engine.clone(first.wave, transcript)
        return self._clones[key]


def spoken(engine: Engine, cast: Cast, takes: Iterable[Take], at_once: int) -> Iterator[Spoken]:
    """All takes in their order, `at_once` of them in the engine."""
    waiting: deque[tuple[Take, SpeechStream]] = deque()
    for take in takes:
        if len(waiting) == at_once:
            yield finished(*waiting.popleft())
        request = SpeechRequest(take.text, cast.voice(take), LANGUAGE, seed=take.seed, live=False)
        waiting.append((take, engine.submit(request)))
    while waiting:
        yield finished(*waiting.popleft())


def finished(take: Take, stream: SpeechStream) -> Spoken:
    pcm = stream.collect()
    return Spoken(take, pcm, stream.end.reason if stream.end else "error")


def keep(
    folder: Path,
    takes: Sequence[Take],
    speak: Callable[[Iterable[Take]], Iterator[Spoken]],
    kind: str,
    by: float | None = None,
) -> None:
    """Speak the groups that are not in the folder; begin none after the time `by`."""
    there, began = set(recordings.groups(folder)), time.monotonic()
    missing = [
        (group, list(each))
        for group, each in groupby(takes, lambda take: take.group)
        if group not in there
    ]

    def in_time() -> Iterator[Take]:
        for _, each in missing:
            if by is None or time.time() < by:
                yield from each

    made = speak(in_time())
    for group, each in missing:
        done = list(islice(made, len(each)))
        if len(done) < len(each):
            print(f"stopped before {group}", flush=True)
            return
        recordings.write(folder, group, done, kind)
        seconds = sum(len(one.pcm) for one in done) / SAMPLE_RATE
        took = time.monotonic() - began
        print(f"{group}: {len(done)} takes, {seconds:.0f} s; {took:.0f} s so far", flush=True)


def pitches(folder: Path, speakers: Sequence[str]) -> dict[str, float]:
    """How high each named voice speaks, by what it has said."""
    found = {}
    for voice in speakers:
        spoken = islice(recordings.read(folder, f"voices.{voice}"), COMPARED)
        found[voice] = float(np.median([acoustic_features.pitch(each.wave) for each in spoken]))
    return found


def speak_model(
    model: str,
    folder: Path,
    references: Path | None,
    sizes: Sizes,
    parts: Sequence[str],
    kind: str,
    at_once: int,
    device: str = "auto",
    by: float | None = None,
    weights: str = "auto",
) -> None:
    """Everything that a model is asked for."""
    recordings.claim(folder, model, resolve(model).rglob("*.safetensors"))
    with open_model(model, device, at_once, weights) as engine:
        cast = Cast(engine, references)
        (able,) = engine.capabilities().values()

        def say(takes: Sequence[Take]) -> None:
            keep(folder, takes, lambda each: spoken(engine, cast, each, at_once), kind, by)

        first, *others = plans(able.speakers, cast.known(), sizes, parts)
        say(first)
        if "blends" in parts:
            pairs = plan.pairs_by_pitch(pitches(folder, able.speakers))
            others.append(list(plan.blends(pairs, sizes)))
        say([take for each in others for take in each])


def plans(
    speakers: Sequence[str],
    references: Mapping[str, Sequence[str]],
    sizes: Sizes,
    parts: Sequence[str],
) -> list[list[Take]]:
    """Named voices, then all that does not wait for their pitch."""
    rest = [
        *plan.clones(references, sizes),
        *plan.designs(sizes),
        *plan.styles(speakers, sizes),
        *plan.ends(speakers, sizes),
        *plan.long_texts(speakers, sizes),
    ]
    wanted = [take for take in rest if take.part in parts]
    return [list(plan.named_voices(speakers, sizes)) if "voices" in parts else [], wanted]


def open_model(model: str, device: str, at_once: int, weights: str = "auto") -> Engine:
    """An engine that has room for all that is asked for at once."""
    room: dict[str, Any] = {
        "max_num_seqs": at_once, "max_waiting": 4 * at_once, "file_share": 1.0
    }  # fmt: skip
    return open_engine([model], device, weights=weights, **room)
