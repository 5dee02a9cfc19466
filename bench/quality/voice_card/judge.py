"""Spoken takes judged: what each judge and each measure says, kept beside the sound.

Only what the card needs of a part is asked for, since judges take about a second a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from bench.quality import acoustic_features, words
from bench.quality.judges import HEARD_RATE, Judges, missing
from bench.quality.voice_card import card, recordings
from bench.quality.voice_card.recordings import Spoken
from engine import SAMPLE_RATE, write_atomic
from training.voice.words import word_errors

SOURCES = ("model", "teacher", "codec", "references")
NATURAL = ("voices", "vector", "context", "blends", "styles", "long")
WORDS = ("voices", "vector", "context", "styles", "ends", "long")
WHO = ("voices", "vector", "context", "blends", "long", "held_out", "strangers")
SHORTEST = 0.1  # seconds: nothing is said in less, and the judges refuse it
WINDOW = 5  # seconds of a long text, one embedding each
DIGITS = 4


@dataclass(frozen=True)
class Judged:
    """What is known of one take; None and nothing where it was not asked for."""

    take: dict[str, Any]
    reason: str
    seconds: float
    pitch: float
    spread: float  # semitones
    voiced: float
    centroid: float
    drift: float = 0.0  # of the pitch, from the first third to the last, semitones
    natural: float | None = None
    clean: float | None = None
    said: int = 0  # words
    wrong: int = 0
    unsaid_end: int = 0
    beyond: int = 0
    heard: str = ""
    who: tuple[tuple[float, ...], ...] = ()  # embeddings, one a window of a long text


@cache
def judges() -> Judges:
    return Judges()


def judged(each: Spoken, clean: bool) -> Judged:
    take, wave = each.take, each.wave
    seconds = len(wave) / SAMPLE_RATE
    found: dict[str, Any] = {"take": asdict(take), "reason": each.reason, "seconds": seconds}
    wanted = words.spoken_words(take.text)
    if seconds < SHORTEST:
        return silent(found, take.part, len(wanted), clean)
    contour, panel = acoustic_features.contour(wave), judges()
    found |= {
        "pitch": contour.median,
        "spread": contour.spread,
        "voiced": contour.voiced,
        "centroid": acoustic_features.centroid(wave),
    }
    if take.part == "long":
        first, *_, last = np.array_split(wave, 3)
        found["drift"] = acoustic_features.semitones(*map(acoustic_features.pitch, (first, last)))
    sound = panel.prepared(wave)
    if take.part in NATURAL:
        found["natural"] = panel.naturalness(sound)
    if clean:
        found["clean"] = panel.cleanness(sound)
    if take.part in WORDS:
        heard = words.heard_words(wanted, panel.transcript(sound))
        found |= {
            "said": len(wanted),
            "wrong": word_errors(wanted, heard),
            "unsaid_end": words.unsaid_end(wanted, heard),
            "beyond": words.unsaid_end(heard, wanted),
            "heard": " ".join(heard),
        }
    if take.part in WHO:
        size = WINDOW * HEARD_RATE if take.part == "long" else len(sound)
        starts = range(0, max(1, len(sound) - size + 1), size)
        found["who"] = tuple(
            tuple(np.round(panel.embedding(sound[start : start + size]), DIGITS).tolist())
            for start in starts
        )
    return Judged(**found)


def silent(found: dict[str, Any], part: str, spoken: int, clean: bool) -> Judged:
    """The worst marks, and every word missed."""
    worst: dict[str, Any] = dict.fromkeys(("pitch", "spread", "voiced", "centroid"), 0.0)
    worst |= {"natural": 1.0} if part in NATURAL else {}
    worst |= {"clean": 1.0} if clean else {}
    return Judged(**found, **worst, said=spoken, wrong=spoken, unsaid_end=spoken)


def judge_group(folder: Path, group: str, sentences: int, clean: int) -> int:
    """Judge what was not judged, of a named voice so many sentences; the number of takes."""
    path = folder / "judged" / f"{group}.json"
    known = json.loads(path.read_text()) if path.exists() else []
    rows, count = [], 0
    for number, each in enumerate(recordings.read(folder, group)):
        row = known[number] if number < len(known) and tells_of(known[number], each) else None
        named = each.take.part == "voices"
        is_judged = named and number < clean
        wanted = not named or number < sentences
        if wanted and (row is None or (is_judged and row["clean"] is None)):
            row, count = asdict(judged(each, is_judged)), count + 1
        rows += [row] if row else []
    if rows != known:
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, json.dumps(rows).encode())
    return count


def tells_of(row: dict[str, Any], each: Spoken) -> bool:
    """Whether a row was judged by this very take."""
    seconds = len(each.wave) / SAMPLE_RATE
    return (row["take"], row["reason"], row["seconds"]) == (asdict(each.take), each.reason, seconds)


def judge_card(
    folder: Path, beside: Path | None, processes: int, sentences: int, clean: int
) -> None:
    if missing():
        raise SystemExit(f"{', '.join(missing())} not installed (requirements-judges.txt)")
    jobs = [
        (folder / source, group, sentences, clean)
        for source in SOURCES
        for group in recordings.groups(folder / source)
    ]
    # Long groups first, so that the processes end together.
    jobs.sort(key=lambda job: -sum(path.stat().st_size for path in job[0].glob(f"{job[1]}.*")))
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for job, count in zip(jobs, pool.map(_judge, jobs), strict=True):
            if count:
                print(f"{job[0].name} {job[1]}: {count}", flush=True)
    judged = {source: [vars(row) for row in read_judged(folder / source)] for source in SOURCES}
    card.write_card(folder, judged, beside)


def _judge(job: tuple[Path, str, int, int]) -> int:
    return judge_group(*job)


def read_judged(folder: Path) -> list[Judged]:
    """All that was judged in a folder."""
    paths: Sequence[Path] = sorted((folder / "judged").glob("*.json"))
    return [Judged(**each) for path in paths for each in json.loads(path.read_text())]
