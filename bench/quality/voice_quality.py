"""`python -m bench.quality.voice_quality --model DIR`: does each voice sound like a person?

Every preset speaks held-out sentences; judges that know nothing of the model (bench/README.md says
how to install them) say how natural and clean that is, which words are heard, and how much a
voice sounds like itself and like the most similar other one. `--recordings NAME=FOLDER` adds a
row for 00.wav, 01.wav … that say the same sentences: a teacher, a codec. Prints a table, then
one JSON line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import soundfile
import soxr
import typer

from bench.quality import judges
from bench.quality.intelligibility import SENTENCES, percent, speaking, together
from bench.quality.judges import Embedding
from bench.quality.wer import errors
from engine import SAMPLE_RATE, Engine, Preset, Waveform, open_engine

SHORTEST = 0.1  # seconds: nothing is said in less, and the judges refuse it
HEADS = ("sentences", "natural", "least", "clean", "errors %", "own", "next")


class Panel(Protocol):
    """What `bench.quality.judges.Judges` answers."""

    def prepared(self, wave: Waveform) -> Waveform: ...
    def naturalness(self, sound: Waveform) -> float: ...
    def cleanness(self, sound: Waveform) -> float: ...
    def words(self, sound: Waveform) -> list[str]: ...
    def embedding(self, sound: Waveform) -> Embedding: ...


@dataclass
class Score:
    """What the judges said of one voice, a sentence each; a silent one gets the worst marks."""

    voice: str
    natural: list[float] = field(default_factory=list)
    clean: list[float] = field(default_factory=list)
    words: int = 0
    wrong: int = 0
    embeddings: list[Embedding] = field(default_factory=list)

    def add(self, panel: Panel, text: str, wave: Waveform) -> None:
        said, heard = judges.spoken_words(text), list[str]()
        if len(wave) < SHORTEST * SAMPLE_RATE:
            natural = clean = 1.0
        else:
            sound = panel.prepared(wave)
            natural, clean = panel.naturalness(sound), panel.cleanness(sound)
            heard = panel.words(sound)
            self.embeddings.append(panel.embedding(sound))
        self.natural.append(natural)
        self.clean.append(clean)
        self.words += len(said)
        self.wrong += errors(said, heard)

    def row(self, others: Sequence[Score]) -> dict[str, Any]:
        return {
            "voice": self.voice,
            "sentences": len(self.natural),
            "distillmos": round(float(np.mean(self.natural)), 2),
            "distillmos_least": round(min(self.natural), 2),
            "dnsmos": round(float(np.mean(self.clean)), 2),
            "word_errors_percent": percent(self.wrong, self.words),
            "like_itself": likeness(self.embeddings),
            "like_next": next_likeness(self, others),
        }


def centre(embeddings: Sequence[Embedding]) -> Embedding:
    """The mean direction."""
    mean: Embedding = np.mean(embeddings, axis=0)
    return mean / np.linalg.norm(mean)


def likeness(own: Sequence[Embedding]) -> float | None:
    """How much a sentence sounds like the voice's other ones: the mean cosine."""
    if len(own) < 2:
        return None
    each = (float(own[i] @ centre([*own[:i], *own[i + 1 :]])) for i in range(len(own)))
    return round(float(np.mean(list(each))), 3)


def next_likeness(score: Score, others: Sequence[Score]) -> float | None:
    """The cosine to the most similar other voice."""
    there = [each for each in others if each is not score and each.embeddings]
    if not (there and score.embeddings):
        return None
    own = centre(score.embeddings)
    return round(max(float(own @ centre(each.embeddings)) for each in there), 3)


def whole(scores: Sequence[Score]) -> dict[str, Any]:
    """All voices together: means over all sentences; likeness is a voice's alone."""
    natural = [value for score in scores for value in score.natural]
    clean = [value for score in scores for value in score.clean]
    wrong, words = sum(score.wrong for score in scores), sum(score.words for score in scores)
    return {
        "voice": "all",
        "sentences": len(natural),
        "distillmos": round(float(np.mean(natural)), 2),
        "distillmos_least": round(min(natural), 2),
        "dnsmos": round(float(np.mean(clean)), 2),
        "word_errors_percent": percent(wrong, words),
        "like_itself": None,
        "like_next": None,
    }


def line(row: dict[str, Any]) -> str:
    """One line of the table; what was not measured is a dash."""
    voice, *values = row.values()
    return f"{voice:<20}" + "".join(f"{'–' if value is None else value:>11}" for value in values)


def read_recordings(folder: Path, count: int) -> Iterator[tuple[int, Waveform]]:
    """The numbers and waveforms at 24 kHz of the files there are."""
    for index in range(count):
        path = folder / f"{index:02d}.wav"
        if path.exists():
            wave, rate = soundfile.read(path, dtype="float32", always_2d=True)
            yield index, soxr.resample(wave.mean(1), rate, SAMPLE_RATE).astype(np.float32)


def presets(engine: Engine) -> list[str]:
    return [name for each in engine.capabilities().values() for name in each.speakers]


def of_model(panel: Panel, engine: Engine, voices: Sequence[str], texts: list[str]) -> list[Score]:
    scores = []
    for name in voices:
        score, speak = Score(name), speaking(engine, Preset(name))
        for text, (wave, _) in zip(texts, together(speak, texts), strict=True):
            score.add(panel, text, wave)
        scores.append(score)
        typer.echo(line(score.row([])), err=True)
    return scores


def of_folder(panel: Panel, entry: str, texts: list[str]) -> Score:
    name, _, folder = entry.partition("=")
    score = Score(name)
    for index, wave in read_recordings(Path(folder), len(texts)):
        score.add(panel, texts[index], wave)
    if not score.natural:
        raise typer.BadParameter(f"no 00.wav, 01.wav … in {folder!r} (NAME=FOLDER)")
    typer.echo(line(score.row([])), err=True)
    return score


def main(
    model: Annotated[str, typer.Option(help="a checkpoint: folder or hub id")] = "",
    sentences: Annotated[int, typer.Option(min=1, max=100, help="of each voice")] = 100,
    voice: Annotated[list[str] | None, typer.Option(help="some presets alone")] = None,
    recordings: Annotated[list[str] | None, typer.Option(help="NAME=FOLDER of wav files")] = None,
    device: str = "auto",
) -> None:
    """Let judges hear every voice."""
    if judges.missing():
        raise typer.BadParameter(
            f"{', '.join(judges.missing())} not installed: {judges.INSTALL} (bench/README.md)"
        )
    if not (model or recordings):
        raise typer.BadParameter("--model or --recordings is needed")
    panel, texts = judges.Judges(), SENTENCES.read_text().splitlines()[:sentences]
    typer.echo(f"{'voice':<20}" + "".join(f"{head:>11}" for head in HEADS), err=True)
    scores = [of_folder(panel, entry, texts) for entry in recordings or []]
    spoken: list[Score] = []
    if model:
        engine = open_engine([model], device=device)
        try:
            spoken = of_model(panel, engine, voice or presets(engine), texts)
        finally:
            engine.close()
    rows = [score.row(scores) for score in scores] + [score.row(spoken) for score in spoken]
    rows += [whole(spoken)] if spoken else []
    typer.echo("")
    for row in rows:
        typer.echo(line(row))
    typer.echo(json.dumps({"model": model, "voices": rows}))


if __name__ == "__main__":
    typer.run(main)
