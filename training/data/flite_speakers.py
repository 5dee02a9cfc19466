"""The speakers: synthetic voices along labelled axes, and the named ones.

A speaker is a flite voice, or a voice between two of them, moved along four axes: pitch, vocal
tract (formants), pace and brightness. The ranges are those in which pocketsphinx still recognised
the words (training/README.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

SEED = 20_261_120
MADE, BETWEEN, HELD_OUT = 640, 320, 60  # MADE includes the named ones
TRAINED = MADE + BETWEEN
FORMANTS, PACE = 5, 3  # an octave of each, on its axis


@dataclass(frozen=True)
class Base:
    """A flite voice: natural pitch, usable factors, formant height, relative duration."""

    voice: str
    pitch: float
    pitches: tuple[float, float]
    tracts: tuple[float, float]
    height: float  # formants relative to an average man
    drawl: float  # duration of a sentence relative to the other voices
    steady: bool = False  # flite cannot change its pitch, which follows the formants

    def pitched(self, factor: float, tract: float) -> float:
        return self.pitch * (tract if self.steady else factor)


BASES = (
    Base("slt", 172.0, (0.72, 1.40), (0.82, 0.98), 1.16, 0.98),
    Base("rms", 98.0, (0.74, 1.70), (0.95, 1.18), 1.00, 1.12, steady=True),
    Base("awb", 128.0, (0.68, 1.50), (0.95, 1.18), 0.98, 0.99),
    Base("kal16", 108.0, (0.76, 1.50), (0.95, 1.15), 1.00, 0.92),
)
BASE = {base.voice: index for index, base in enumerate(BASES)}


@dataclass(frozen=True)
class Speaker:
    """A voice. `tract` scales formants, `pace` stretches time, `tilt` is dB per octave."""

    name: str
    base: int
    pitch: float  # Hz
    tract: float
    pace: float
    tilt: float
    about: str = ""
    other: int | None = None  # the second base of a voice between two
    share: float = 0.0  # of the second base

    @property
    def height(self) -> float:
        return _of_both(self.base, self.other, self.share, lambda base: base.height) * self.tract

    @property
    def drawl(self) -> float:
        """Relative duration of a sentence at pace 1."""
        return _of_both(self.base, self.other, self.share, lambda base: base.drawl) * self.pace

    def axes(self) -> list[float]:
        """About -1 … 1 each: pitch, formants, pace, tilt; then the share of each flite voice."""
        kind = [0.0] * len(BASES)
        kind[self.base] += 1 - self.share
        kind[self.base if self.other is None else self.other] += self.share
        pitch, height = math.log2(self.pitch / 140), math.log2(self.height) * FORMANTS
        return [pitch, height, math.log2(self.pace) * PACE, self.tilt / 2, *kind]


def _of_both(first: int, second: int | None, share: float, of: Callable[[Base], float]) -> float:
    """A base's value, interpolated between two."""
    there = of(BASES[first if second is None else second])
    return between(of(BASES[first]), there, share)


def between(one: float, two: float, share: float) -> float:
    """Interpolate between two factors."""
    return float(one ** (1 - share) * two**share)


def _named(
    name: str, voice: str, factors: tuple[float, float, float, float], about: str
) -> Speaker:
    base = BASE[voice]
    pitch, tract, pace, tilt = factors
    return Speaker(name, base, BASES[base].pitched(pitch, tract), tract, pace, tilt, about)


NAMED = (
    _named("clara", "slt", (1.00, 0.95, 1.00, 0.0), "A clear American woman."),
    _named("robert", "rms", (1.00, 1.00, 1.00, 0.0), "A calm American man with a full tone."),
    _named("angus", "awb", (1.00, 1.00, 1.00, 0.0), "A Scottish man, quick and friendly."),
    _named("karl", "kal16", (1.00, 1.00, 1.00, 0.0), "The classic talking computer."),
    _named("iris", "slt", (0.90, 0.90, 1.08, -0.8), "A warm, unhurried woman's voice."),
    _named("vera", "slt", (1.22, 0.97, 0.93, 1.0), "High and bright, always awake."),
    _named("june", "slt", (0.78, 0.85, 1.15, -1.2), "Low and soft, for late evenings."),
    _named("otto", "rms", (0.80, 0.97, 1.12, -0.8), "Deep and slow, a born narrator."),
    _named("felix", "rms", (1.30, 1.10, 0.92, 0.6), "A young man in good spirits."),
    _named("noah", "rms", (1.10, 1.04, 1.00, 0.0), "Even and plain, good for news."),
    _named("fergus", "awb", (0.78, 0.97, 1.10, -0.8), "An old Scottish storyteller."),
    _named("milo", "awb", (1.28, 1.14, 0.95, 0.7), "Light and lively, almost a boy."),
)


def _made(random: Random, index: int) -> Speaker:
    base = random.choices(range(len(BASES)), (34, 26, 26, 14))[0]
    range_ = BASES[base]
    low, high = (math.log(factor) for factor in range_.pitches)
    factor, tract = math.exp(random.uniform(low, high)), random.uniform(*range_.tracts)
    return Speaker(
        name=f"voice{index:04d}",
        base=base,
        pitch=range_.pitched(factor, tract),
        tract=tract,
        pace=_pace(random),
        tilt=random.uniform(-2, 2),
    )


HIGHEST = 1.12  # formants of a voice between two: pocketsphinx misses words above
# Pairs and their weights; a voice with itself is there for its pitch, which flite cannot change.
WAYS = (("slt", "rms", 3), ("slt", "awb", 3), ("rms", "awb", 2), ("rms", "rms", 2))


def _between(random: Random, index: int) -> Speaker:
    first, second = random.choices([way[:2] for way in WAYS], [way[2] for way in WAYS])[0]
    base, other, share = BASE[first], BASE[second], random.uniform(0.1, 0.9)

    def drawn(of: Callable[[Base], tuple[float, float]]) -> float:
        """Uniform in a range between both voices' ranges."""
        low, high = (_of_both(base, other, share, lambda b, i=i: of(b)[i]) for i in (0, 1))
        return math.exp(random.uniform(math.log(low), math.log(high)))

    natural = _of_both(base, other, share, lambda each: each.pitch)
    height = _of_both(base, other, share, lambda each: each.height)
    return Speaker(
        name=f"between{index:04d}",
        base=base,
        pitch=natural * drawn(lambda each: each.pitches),
        tract=min(drawn(lambda each: each.tracts), HIGHEST / height),
        pace=_pace(random),
        tilt=random.uniform(-2, 2),
        other=other,
        share=share,
    )


def _pace(random: Random) -> float:
    return 2 ** random.uniform(-0.32, 0.36)


def on_the_way(first: Speaker, second: Speaker, share: float) -> Speaker:
    """The voice at `share` of the way between two speakers with different bases."""
    if share in (0, 1):
        return second if share else first

    return Speaker(
        name=f"{first.name} to {second.name}",
        base=first.base,
        pitch=between(first.pitch, second.pitch, share),
        tract=between(first.tract, second.tract, share),
        pace=between(first.pace, second.pace, share),
        tilt=first.tilt + share * (second.tilt - first.tilt),
        other=second.base,
        share=share,
    )


def everyone() -> list[Speaker]:
    """The named voices, the others used in training, then the held-out ones."""
    random, ways = Random(SEED), Random(SEED + 1)
    made = [_made(random, index) for index in range(len(NAMED), MADE + HELD_OUT)]
    mixed = [_between(ways, index) for index in range(BETWEEN)]
    known = MADE - len(NAMED)
    return [*NAMED, *made[:known], *mixed, *made[known:]]


def held_out() -> list[Speaker]:
    return everyone()[TRAINED:]


@dataclass(frozen=True)
class Style:
    """How a sentence is spoken relative to the speaker's usual way."""

    name: str
    pace: float
    spread: float
    instructions: tuple[str, ...]


STYLES = (
    Style("plain", 1.0, 1.0, ()),
    Style(
        "slow",
        1.30,
        1.0,
        ("Speak slowly.", "Slowly, please.", "Take your time.", "Slow down.", "speak very slowly"),
    ),
    Style(
        "fast",
        0.77,
        1.0,
        ("Speak fast.", "Quickly, please.", "In a hurry.", "Speed up.", "speak very fast"),
    ),
    Style(
        "lively",
        1.0,
        1.8,
        ("Speak with excitement.", "Lively and expressive.", "Full of energy.", "Very cheerful."),
    ),
    Style(
        "flat",
        1.0,
        0.3,
        ("Speak in a flat tone.", "Monotone, please.", "Without emotion.", "Like a robot."),
    ),
)
