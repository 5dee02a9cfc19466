"""Trained voices compared: `python -m bench.gpu.trained_voices speak RECORDINGS OUT`, then
`… judge OUT`.

Trains rows and adapters on recordings with words beside them (docs/own-voice.md) by the recipe of
`training.voice`, and speaks the bench's held-out sentences with what was learned and with the
zero-shot clones: by the mean vector of all recordings, and in the context of one. `rows` and
`adapter` are whole trainings whose best epoch was chosen, as users have them (with `--recogniser`,
by its words too); the other variants are last epochs, with more or less of the data and with or
without the hold. The judges are none that it was trained by (requirements-judges.txt): who it
sounds like, to whom it is nearest (`--among FOLDER`, a voice's recordings each), words,
naturalness, pitch, and whether it ends. Both go on where they stopped, several variants may be made
at once after `--only clones`, and both may run on two machines.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import repeat
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
from engine.voices.voice_format import unpack
from engine.worker.device import pick_device, pick_dtype
from engine.worker.loading.model_loader import load_codec, load_encoder, load_talker
from training.voice import judge as judges
from training.voice.adapter import Adapter
from training.voice.dataset import Dataset, encode, read_segment
from training.voice.export import export_merged
from training.voice.job import JobFolder, Spoken
from training.voice.judge import Recognise
from training.voice.prepare import Way, Wish, make_job
from training.voice.recogniser import open_recogniser
from training.voice.rows import LearnedRows, padding_of
from training.voice.run import GENERAL, VOICE, run
from training.voice.segments import find_recordings
from training.voice.sequences import Line
from training.voice.texts import general_texts
from training.voice.trainer import FIRST, HOLD, Learner, VoiceTrainer
from training.voice.words import word_errors

MINI = Path("presets/mini")
CLONES = "clones"
CONTEXT = 8.0  # seconds of the recording that a clone in context hears
REFERENCES = 4  # recordings of each of the others

app = typer.Typer()


@dataclass(frozen=True, eq=False)
class Person:
    """Whose recordings they are, as the judges hear it."""

    people: Embedding  # [1 + others, width], this one first
    hertz: float


@dataclass(frozen=True)
class Heard:
    """A take, as the judges hear it; `natural` is 0 where there is no sound."""

    words: int
    wrong: int
    likeness: float = 0.0
    nearest: bool = False
    natural: float = 0.0
    pitch: float = 0.0  # Hz; 0: nothing voiced


@dataclass(frozen=True)
class Variant:
    name: str
    way: Way = "rows"
    rows: int = 8
    minutes: float = 10
    hold: float = HOLD
    first: float = FIRST
    chosen: bool = False  # a whole training, its best epoch


VARIANTS = (
    Variant("rows", chosen=True),
    Variant("rows-1min", minutes=1, chosen=True),
    Variant("rows-3min", minutes=3, chosen=True),
    Variant("adapter", way="adapter", chosen=True),
    Variant("adapter-1min", way="adapter", minutes=1, chosen=True),
    Variant("adapter-3min", way="adapter", minutes=3, chosen=True),
    Variant("rows8"),
    Variant("rows8-free", hold=0.0, first=1.0),  # as the published recipes: no hold
    Variant("rows8-held-only", first=0.0),
    Variant("rows8-hold10", hold=10.0),
    Variant("rows32", rows=32),
    Variant("adapter-last", way="adapter"),
    Variant("adapter-free", way="adapter", hold=0.0, first=1.0),
)


def within(lines: Sequence[Spoken], minutes: float) -> int:
    """How many lines the first so many minutes are."""
    return int((np.cumsum([each.seconds for each in lines]) <= 60 * minutes).sum())


def some(dataset: Dataset, minutes: float) -> Dataset:
    """The first so many minutes."""
    spoken = dataset.spoken
    return dataset.without(set(range(within(spoken, minutes), len(spoken))))


def in_context(engine: Engine, job: JobFolder, dataset: Dataset) -> Clone:
    """The clone of the line that is nearest to the length that a clone is best made from."""
    line = min(dataset.spoken, key=lambda each: abs(each.seconds - CONTEXT))
    return engine.clone(read_segment(job.segments / line.file), line.text)


def is_there(place: Path) -> bool:
    return (place / "takes.json").exists()


def speak_all(
    engine: Engine, voice: Clone | Preset, texts: Sequence[str], place: Path, times: int
) -> None:
    """Say each text so many times; the first sound of each is kept, of all whether they ended."""
    if is_there(place):
        return
    place.mkdir(parents=True, exist_ok=True)
    takes = judges.speak(engine, voice, list(texts) * times, "english")
    for number, take in enumerate(takes[: len(texts)]):
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
    only: Annotated[str, typer.Option(help="Variants, with commas; or clones: none.")] = "",
    times: Annotated[int, typer.Option(help="Each sentence so often, to count ends.")] = 1,
    recogniser: Annotated[str, typer.Option(help="faster-whisper's model, to choose by.")] = "",
) -> None:
    """Train and speak."""
    named = {each.name: each for each in VARIANTS}
    wanted = [named[name] for name in only.split(",") if name != CLONES] if only else VARIANTS
    recognise = open_recogniser(recogniser) if recogniser else None
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
        speak_all(engine, clone, texts, out / "clone", times)
        speak_all(engine, in_context(engine, job, dataset), texts, out / "clone-context", times)
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
            if variant.chosen:
                training = whole_training(job, variant, out / variant.name, epochs, recognise)
                say = partial(say_chosen, engine, training)
            else:
                part = some(dataset, variant.minutes)
                learner = learned(variant, part, checkpoint, talker, general, epochs)
                say = partial(say_learned, engine, learner, checkpoint, model)
            print(f"{variant.name}: {time.monotonic() - began:.0f} s of training", flush=True)
            say(texts, out / variant.name, times)


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


def whole_training(
    job: JobFolder, variant: Variant, place: Path, epochs: int, recognise: Recognise | None
) -> JobFolder:
    """A training as users have it, of the same recordings, in a folder of its own."""
    training, asked = JobFolder(place / "job"), job.read()
    lines = [each for each in asked.lines if not each.doubtful]
    part = tuple(lines[: within(lines, variant.minutes)])
    wish = {"way": variant.way, "rows": variant.rows, "epochs": epochs}
    training.write(asked.model_copy(update={"lines": part} | wish))
    with suppress(FileExistsError):
        training.segments.symlink_to(job.segments.resolve())
    print(f"{variant.name}: {run(training.path, recognise).text}", flush=True)
    return training


def say_chosen(
    engine: Engine, training: JobFolder, texts: Sequence[str], place: Path, times: int
) -> None:
    """What no epoch of could be kept says nothing."""
    if training.voice.exists():
        _, voice = unpack(training.voice.read_bytes())
        assert isinstance(voice, Clone)
        speak_all(engine, voice, texts, place, times)
    if training.merged.exists():
        with open_engine([training.merged], device=str(pick_device(None))) as other:
            speak_all(other, Preset(VOICE), texts, place, times)


def say_learned(
    engine: Engine,
    learner: Learner,
    checkpoint: LocalCheckpoint,
    model: Path,
    texts: Sequence[str],
    place: Path,
    times: int,
) -> None:
    capabilities = checkpoint.capabilities
    if isinstance(learner, LearnedRows):
        voice = learner.voice(capabilities.name, capabilities.digest)
        speak_all(engine, voice, texts, place, times)
        return
    with TemporaryDirectory() as folder:
        merged = Path(folder) / "merged"
        export_merged(model, learner, VOICE, merged)
        with open_engine([merged], device=str(pick_device(None))) as other:
            speak_all(other, Preset(VOICE), texts, place, times)


@app.command()
def judge(
    out: Path,
    model: Path = MINI,
    most: int = 100,
    among: Annotated[list[Path] | None, typer.Option(help="A folder of another voice.")] = None,
    workers: Annotated[int, typer.Option(help="Processes that judge.")] = 1,
) -> None:
    """Print a line for the recordings, for these through the codec, and for each variant."""
    job, panel = JobFolder(out / "job"), this_panel()
    lines = [each for each in job.read().lines if not each.doubtful][:most]
    waves = [read_segment(job.segments / each.file) for each in lines]
    who = np.mean([panel.embedding(panel.prepared(wave)) for wave in waves], 0)
    people = np.stack([who, *(voice_of(panel, folder) for folder in among or ())])
    people /= np.linalg.norm(people, axis=1, keepdims=True)
    person = Person(people, median_pitch([acoustic_features.pitch(wave) for wave in waves]))
    spoken = [each.text for each in lines]
    context = multiprocessing.get_context("spawn")  # judges and their threads survive no fork
    with ProcessPoolExecutor(workers, context) as pool:

        def print_judged(
            place: Path, takes: Callable[[], Iterable[tuple[str, Waveform]]], more: str = ""
        ) -> None:
            kept = place.with_name(place.name + ".judged")
            if not kept.exists():
                found = list(pool.map(heard, takes(), repeat(person)))
                kept.write_text(summary(place.name, found, person) + more)
            print(kept.read_text(), flush=True)

        print_judged(out / "recordings", lambda: zip(spoken, waves, strict=True))
        print_judged(out / "codec", lambda: zip(spoken, through_codec(model, waves), strict=True))
        for place in sorted(path.parent for path in out.glob("*/takes.json")):
            takes = json.loads((place / "takes.json").read_text())
            ended = sum(take["finished"] for take in takes)
            kept = partial(kept_takes, place, [take["text"] for take in takes])
            print_judged(place, kept, f", {ended} of {len(takes)} end")


def kept_takes(place: Path, texts: Sequence[str]) -> Iterator[tuple[str, Waveform]]:
    """What was said, where its sound is kept."""
    for number, text in enumerate(texts):
        path = place / f"{number:03d}.flac"
        if path.exists():
            yield text, read_segment(path)


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


@cache
def this_panel() -> Judges:
    """The judges of this process."""
    return Judges()


def heard(take: tuple[str, Waveform], person: Person) -> Heard:
    """What the judges hear in one take."""
    text, wave = take
    wanted = words.spoken_words(text)
    if len(wave) < SAMPLE_RATE // 4:
        return Heard(len(wanted), len(wanted))
    panel = this_panel()
    sound = panel.prepared(wave)
    found = person.people @ panel.embedding(sound)
    return Heard(
        len(wanted),
        word_errors(wanted, words.heard_words(wanted, panel.transcript(sound))),
        float(found[0]),
        bool(found.argmax() == 0),
        panel.naturalness(sound),
        acoustic_features.pitch(wave),
    )


def median_pitch(pitches: Sequence[float]) -> float:
    return float(np.median([each for each in pitches if each > 0] or [0.0]))


def summary(name: str, found: Sequence[Heard], person: Person) -> str:
    sounds = [each for each in found if each.natural]
    hertz = median_pitch([each.pitch for each in sounds])
    apart = semitones(person.hertz, hertz) if hertz and person.hertz else float("nan")
    count = sum(each.words for each in found)
    return (
        f"{name}: likeness {np.mean([each.likeness for each in sounds]):.3f}, nearest to its own "
        f"{np.mean([each.nearest for each in sounds]):.0%} of {len(person.people)}, "
        f"{apart:+.1f} semitones, words {sum(each.wrong for each in found) / max(1, count):.1%} "
        f"of {count}, DistillMOS {np.mean([each.natural for each in sounds]):.2f}"
    )


if __name__ == "__main__":
    app()
