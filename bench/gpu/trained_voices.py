"""Trained voices compared: `python -m bench.gpu.trained_voices speak RECORDINGS OUT`, then
`… judge OUT`.

Trains rows and adapters on recordings with words beside them (docs/own-voice.md) by the recipe of
`training.voice`, with more or less of the data and with or without the hold, and speaks the bench's
held-out sentences with each last epoch and with the zero-shot clones: by the mean vector of all
recordings, and in the context of one. The judges are none that it was trained by
(requirements-judges.txt): who it sounds like, to whom it is nearest (`--among FOLDER`, a voice's
recordings each), words, naturalness, pitch, and whether it ends. Both go on where they stopped, and
may run on two machines.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import soundfile
import torch
import typer

from bench.quality import acoustic_features, words
from bench.quality.acoustic_features import semitones
from bench.quality.judges import Embedding, Judges
from bench.quality.voice_card import plan
from engine import (
    SAMPLE_RATE,
    Clone,
    Engine,
    Preset,
    Waveform,
    load_reference_audio,
    open_engine,
)
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.model.talker import Talker
from engine.types import FRAME_SAMPLES
from engine.worker.device import pick_device, pick_dtype
from engine.worker.loading.model_loader import load_codec, load_encoder, load_talker
from training.voice import judge as judges
from training.voice.adapter import Adapter
from training.voice.dataset import Dataset, encode, read_segment
from training.voice.export import export_merged
from training.voice.job import JobFolder
from training.voice.prepare import Wish, make_job
from training.voice.rows import LearnedRows, padding_of
from training.voice.run import GENERAL
from training.voice.segments import find_recordings
from training.voice.sequences import Line
from training.voice.texts import general_texts
from training.voice.trainer import FIRST, HOLD, Learner, VoiceTrainer
from training.voice.words import word_errors

MINI = Path("presets/mini")
OWN = "own"
CONTEXT = 8.0  # seconds of the recording that a clone in context hears
REFERENCES = 4  # recordings of each of the others

app = typer.Typer()


@dataclass(frozen=True, eq=False)
class Person:
    """Whose recordings they are, as the judges hear it."""

    people: Embedding  # [1 + others, width], this one first
    hertz: float


@dataclass(frozen=True)
class Variant:
    name: str
    way: str = "rows"
    rows: int = 8
    minutes: float = 10
    hold: float = HOLD
    first: float = FIRST


VARIANTS = (
    Variant("rows8"),
    Variant("rows8-1min", minutes=1),
    Variant("rows8-3min", minutes=3),
    Variant("rows8-free", hold=0.0, first=1.0),  # as the published recipes: no hold
    Variant("rows8-held-only", first=0.0),
    Variant("rows8-hold10", hold=10.0),
    Variant("rows32", rows=32),
    Variant("adapter", way="adapter"),
    Variant("adapter-1min", way="adapter", minutes=1),
    Variant("adapter-3min", way="adapter", minutes=3),
    Variant("adapter-free", way="adapter", hold=0.0, first=1.0),
)


def some(dataset: Dataset, minutes: float) -> Dataset:
    """The first so many minutes."""
    spent = np.cumsum([each.seconds for each in dataset.spoken])
    return dataset.without({n for n, end in enumerate(spent) if end > 60 * minutes})


def in_context(engine: Engine, job: JobFolder, dataset: Dataset) -> Clone:
    """The clone of the line that is nearest to the length that a clone is best made from."""
    line = min(dataset.spoken, key=lambda each: abs(each.seconds - CONTEXT))
    return engine.clone(read_segment(job.segments / line.file), line.text)


def is_there(place: Path) -> bool:
    return (place / "takes.json").exists()


def speak_all(engine: Engine, voice: Clone | Preset, texts: Sequence[str], place: Path) -> None:
    if is_there(place):
        return
    place.mkdir(parents=True, exist_ok=True)
    takes = judges.speak(engine, voice, texts, "english")
    for number, take in enumerate(takes):
        soundfile.write(place / f"{number:03d}.flac", take.wave, SAMPLE_RATE)
    card = [{"text": take.text, "finished": take.finished} for take in takes]
    (place / "takes.json").write_text(json.dumps(card))


@app.command()
def speak(
    recordings: Path,
    out: Path,
    model: Path = MINI,
    epochs: int = 8,
    sentences: int = 100,
    only: Annotated[str, typer.Option(help="Variants, with commas, in their order.")] = "",
) -> None:
    """Train and speak."""
    named = {each.name: each for each in VARIANTS}
    wanted = [named[name] for name in only.split(",")] if only else VARIANTS
    device = pick_device(None)
    checkpoint = LocalCheckpoint(model)
    texts = [text for _, text in plan.sentences()][:sentences]
    job = JobFolder(out / "job")
    if not (job.path / "job.json").exists():
        make_job(job.path, Wish("bench", str(model), "for the bench", "english"), [recordings])
    dataset = encode(job, model, job.read().lines, device, checkpoint.capabilities.digest)
    talker = load_talker(model, device, pick_dtype(device))
    with open_engine([model], device=str(device)) as engine:
        clone = Clone(dataset.vector)
        speak_all(engine, clone, texts, out / "clone")
        speak_all(engine, in_context(engine, job, dataset), texts, out / "clone-context")
        general = [
            Line(checkpoint.text_ids(take.text), take.codes)
            for take in judges.speak(
                engine, clone, general_texts("english", [], GENERAL), "english"
            )
            if take.codes is not None
        ]
        for variant in wanted:
            if is_there(out / variant.name):
                continue
            began = time.monotonic()
            part = some(dataset, variant.minutes)
            learner = learned(variant, part, checkpoint, talker, general, epochs)
            summary = f"{variant.name}: {time.monotonic() - began:.0f} s of training"
            say(engine, learner, checkpoint, model, texts, out / variant.name)
            print(summary, flush=True)


def learned(
    variant: Variant,
    dataset: Dataset,
    checkpoint: LocalCheckpoint,
    talker: Talker,
    general: Sequence[Line],
    epochs: int,
) -> Learner:
    device = talker.codec_head.weight.device
    padding = padding_of(talker, checkpoint)
    learner: Learner = LearnedRows(dataset.vector, variant.rows, padding)
    if variant.way == "adapter":
        learner = Adapter(talker, dataset.vector)
    learner = learner.to(device)
    trainer = VoiceTrainer(
        checkpoint, talker, learner, epochs, "english", first=variant.first, hold=variant.hold
    )
    known, unseen = dataset.split()
    trainer.prepare(known.lines(checkpoint), unseen.lines(checkpoint), general)
    with learner.attached(talker):
        print(variant.name, "before", trainer.measure(), flush=True)
        for _ in range(epochs):
            for _ in trainer.run_epoch(lambda: False):
                pass
        print(variant.name, "after", trainer.measure(), flush=True)
    return learner


def say(
    engine: Engine,
    learner: Learner,
    checkpoint: LocalCheckpoint,
    model: Path,
    texts: Sequence[str],
    place: Path,
) -> None:
    capabilities = checkpoint.capabilities
    if isinstance(learner, LearnedRows):
        speak_all(engine, learner.voice(capabilities.name, capabilities.digest), texts, place)
        return
    with TemporaryDirectory() as folder:
        merged = Path(folder) / "merged"
        export_merged(model, learner, OWN, merged)
        with open_engine([merged], device=str(pick_device(None))) as other:
            speak_all(other, Preset(OWN), texts, place)


@app.command()
def judge(
    out: Path,
    model: Path = MINI,
    most: int = 100,
    among: Annotated[list[Path] | None, typer.Option(help="A folder of another voice.")] = None,
) -> None:
    """Print a line for the recordings, for these through the codec, and for each variant."""
    panel, job = Judges(), JobFolder(out / "job")
    lines = [each for each in job.read().lines if not each.doubtful][:most]
    waves = [soundfile.read(job.segments / each.file, dtype="float32")[0] for each in lines]
    who = np.mean([panel.embedding(panel.prepared(wave)) for wave in waves], 0)
    people = np.stack([who, *(voice_of(panel, folder) for folder in among or ())])
    people /= np.linalg.norm(people, axis=1, keepdims=True)
    hertz = float(np.median([acoustic_features.pitch(wave) for wave in waves]))
    person = Person(people, hertz)
    spoken = [each.text for each in lines]
    print_judged(panel, out / "recordings", person, zip(spoken, waves, strict=True))
    coded = zip(spoken, through_codec(model, waves), strict=True)
    print_judged(panel, out / "codec", person, coded)
    for place in sorted(path.parent for path in out.glob("*/takes.json")):
        takes = json.loads((place / "takes.json").read_text())
        sounds = [
            soundfile.read(place / f"{number:03d}.flac", dtype="float32")[0]
            for number in range(len(takes))
        ]
        ended = np.mean([take["finished"] for take in takes])
        texts = [take["text"] for take in takes]
        spoken_here = zip(texts, sounds, strict=True)
        print_judged(panel, place, person, spoken_here, f", {ended:.1%} end")


def voice_of(panel: Judges, folder: Path) -> Embedding:
    """Who speaks in a folder's longest recordings."""
    files = sorted(find_recordings([folder]), key=lambda path: path.stat().st_size)[-REFERENCES:]
    waves = [load_reference_audio(path).waveform for path in files]
    mean: Embedding = np.mean([panel.embedding(panel.prepared(wave)) for wave in waves], 0)
    return mean


@torch.inference_mode()
def through_codec(model: Path, waves: Sequence[Waveform]) -> Iterator[Waveform]:
    cpu = torch.device("cpu")
    encoder, decoder = load_encoder(model, cpu), load_codec(model, cpu, torch.float32)
    for wave in waves:
        whole = np.pad(wave, (0, -len(wave) % FRAME_SAMPLES))
        codes = encoder.encode(torch.from_numpy(whole)[None])  # [1, frames, codebooks]
        sound = decoder(codes.transpose(1, 2))
        yield sound.flatten().numpy()[: len(wave)]


def print_judged(
    panel: Judges,
    place: Path,
    person: Person,
    spoken: Iterable[tuple[str, Waveform]],
    more: str = "",
) -> None:
    kept = place.with_suffix(".judged")
    if kept.exists():
        print(kept.read_text(), flush=True)
        return
    likeness, nearest, natural, pitches, wrong, count = [], [], [], [], 0, 0
    for text, wave in spoken:
        spoken_words = words.spoken_words(text)
        count += len(spoken_words)
        if len(wave) < SAMPLE_RATE // 4:
            wrong += len(spoken_words)
            continue
        sound = panel.prepared(wave)
        found = person.people @ panel.embedding(sound)
        likeness.append(float(found[0]))
        nearest.append(bool(found.argmax() == 0))
        natural.append(panel.naturalness(sound))
        pitches.append(acoustic_features.pitch(wave))
        wrong += word_errors(spoken_words, words.heard_words(spoken_words, panel.transcript(sound)))
    apart = semitones(person.hertz, float(np.median(pitches)))
    said = (
        f"{place.name}: likeness {np.mean(likeness):.3f}, nearest to its own "
        f"{np.mean(nearest):.0%} of {len(person.people)}, {apart:+.1f} semitones, "
        f"words {wrong / max(1, count):.1%} of {count}, DistillMOS {np.mean(natural):.2f}{more}"
    )
    kept.write_text(said)
    print(said, flush=True)


if __name__ == "__main__":
    app()
