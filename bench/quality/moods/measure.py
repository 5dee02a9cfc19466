"""Speaks held-out voices with and without moods, measures what changes, and says which moods hold.

Takes lie on disk as WAV files with their features beside them, so a stopped run goes on.
"""

from __future__ import annotations

import json
import wave as wav
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.quality import acoustic_features
from bench.quality.words import heard_words, spoken_words
from engine import Clone, Engine, Mood, Mooded, Pcm, SpeechRequest, SpeechStream, Waveform
from training.voice.words import word_errors

PLAIN = "plain"
DOSES = (0.5, 1.0, 1.5)
JUDGED = 1.0
VOICES = 40
FIRST = 12  # voices of which all doses are spoken before those of others
RIGHT = 90.0  # % of the voices that must go the right way
MOST_MOS, MOST_WORDS = 0.1, 1.0  # what a mood may cost
AT_ONCE = 8
# What must move, and in which direction, for a mood to do what it is called.
MOVES: dict[str, tuple[tuple[str, int], ...]] = {
    "higher": (("pitch", 1),),
    "lower": (("pitch", -1),),
    "brighter": (("centroid", 1), ("tilt", 1)),
    "darker": (("centroid", -1), ("tilt", -1)),
    "quicker": (("seconds", -1),),
    "slower": (("seconds", 1),),
    "older": (("pitch", -1), ("seconds", 1)),
    "younger": (("pitch", 1), ("seconds", -1)),
    "softer": (("tilt", -1), ("level", -1)),
    "firmer": (("tilt", 1), ("level", 1)),
}
UNITS = {"pitch": "st", "centroid": "%", "seconds": "%", "tilt": "dB/oct", "level": "dB"}


@dataclass(frozen=True)
class Take:
    mood: str
    dose: float
    voice: int

    @property
    def name(self) -> str:
        return f"{self.mood}-{self.dose:g}-{self.voice:02d}"


def takes(moods: Iterable[str]) -> list[Take]:
    """All at strength 1 first, so that a run which is stopped has said the most."""
    plain = [Take(PLAIN, 0.0, voice) for voice in range(VOICES)]
    doses = sorted(DOSES, key=lambda dose: dose != JUDGED)
    moved = [
        Take(mood, dose, voice)
        for few in (range(FIRST), range(FIRST, VOICES))
        for dose in doses
        for voice in few
        for mood in moods
    ]
    moved.sort(key=lambda take: take.dose != JUDGED)
    return plain + moved


def speak(
    engine: Engine,
    voices: Sequence[Clone],
    moods: Sequence[Mood],
    texts: Sequence[str],
    folder: Path,
) -> None:
    """Speak what is not in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {mood.name: mood for mood in moods}
    missing = [each for each in takes(by_name) if not (folder / f"{each.name}.json").exists()]
    waiting: deque[tuple[Take, SpeechStream]] = deque()
    for take in missing:
        if len(waiting) == AT_ONCE:
            _keep(folder, *waiting.popleft())
        voice = voices[take.voice]
        mooded = Mooded(voice, ((by_name[take.mood], take.dose),)) if take.dose else voice
        text, seed = texts[take.voice], 100 + take.voice
        request = SpeechRequest(text, mooded, "english", seed=seed, live=False)
        waiting.append((take, engine.submit(request)))
    for take, stream in waiting:
        _keep(folder, take, stream)


def _keep(folder: Path, take: Take, stream: SpeechStream) -> None:
    pcm = stream.collect()
    with wav.open(str(folder / f"{take.name}.wav"), "wb") as file:
        file.setparams((1, 2, 24_000, 0, "NONE", ""))
        file.writeframes(pcm.astype("<i2").tobytes())
    card = features(pcm) | {"reason": stream.end.reason if stream.end else "error"}
    (folder / f"{take.name}.json").write_text(json.dumps(card))


def features(pcm: Pcm) -> dict[str, float]:
    wave = pcm.astype(np.float32) / np.float32(32768)
    return {
        "pitch": acoustic_features.pitch(wave),
        "centroid": acoustic_features.centroid(wave),
        "seconds": acoustic_features.audible_seconds(wave),
        "tilt": acoustic_features.tilt(wave),
        "level": acoustic_features.level(wave),
    }


def change(feature: str, plain: float, moved: float) -> float:
    """From one take to another: semitones, per cent, or dB."""
    if feature == "pitch":
        return acoustic_features.semitones(plain, moved) if plain and moved else 0.0
    if feature in ("centroid", "seconds"):
        return 100 * (moved / plain - 1)
    return moved - plain


def judge(folder: Path, texts: Sequence[str], moods: Iterable[str]) -> None:
    """DistillMOS and heard words of what was spoken plain and at strength 1."""
    from bench.quality.judges import Judges

    judges = Judges()
    for take in takes(moods):
        path = folder / f"{take.name}.judged"
        if take.dose not in (0.0, JUDGED) or path.exists():
            continue
        sound = judges.prepared(_read(folder / f"{take.name}.wav"))
        wanted = spoken_words(texts[take.voice])
        wrong = word_errors(wanted, heard_words(wanted, judges.transcript(sound)))
        row = {"mos": judges.naturalness(sound), "wrong": wrong, "words": len(wanted)}
        path.write_text(json.dumps(row))


def _read(path: Path) -> Waveform:
    with wav.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(
            np.float32
        ) / np.float32(32768)


@dataclass(frozen=True)
class Verdict:
    mood: str
    lines: tuple[str, ...]  # of the table
    kept: bool


def verdict(folder: Path, mood: str) -> Verdict:
    """What a mood does to the held-out voices, and whether it is kept."""
    mos, words = _cost(folder, mood)
    lines, kept = [], mos >= -MOST_MOS and words <= MOST_WORDS
    for feature, sign in MOVES[mood]:
        by_dose = [_changes(folder, mood, dose, feature) for dose in DOSES]
        medians = [float(np.median(found)) for found in by_dose]
        right = [100 * float((sign * found > 0).mean()) for found in by_dose]
        rises = bool((np.diff(sign * np.array([0.0, *medians])) > 0).all())
        kept = kept and right[DOSES.index(JUDGED)] >= RIGHT and rises
        doses = " | ".join(f"{value:+.2f}" for value in medians)
        counts = "/".join(str(len(found)) for found in by_dose)
        lines.append(
            f"| {mood} | {feature}, {UNITS[feature]} | {doses} | "
            f"{' / '.join(f'{share:.0f}' for share in right)} ({counts}) | "
            f"{'yes' if rises else 'no'} | {mos:+.2f} | {words:+.1f} |"
        )
    word = "kept" if kept else "not kept"
    return Verdict(mood, tuple(f"{line} {word} |" for line in lines), kept)


def _changes(folder: Path, mood: str, dose: float, feature: str) -> NDArray[np.float64]:
    """The change in every voice that has spoken at this dose."""
    spoken = [
        (_as_row(folder, Take(PLAIN, 0.0, voice)), _as_row(folder, Take(mood, dose, voice)))
        for voice in range(VOICES)
        if (folder / f"{Take(mood, dose, voice).name}.json").exists()
    ]
    return np.array([change(feature, plain[feature], moved[feature]) for plain, moved in spoken])


def _cost(folder: Path, mood: str) -> tuple[float, float]:
    """The change of DistillMOS, and of word errors in points, at strength 1."""
    plain = [_judged(folder, Take(PLAIN, 0.0, voice)) for voice in range(VOICES)]
    moved = [_judged(folder, Take(mood, JUDGED, voice)) for voice in range(VOICES)]

    def wrong(all_: Sequence[dict[str, Any]]) -> float:
        return 100 * sum(each["wrong"] for each in all_) / sum(each["words"] for each in all_)

    natural = float(np.mean([each["mos"] for each in moved]) - np.mean([e["mos"] for e in plain]))
    return natural, wrong(moved) - wrong(plain)


def table(folder: Path, moods: Iterable[str]) -> Iterator[str]:
    yield (
        "| mood | what moves | at 0.5 | at 1 | at 1.5 | % of the voices the right way (voices) | "
        "rises with the dose | DistillMOS | word errors, points | |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    yield from chain.from_iterable(verdict(folder, mood).lines for mood in moods)


def _as_row(folder: Path, take: Take) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{take.name}.json").read_text())
    return found


def _judged(folder: Path, take: Take) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{take.name}.judged").read_text())
    return found
