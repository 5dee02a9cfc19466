"""`python -m bench.quality.intelligibility --model DIR`: word error rates of the model's speech.

Speaks held-out sentences with presets, and with clones of speakers not used in training, and
transcribes them with an independent recogniser. If flite is installed (see training/README.md), its
own rate is shown too. Prints a table, then one JSON line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import typer

from bench.quality.wer import Listener
from engine import Clone, Engine, Preset, SpeechRequest, Voice, Waveform, open_engine
from training.data import flite, synthesize_corpus
from training.data.flite_speakers import NAMED, Speaker, held_out

SENTENCES = Path(__file__).parents[2] / "training" / "data" / "heldout.txt"
REFERENCE = "The captain of the ship gave her a letter from her brother."
AT_ONCE = 3  # concurrent requests, enough for two cores
TOO_SHORT = 0.6  # share of the teacher's duration below which speech counts as ended early

Made = TypeVar("Made")


@dataclass
class Score:
    """One voice: word errors of the model and of its teacher, and wrong ends."""

    voice: str
    words: int = 0
    wrong: int = 0
    teacher_words: int = 0
    teacher_wrong: int = 0
    sentences: int = 0
    endless: int = 0
    early: int = 0

    def row(self) -> dict[str, Any]:
        return {
            "voice": self.voice,
            "sentences": self.sentences,
            "word_errors_percent": percent(self.wrong, self.words),
            "teacher_percent": percent(self.teacher_wrong, self.teacher_words),
            "endless": self.endless,
            "early": self.early,
        }


def percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def speaking(engine: Engine, voice: Voice) -> Callable[[str, int], tuple[Waveform, str]]:
    """A function from text and seed to the waveform and the reason of its end."""

    def speak(text: str, seed: int) -> tuple[Waveform, str]:
        with engine.submit(SpeechRequest(text, voice, "english", seed=seed, live=False)) as stream:
            chunks = [chunk.pcm for chunk in stream]
            end = stream.end
        pcm = np.concatenate(chunks) if chunks else np.zeros(0, np.int16)
        return (pcm / 32768).astype(np.float32), end.reason if end else "error"

    return speak


def together(make: Callable[[str, int], Made], texts: list[str]) -> Iterator[Made]:
    """Results for each text with its index as the seed, AT_ONCE at a time, in order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(make, texts, range(len(texts)))


def teacher() -> Callable[[str, Speaker], Waveform] | None:
    """flite's voice, if its libraries are found."""
    if not (flite.folder() / "libflite.so.1").exists():
        return None
    return lambda text, speaker: synthesize_corpus.say(text, speaker).wave


def cast(
    engine: Engine, say: Callable[[str, Speaker], Waveform] | None, clones: int
) -> Iterator[tuple[Voice, Speaker]]:
    """The presets of flite's four voices, then clones of held-out speakers of both kinds."""
    for speaker in NAMED[:4]:
        yield Preset(speaker.name), speaker
    for index, speaker in enumerate(held_out()[:clones] if say else []):
        assert say is not None
        transcript = REFERENCE if index % 2 else ""
        yield engine.clone(say(REFERENCE, speaker), transcript), speaker


def named(voice: Voice, speaker: Speaker) -> str:
    if isinstance(voice, Clone):
        return f"clone of {speaker.name}" + (" in context" if voice.in_context else "")
    return speaker.name


def judge(engine: Engine, sentences: list[str], clones: int) -> list[dict[str, Any]]:
    listener, say, rows = Listener(), teacher(), []
    for voice, speaker in cast(engine, say, clones):
        score = Score(named(voice, speaker))
        made = together(speaking(engine, voice), sentences)
        for text, (wave, reason) in zip(sentences, made, strict=True):
            count(score, listener, text, wave, reason, say(text, speaker) if say else None)
        rows.append(score.row())
        typer.echo(line(rows[-1]), err=True)
    return rows


def count(
    score: Score,
    listener: Listener,
    text: str,
    wave: Waveform,
    reason: str,
    taught: Waveform | None,
) -> None:
    wrong, words = listener.errors(text, wave)
    score.sentences += 1
    score.wrong, score.words = score.wrong + wrong, score.words + words
    score.endless += reason != "finished"
    if taught is None:
        return
    score.early += len(wave) < TOO_SHORT * len(taught)
    wrong, words = listener.errors(text, taught)
    score.teacher_wrong += wrong
    score.teacher_words += words


def line(row: dict[str, Any]) -> str:
    """One line of the table; a dash where nothing was measured."""
    voice, *values = row.values()
    return f"{voice:<28}" + "".join(f"{'–' if value is None else value:>12}" for value in values)


def main(
    model: Annotated[str, typer.Option(help="a checkpoint: folder or hub id")],
    sentences: Annotated[int, typer.Option(min=1, max=100, help="of each voice")] = 100,
    clones: Annotated[int, typer.Option(min=0, help="of held-out speakers; needs flite")] = 4,
    device: str = "auto",
) -> None:
    """Count a recogniser's word errors."""
    said = SENTENCES.read_text().splitlines()[:sentences]
    heads = ("voice", "sentences", "errors %", "teacher %", "endless", "early")
    typer.echo(f"{heads[0]:<28}" + "".join(f"{head:>12}" for head in heads[1:]), err=True)
    engine = open_engine([model], device=device)
    try:
        rows = judge(engine, said, clones)
    finally:
        engine.close()
    typer.echo(json.dumps({"model": model, "voices": rows}))


if __name__ == "__main__":
    typer.run(main)
