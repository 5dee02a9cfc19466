"""`python -m bench.quality.voice_similarity --model DIR`: checks clones, blends and designs.

Clones of held-out speakers should be nearest to their own reference, by speaker vector, and by
pitch and long-term spectrum; blends are checked in nine steps, designs by axis. Needs flite for the
references. `--teacher` measures flite instead of the model, the upper limit; `--judge` uses another
checkpoint's speaker encoder. Prints one JSON line last.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from threading import Lock
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer

from bench.quality.acoustic_features import centroid, long_term, pitch
from bench.quality.intelligibility import REFERENCE, SENTENCES, speaking, together
from bench.quality.wer import Listener
from engine import Blend, Design, Engine, Preset, Voice, Waveform, open_engine
from training.data.flite_speakers import NAMED, Speaker, held_out, on_the_way
from training.data.synthesize_corpus import say
from training.data.voice_descriptions import ENDS

Speaks: TypeAlias = Callable[[str, int], Waveform]  # text, seed
Clones: TypeAlias = Callable[[Speaker, str], Speaks]  # speaker, transcript
Way: TypeAlias = Callable[[float], Speaks]  # share of the second voice
Between: TypeAlias = Callable[[str, str], Way]
FLITE = Lock()
STEPS = 9
SENTENCES_EACH = 3  # per clone
# Pairs that differ by a fifth or more in pitch and in brightness, and between which flite's own
# voices are in order (`--teacher`).
PAIRS = (
    ("robert", "june"),
    ("clara", "noah"),
    ("iris", "otto"),
    ("vera", "fergus"),
    ("milo", "angus"),
)
AXES: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[Waveform], float]]] = {
    "pitch": (*ENDS["pitch"], pitch),
    "pace": (*ENDS["pace"], len),
    "tone": (*ENDS["tone"], centroid),
}
DESIGNS = ("{} voice, please", "Somebody who sounds {}", "Read this with a {} voice")


def cosine(a: Waveform, b: Waveform) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def nearest(own: int, scores: list[float]) -> bool:
    """Whether the speaker's own reference has the highest score."""
    return int(np.argmax(scores)) == own


def likeness(a: Waveform, b: Waveform) -> float:
    """Similarity by pitch in octaves and by the long-term spectrum."""
    octaves = abs(np.log2(max(pitch(a), 1) / max(pitch(b), 1)))
    return -float(octaves * 3 + np.abs(long_term(a) - long_term(b)).mean())


def sounding(engine: Engine, voice: Voice) -> Speaks:
    speak = speaking(engine, voice)
    return lambda text, seed: speak(text, seed)[0]


def cloned(engine: Engine, speaker: Speaker, transcript: str) -> Speaks:
    return sounding(engine, engine.clone(say(REFERENCE, speaker).wave, transcript))


def blended(engine: Engine, first: str, second: str) -> Way:
    def way(share: float) -> Speaks:
        return sounding(engine, Blend(((Preset(first), 1 - share), (Preset(second), share))))

    return way


def taught(speaker: Speaker, _: str = "") -> Speaks:
    """flite, one sentence at a time."""

    def by(text: str, _: int) -> Waveform:
        with FLITE:
            return say(text, speaker).wave

    return by


def taught_between(first: str, second: str) -> Way:
    ends = [next(who for who in NAMED if who.name == name) for name in (first, second)]
    return lambda share: taught(on_the_way(ends[0], ends[1], share))


def clones(
    judge: Engine, by: Clones, speakers: list[Speaker], texts: list[str], context: bool
) -> dict[str, Any]:
    references = [say(REFERENCE, speaker).wave for speaker in speakers]
    vectors = [judge.clone(wave).vector for wave in references]
    right, alike = [], []
    for own, speaker in enumerate(speakers):
        for wave in together(by(speaker, REFERENCE if context else ""), texts):
            vector = judge.clone(wave).vector
            right.append(nearest(own, [cosine(vector, other) for other in vectors]))
            alike.append(nearest(own, [likeness(wave, other) for other in references]))
    return {
        "sentences": len(right),
        "by_vector_percent": round(100 * float(np.mean(right)), 1),
        "by_sound_percent": round(100 * float(np.mean(alike)), 1),
        "chance_percent": round(100 / len(speakers), 1),
    }


def blend(way: Way, texts: list[str]) -> dict[str, Any]:
    """A blend in steps: how pitch and centroid change at each step."""
    listener = Listener()
    steps = [step(way(number / (STEPS - 1)), texts, listener) for number in range(STEPS)]
    pitches, brights, errors = zip(*steps, strict=True)
    return {
        "pitch_in_order": in_order(pitches),
        "centroid_in_order": in_order(brights),
        "of_steps": STEPS,
        "pitch_moves_right": one_way(pitches),
        "centroid_moves_right": one_way(brights),
        "of_moves": STEPS - 1,
        "pitches": [round(each, 1) for each in pitches],
        "centroids": [round(each) for each in brights],
        "errors_percent": [round(each, 1) for each in errors],
    }


def step(by: Speaks, texts: list[str], listener: Listener) -> tuple[float, float, float]:
    """Mean pitch, mean centroid and word errors in percent at one step."""
    waves = list(together(by, texts))
    counts = [listener.errors(text, wave) for text, wave in zip(texts, waves, strict=True)]
    wrong, words = map(sum, zip(*counts, strict=True))
    pitches, brights = [pitch(wave) for wave in waves], [centroid(wave) for wave in waves]
    return float(np.mean(pitches)), float(np.mean(brights)), 100 * wrong / words


def blends(between: Between, texts: list[str]) -> list[dict[str, Any]]:
    return [{"voices": pair} | blend(between(*pair), texts) for pair in PAIRS]


def one_way(values: Sequence[float]) -> int:
    """The number of steps in the direction of the whole change."""
    whole = values[-1] - values[0]
    return sum((b - a) * whole > 0 for a, b in pairwise(values))


def in_order(values: Sequence[float]) -> int:
    """The length of the longest subsequence in the direction of the whole change."""
    whole, longest = values[-1] - values[0], []
    for index, value in enumerate(values):
        before = [longest[j] for j in range(index) if (value - values[j]) * whole > 0]
        longest.append(1 + max(before, default=0))
    return max(longest)


def designs(engine: Engine, text: str, count: int) -> dict[str, Any]:
    """Pairs of instructions for the two ends of an axis: whether the sound changes that way."""
    random, right = Random(1), dict.fromkeys(AXES, 0)
    for index in range(count):
        axis = list(AXES)[index % len(AXES)]
        low, high, measure = AXES[axis]
        frame = random.choice(DESIGNS)
        ends = [
            measure(sounding(engine, Design(frame.format(random.choice(words))))(text, index))
            for words in (low, high)
        ]
        right[axis] += ends[0] < ends[1]
    share = round(100 * sum(right.values()) / count, 1)
    return {"pairs": count, "right": right, "right_percent": share}


def check(
    engine: Engine | None, judge: Engine, cast: list[Speaker], lines: list[str], a_step: int
) -> dict[str, Any]:
    """All checks of a model, or of flite (None)."""
    texts = lines[:SENTENCES_EACH]
    by: Clones = partial(cloned, engine) if engine else taught
    between: Between = partial(blended, engine) if engine else taught_between
    report: dict[str, Any] = {
        "clone": clones(judge, by, cast, texts, context=False),
        "blends": blends(between, lines[:a_step]),
    }
    if engine:
        report["clone_in_context"] = clones(judge, by, cast, texts, context=True)
        report["design"] = designs(engine, texts[0], 40)
    return report


def main(
    model: Annotated[str, typer.Option(help="a checkpoint: folder or hub id")],
    speakers: Annotated[int, typer.Option(min=2, max=60)] = 20,
    a_step: Annotated[int, typer.Option(min=1, help="sentences at each step of a blend")] = 24,
    teacher: Annotated[bool, typer.Option(help="let flite answer: the measures' ceiling")] = False,
    judge: Annotated[str, typer.Option(help="another checkpoint, to tell voices by")] = "",
    device: str = "auto",
) -> None:
    """Check clones, blends and designs."""
    told = {"model": model, "judge": judge or model, "teacher": teacher}
    engine = open_engine([model], device=device)
    judging = open_engine([judge], device=device) if judge else engine
    try:
        lines, cast = SENTENCES.read_text().splitlines(), held_out()[:speakers]
        report = check(None if teacher else engine, judging, cast, lines, a_step)
    finally:
        engine.close()
        judging.close()
    typer.echo(json.dumps(told | report))


if __name__ == "__main__":
    typer.run(main)
