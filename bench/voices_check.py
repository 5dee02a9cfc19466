"""`python -m bench.voices_check --model DIR`: are voices kept, mixed and made as asked?

Clones of held-out speakers (nearer to their own reference than to any other's, by speaker
vector, and by pitch and long-term spectrum), blends in nine steps, and designs by axis.
Needs flite for the references. `--teacher` lets flite itself answer in the model's place:
the ceiling of the measures; `--judge` another checkpoint's speaker encoder in its own one's
place. Prints one JSON line last.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer

from bench.intelligibility import REFERENCE, SENTENCES, speak
from bench.sound_measures import centroid, long_term, pitch
from bench.words import Listener
from engine import Blend, Design, Engine, Preset, Waveform, open_engine
from training.speakers import NAMED, Speaker, held_out, on_the_way
from training.speech import say
from training.wording import BRIGHT, DARK, FAST, HIGH, LOW, SLOW

Say: TypeAlias = Callable[[str, Speaker, str, int], Waveform]  # text, speaker, transcript, seed
STEPS = 9
PAIRS = (
    ("robert", "june"),
    ("clara", "angus"),
    ("iris", "otto"),
    ("vera", "noah"),
    ("felix", "fergus"),
)
AXES: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[Waveform], float]]] = {
    "pitch": (LOW, HIGH, pitch),
    "pace": (FAST, SLOW, len),
    "tone": (DARK, BRIGHT, centroid),
}
DESIGNS = ("{} voice, please", "Somebody who sounds {}", "Read this with a {} voice")


def cosine(a: Waveform, b: Waveform) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def nearest(own: int, scores: list[float]) -> bool:
    """Whether the own reference has the highest score."""
    return int(np.argmax(scores)) == own


def likeness(a: Waveform, b: Waveform) -> float:
    """By ear's first impression: pitch in octaves and the long-term spectrum."""
    octaves = abs(np.log2(max(pitch(a), 1) / max(pitch(b), 1)))
    return -float(octaves * 3 + np.abs(long_term(a) - long_term(b)).mean())


def clones(
    judge: Engine, make: Say, speakers: list[Speaker], texts: list[str], context: bool
) -> dict[str, Any]:
    references = [say(REFERENCE, speaker).wave for speaker in speakers]
    vectors = [judge.clone(wave).vector for wave in references]
    right, alike = [], []
    for own, speaker in enumerate(speakers):
        for seed, text in enumerate(texts):
            wave = make(text, speaker, REFERENCE if context else "", seed)
            vector = judge.clone(wave).vector
            right.append(nearest(own, [cosine(vector, other) for other in vectors]))
            alike.append(nearest(own, [likeness(wave, other) for other in references]))
    return {
        "sentences": len(right),
        "by_vector_percent": round(100 * float(np.mean(right)), 1),
        "by_sound_percent": round(100 * float(np.mean(alike)), 1),
        "chance_percent": round(100 / len(speakers), 1),
    }


def blend(
    first: str, second: str, texts: list[str], make: Callable[[float, str, int], Waveform]
) -> dict[str, Any]:
    """From one voice to another: which way pitch and centroid go at each step."""
    listener, rows = Listener(), []
    for step in range(STEPS):
        waves = [make(step / (STEPS - 1), text, seed) for seed, text in enumerate(texts)]
        counts = [listener.errors(text, wave) for text, wave in zip(texts, waves, strict=True)]
        wrong, words = map(sum, zip(*counts, strict=True))
        pitches, brights = [pitch(w) for w in waves], [centroid(w) for w in waves]
        rows.append((float(np.mean(pitches)), float(np.mean(brights)), 100 * wrong / words))
    pitches, brights, errors = zip(*rows, strict=True)
    return {
        "voices": [first, second],
        "pitch_steps_right": _one_way(pitches),
        "centroid_steps_right": _one_way(brights),
        "of_steps": STEPS - 1,
        "pitches": [round(each, 1) for each in pitches],
        "centroids": [round(each) for each in brights],
        "errors_percent": [round(each, 1) for each in errors],
    }


def blends(engine: Engine | None, texts: list[str]) -> list[dict[str, Any]]:
    """Of all pairs, by the engine, or without one by flite's voices between theirs."""

    def made(first: str, second: str) -> Callable[[float, str, int], Waveform]:
        ends = [next(who for who in NAMED if who.name == name) for name in (first, second)]

        def make(share: float, text: str, seed: int) -> Waveform:
            if engine is None:
                return say(text, on_the_way(ends[0], ends[1], share)).wave
            parts = ((Preset(first), 1 - share), (Preset(second), share))
            return speak(engine, text, Blend(parts), seed)[0]

        return make

    return [blend(first, second, texts, made(first, second)) for first, second in PAIRS]


def _one_way(values: tuple[float, ...]) -> int:
    """Steps that go the way of the whole."""
    whole = values[-1] - values[0]
    return sum((b - a) * whole > 0 for a, b in pairwise(values))


def designs(engine: Engine, text: str, count: int) -> dict[str, Any]:
    """Pairs of instructions for the two ends of an axis: does the sound move that way?"""
    random, right = Random(1), dict.fromkeys(AXES, 0)
    for index in range(count):
        axis = list(AXES)[index % len(AXES)]
        low, high, measure = AXES[axis]
        frame = random.choice(DESIGNS)
        ends = [
            measure(speak(engine, text, Design(frame.format(random.choice(words))), index)[0])
            for words in (low, high)
        ]
        right[axis] += ends[0] < ends[1]
    share = round(100 * sum(right.values()) / count, 1)
    return {"pairs": count, "right": right, "right_percent": share}


def main(
    model: Annotated[str, typer.Option(help="a checkpoint: folder or hub id")],
    speakers: Annotated[int, typer.Option(min=2, max=60)] = 20,
    sentences: Annotated[int, typer.Option(min=1, max=20)] = 3,
    a_step: Annotated[int, typer.Option(min=1, help="sentences at each step of a blend")] = 24,
    teacher: Annotated[bool, typer.Option(help="let flite answer: the measures' ceiling")] = False,
    judge: Annotated[str, typer.Option(help="another checkpoint, to tell voices by")] = "",
    device: str = "auto",
) -> None:
    """Check clones, blends and designs."""
    lines = SENTENCES.read_text().splitlines()
    texts = lines[:sentences]
    engine = open_engine([model], device=device)
    ears = open_engine([judge], device=device) if judge else engine

    def cloned(text: str, speaker: Speaker, transcript: str, seed: int) -> Waveform:
        voice = engine.clone(say(REFERENCE, speaker).wave, transcript)
        return speak(engine, text, voice, seed)[0]

    made: Say = (lambda text, speaker, *_: say(text, speaker).wave) if teacher else cloned
    cast = held_out()[:speakers]
    report: dict[str, Any] = {"model": model, "judge": judge or model, "teacher": teacher}
    try:
        report["clone"] = clones(ears, made, cast, texts, context=False)
        report["blends"] = blends(None if teacher else engine, lines[:a_step])
        if not teacher:
            report["clone_in_context"] = clones(ears, made, cast, texts, context=True)
            report["design"] = designs(engine, texts[0], 40)
    finally:
        engine.close()
        ears.close()
    typer.echo(json.dumps(report))


if __name__ == "__main__":
    typer.run(main)
