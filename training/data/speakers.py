"""The speakers: mixtures of Kokoro's styles, moved along four axes, and the named ones.

Mixtures of whole styles stay natural, so the speakers fill the space between them. Five Japanese
styles came first, and are the first five shares; `styles.json` has all 54: how high each speaks,
and its place, by which mixture of the five it is nearest to and by what it differs from that. The
teacher moves pitch inside its network, and the vocal tract (formants) by resampling. The ranges are
those that a judge of naturalness bore (training/experiments/2026-11-24-natural-teacher.md). No
samples here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

_STYLES = json.loads(Path(__file__).with_name("styles.json").read_text())
TIMBRES = tuple(_STYLES)
FIRST_STYLES = 5  # in the order of all earlier trainings
PITCHES = (260.0, 221.0, 219.0, 316.0, 90.0)  # Hz: medians of what the network says of each
PITCHES += tuple(each["hertz"] for each in _STYLES.values())[FIRST_STYLES:]
PLACES = tuple(tuple(each["axes"]) for each in _STYLES.values())
MALE_STYLE = TIMBRES.index("jm_kumo")  # the one man of the first five
MALE_STYLES = tuple(index for index, name in enumerate(TIMBRES) if name[1] == "m")
SEED = 20_261_124
FIRST, HELD_OUT = 600, 60  # beside the named ones
MORE, WIDE = 1_500, 1_200  # drawn later: more of the same, and such as are rare among mixtures
OTHERS = 2_400  # mixtures of all styles, those of English speakers more often
ENGLISH_ODDS = 4  # beside a style of another language
FORMANTS, PACE = 5, 3  # an octave of each, on its axis
# Mixtures of men and of everybody: how many are men, and how often a style takes part in others.
MEN, MALE_SHARE = 0.42, (0.65, 1.0)  # share of the speakers, and what kumo has of such a one
STYLE_ODDS = (4, 3, 1, 1, 1.5)
SINGLE_STYLE = 0.15  # of the other speakers have one style, as many again three, the rest two
PITCH, PITCH_OF_MEN = (0.84, 1.2), (0.9, 1.35)
TRACT, TEMPO, TILT = (0.94, 1.07), (0.8, 1.22), 1.5
# The wide styles: a cloned speaker may have any pitch with any timbre. By these the encoder
# learns to hear a voice's pitch, which in mixtures is nearly given by the styles. The teacher bears
# that: alpha at 0.45 of its pitch has DistillMOS 3.8, kumo at 2.2 times its own 4.2.
WIDE_PITCH, WIDE_TRACT, WIDE_TILT, WIDE_HERTZ = (0.45, 2.2), (0.85, 1.18), 2.8, (80.0, 380.0)
TRACT_SCALED = 0.35  # of the speakers have another tract: it costs more naturalness than a mixture


@dataclass(frozen=True)
class Speaker:
    """A voice. `tract` scales formants, `pace` stretches time, `tilt` is dB an octave, `spread` is
    how lively the pitch is."""

    name: str
    shares: tuple[float, ...]  # of each style, one in all
    pitch: float = 1.0  # times what the mixture has
    tract: float = 1.0
    pace: float = 1.0
    tilt: float = 0.0
    spread: float = 1.0
    about: str = ""

    @property
    def hertz(self) -> float:
        """About how high it speaks."""
        logs = (share * math.log(pitch) for share, pitch in zip(self.shares, PITCHES, strict=True))
        return math.exp(sum(logs)) * self.pitch

    def axes(self) -> list[float]:
        """About -1 … 1 each: pitch, formants, pace, tilt; then the shares."""
        height, drawl = math.log2(self.tract) * FORMANTS, math.log2(self.pace) * PACE
        return [math.log2(self.hertz / 140), height, drawl, self.tilt / 2, *self.place()]

    def place(self) -> list[float]:
        """The index of the mixture among the styles."""
        used = [(share, place) for share, place in zip(self.shares, PLACES, strict=True) if share]
        return [sum(share * place[axis] for share, place in used) for axis in range(len(PLACES[0]))]

    def man(self) -> float:
        """The share of men's styles."""
        return sum(self.shares[style] for style in MALE_STYLES)


def _named(name: str, about: str, mixture: dict[str, float], **moved: float) -> Speaker:
    return Speaker(name, mixed(mixture), **moved, about=about)


def mixed(mixture: dict[str, float]) -> tuple[float, ...]:
    """The shares of a mixture such as {"alpha": 0.5, "kumo": 0.5}."""
    shares = tuple(mixture.get(name.split("_")[1], 0.0) for name in TIMBRES)
    return tuple(share / sum(shares) for share in shares)


# Mixtures are easier to understand than alpha alone: of clara's words in alpha's style a recogniser
# heard 10 % wrong, of a mixture 2; who speaks a quarter slower is misheard a quarter less
# (training/experiments/2026-11-27-other-vectors.md). They are brighter than the teacher by 0.6 to
# 1.4 dB an octave: above 6 kHz the model loses 2 dB of what it is taught, and a judge of
# naturalness minds (training/experiments/2026-11-26-brighter-voices.md).
NAMED = (
    _named("clara", "A clear, friendly woman.",
           {"alpha": 0.35, "gongitsune": 0.35, "kumo": 0.3}, pitch=1.21, pace=1.12, tilt=1.0),
    _named("robert", "A calm man with a full, warm tone.",
           {"kumo": 0.75, "alpha": 0.15, "gongitsune": 0.1}, tilt=0.7, pace=1.14),
    _named("angus", "A friendly man, quick and easy to follow.",
           {"kumo": 0.65, "alpha": 0.05, "gongitsune": 0.3}, pitch=1.02, pace=1.0, tilt=1.2),
    _named("karl", "A matter-of-fact man, crisp and even.",
           {"kumo": 0.85, "alpha": 0.15}, pitch=1.05, pace=1.1, tilt=1.4, spread=0.85),
    _named("iris", "A warm, unhurried woman.",
           {"alpha": 0.25, "gongitsune": 0.55, "kumo": 0.2}, pitch=1.07, pace=1.18, tilt=0.8),
    _named("vera", "A girl's voice, high, bright and wide awake.",
           {"alpha": 0.35, "gongitsune": 0.35, "kumo": 0.3}, pitch=1.5, tract=1.03, pace=1.08,
           tilt=1.2, spread=1.2),
    _named("june", "An older woman, low and soft, for late evenings.",
           {"alpha": 0.35, "gongitsune": 0.35, "kumo": 0.3}, pitch=0.98, pace=1.22, tilt=0.6),
    _named("otto", "A deep, slow man, a born narrator.",
           {"kumo": 0.9, "alpha": 0.1}, pitch=0.92, tract=0.97, pace=1.2, tilt=0.8),
    _named("felix", "A young man in good spirits.",
           {"kumo": 0.65, "alpha": 0.25, "gongitsune": 0.1}, pitch=1.15, pace=1.02, tilt=1.4,
           spread=1.25),
    _named("noah", "An even, plain man's voice, good for news.",
           {"kumo": 0.8, "gongitsune": 0.2}, pace=1.1, tilt=1.3),
    _named("fergus", "An old man telling stories.",
           {"kumo": 0.75, "nezumi": 0.1, "gongitsune": 0.15}, pitch=0.88, tract=0.98, pace=1.22,
           tilt=0.7, spread=1.2),
    _named("milo", "A boy's voice, light and lively.",
           {"alpha": 0.3, "gongitsune": 0.2, "kumo": 0.5}, pitch=1.22, tract=1.05, pace=1.04,
           tilt=1.4, spread=1.2),
)  # fmt: skip
FIRST_OTHER = len(NAMED) + FIRST + MORE + WIDE  # before it all are mixtures of the first styles
TRAINED = FIRST_OTHER + OTHERS


def _shares(random: Random, man: bool) -> list[float]:
    if man:
        male = random.uniform(*MALE_SHARE)
        return [
            each * (1 - male) + male * (index == MALE_STYLE)
            for index, each in enumerate(_random_shares(random))
        ]
    return _random_shares(random)


def _random_shares(random: Random) -> list[float]:
    """Shares of one to three of the first styles."""
    chance = random.random()
    count = 1 if chance < SINGLE_STYLE else 3 if chance < 2 * SINGLE_STYLE else 2
    shares = [0.0] * FIRST_STYLES
    while sum(share > 0 for share in shares) < count:
        style = random.choices(range(FIRST_STYLES), STYLE_ODDS)[0]
        shares[style] = shares[style] or random.uniform(0.1, 1)
    return [share / sum(shares) for share in shares]


def _other_speaker(random: Random, index: int) -> Speaker:
    """A mixture of one to three styles of all, of men or of women."""
    man = random.random() < MEN
    styles = [style for style in range(len(TIMBRES)) if (style in MALE_STYLES) == man]
    odds = [ENGLISH_ODDS if TIMBRES[style][0] in "ab" else 1 for style in styles]
    shares = [0.0] * len(TIMBRES)
    for style in random.choices(styles, odds, k=random.choice((1, 1, 2, 2, 3))):
        shares[style] += random.uniform(0.2, 1)
    total = sum(shares)
    shared = tuple(share / total for share in shares)
    lowest, highest = (end / Speaker("", shared).hertz for end in WIDE_HERTZ)
    least, most = 0.75, 1.35
    return Speaker(
        name=f"voice{index:04d}",
        shares=shared,
        pitch=_log_uniform(random, (max(least, lowest), min(most, highest))),
        tract=_log_uniform(random, WIDE_TRACT) if random.random() < TRACT_SCALED else 1.0,
        pace=_log_uniform(random, TEMPO),
        tilt=random.uniform(-TILT, TILT),
    )


def _padded(shares: Sequence[float]) -> tuple[float, ...]:
    return (*shares, *(0.0 for _ in TIMBRES[len(shares) :]))


def _log_uniform(random: Random, ends: Sequence[float]) -> float:
    return math.exp(random.uniform(*(math.log(end) for end in ends)))


def _random_speaker(random: Random, index: int) -> Speaker:
    man = random.random() < MEN
    return Speaker(
        name=f"voice{index:04d}",
        shares=_padded(_shares(random, man)),
        pitch=_log_uniform(random, PITCH_OF_MEN if man else PITCH),
        tract=_log_uniform(random, TRACT) if random.random() < TRACT_SCALED else 1.0,
        pace=_log_uniform(random, TEMPO),
        tilt=random.uniform(-TILT, TILT),
    )


def _wide_speaker(random: Random, index: int) -> Speaker:
    shares = _padded(_shares(random, random.random() < MEN))
    hertz = Speaker("", shares).hertz
    lowest, highest = (end / hertz for end in WIDE_HERTZ)
    least, most = WIDE_PITCH
    return Speaker(
        name=f"voice{index:04d}",
        shares=shares,
        pitch=_log_uniform(random, (max(least, lowest), min(most, highest))),
        tract=_log_uniform(random, WIDE_TRACT),
        pace=_log_uniform(random, TEMPO),
        tilt=random.uniform(-WIDE_TILT, WIDE_TILT),
    )


@lru_cache(1)
def _all() -> tuple[Speaker, ...]:
    random = Random(SEED)
    last = len(NAMED) + FIRST + HELD_OUT
    first = [_random_speaker(random, index) for index in range(len(NAMED), last)]
    more = [_random_speaker(random, index) for index in range(last, last + MORE)]
    wide = [_wide_speaker(random, index) for index in range(last + MORE, last + MORE + WIDE)]
    start = last + MORE + WIDE
    others = [_other_speaker(random, index) for index in range(start, start + OTHERS)]
    return *NAMED, *first[:FIRST], *more, *wide, *others, *first[FIRST:]


def all_speakers() -> list[Speaker]:
    """The named voices, the others that are trained on, then those held out."""
    return list(_all())


def held_out() -> list[Speaker]:
    return all_speakers()[TRAINED:]


@dataclass(frozen=True)
class Style:
    """A manner of speaking relative to the speaker's usual one: its pace, how lively its pitch is
    and how high; and how people ask for it."""

    name: str
    pace: float
    spread: float
    pitch: float
    instructions: tuple[str, ...]


STYLES = (
    Style("plain", 1.0, 1.0, 1.0, ()),
    Style(
        "slow",
        1.35,
        1.0,
        1.0,
        (
            "Speak slowly.", "Slowly, please.", "Take your time.", "Slow down.", "very slowly",
            "Speak at a slow pace.", "Read this slowly and clearly.", "Talk slower.",
            "Say it slowly.", "In a slow, calm way.", "without hurry", "slower", "calm and slow",
            "As if you had all the time in the world.",
        ),
    ),
    Style(
        "fast",
        0.74,
        1.0,
        1.0,
        (
            "Speak fast.", "Quickly, please.", "In a hurry.", "Speed up.", "very fast",
            "Speak at a fast pace.", "Read this quickly.", "Talk faster.", "Say it quickly.",
            "faster", "Rapidly, without a break.", "You are in a rush.", "hurried",
        ),
    ),
    Style(
        "lively",
        0.95,
        1.6,
        1.08,
        (
            "Speak with excitement.", "Lively and expressive.", "Full of energy.", "Very cheerful.",
            "Cheerful and bright.", "Happily.", "In a happy, excited voice.", "Sound delighted.",
            "with joy", "excited", "Say it cheerfully.", "Enthusiastic, please.",
            "With a smile in your voice.", "energetic", "Be dramatic.",
        ),
    ),
    Style(
        "flat",
        1.05,
        0.3,
        0.97,
        (
            "Speak in a flat tone.", "Monotone, please.", "Without emotion.", "Like a robot.",
            "Bored.", "In a bored voice.", "No expression at all.", "flat", "dull and even",
            "Say it without any feeling.", "Deadpan.", "Serious and monotonous.",
            "Keep your voice level.",
        ),
    ),
)  # fmt: skip
