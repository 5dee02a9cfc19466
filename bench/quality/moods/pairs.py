"""Where the moods come from: pairs of voices that differ in one thing.

The teacher's voices have targets that are linear in their axes (`speaker_targets`), so a pair is a
voice that was learned and the same voice moved along axes. What the teacher has no axis for is
tried with pairs of described voices, spoken by the model and read back by its speaker encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import torch

from engine import Clone, Design, Engine, Mood, SpeechRequest, Vector
from engine.voices.mood import LearnedShift, learn_shift, speaker_space
from training.batching.speaker_targets import speaker_targets
from training.data.speakers import TRAINED, Speaker, all_speakers, held_out

PAIRS = 200  # voices of the teacher
SEED = 43
THIRD = 2 ** (3 / 12)  # three semitones
TONE = 2 ** (2 / 12)
SAID = "She opened the window and looked at the street for a while before she answered."
SOFT, FIRM = ("soft", "mellow", "warm"), ("sharp", "clear and bright", "bright")
NOUNS = ("woman", "man", "young woman", "old man")


@dataclass(frozen=True)
class Move:
    """A mood along the teacher's axes. `words` are other names that texts may use: none that ask
    for a style which Mini was taught, like slowly."""

    name: str
    words: str
    to: Callable[[Speaker], Speaker]


def _by(
    pitch: float = 1.0, tract: float = 1.0, pace: float = 1.0, tilt: float = 0.0
) -> Callable[[Speaker], Speaker]:
    return lambda speaker: replace(
        speaker,
        pitch=speaker.pitch * pitch,
        tract=speaker.tract * tract,
        pace=speaker.pace * pace,
        tilt=speaker.tilt + tilt,
    )


MOVES = (
    Move("higher", "high highly", _by(pitch=THIRD)),
    Move("lower", "low lowly deep deeply deeper", _by(pitch=1 / THIRD)),
    Move("brighter", "bright brightly clear clearly", _by(tilt=1.2)),
    Move("darker", "dark darkly", _by(tilt=-1.2)),
    Move("quicker", "", _by(pace=1 / 1.2)),
    Move("slower", "", _by(pace=1.2)),
    Move("older", "old", _by(pitch=1 / TONE, tract=0.96, pace=1.12)),
    Move("younger", "young youthful youthfully", _by(pitch=TONE, tract=1.04, pace=1 / 1.12)),
)
DESCRIBED = (
    ("softer", "soft softly gentle gently", FIRM, SOFT),
    ("firmer", "firm firmly", SOFT, FIRM),
)


def targets(speakers: Sequence[Speaker]) -> list[Vector]:
    """The vectors that the speaker encoder learned for these voices."""
    found = speaker_targets(torch.tensor([each.axes() for each in speakers]))
    return list(found.numpy().astype(np.float32))


def held_out_voices(count: int) -> list[Clone]:
    """Voices that the talker never learned."""
    return [Clone(vector) for vector in targets(held_out()[:count])]


def learn_all(engine: Engine) -> dict[Mood, LearnedShift]:
    """Every mood, and what its pairs say of it."""
    (capabilities,) = engine.capabilities().values()
    space = speaker_space(capabilities)
    speakers = Random(SEED).sample(all_speakers()[:TRAINED], PAIRS)
    plain = targets(speakers)
    learned = {}
    for move in MOVES:
        moved = targets([move.to(each) for each in speakers])
        found = learn_shift(list(zip(plain, moved, strict=True)))
        learned[Mood(move.name, found.shift, space, tuple(move.words.split()))] = found
    for name, words, before, after in DESCRIBED:
        found = learn_shift(_described(engine, before, after))
        learned[Mood(name, found.shift, space, tuple(words.split()))] = found
    return learned


def _described(
    engine: Engine, before: Sequence[str], after: Sequence[str]
) -> list[tuple[Vector, Vector]]:
    """Vectors of described voices, in pairs that differ in one word."""

    def heard(word: str, noun: str) -> Vector:
        request = SpeechRequest(SAID, Design(f"a {word} {noun}"), "english", seed=SEED, live=False)
        pcm = engine.submit(request).collect()
        return engine.clone(pcm.astype(np.float32) / np.float32(32768)).vector

    return [
        (heard(plain, noun), heard(moody, noun))
        for plain, moody in zip(before, after, strict=True)
        for noun in NOUNS
    ]
