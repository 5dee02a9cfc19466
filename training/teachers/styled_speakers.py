"""Who speaks with Kokoro's voice: mixtures of its styles, moved along four axes.

Mixtures of whole styles stay natural, so the speakers fill the space between five; pitch is moved
inside the network, the vocal tract (formants) by resampling. Ranges are those that a judge of
naturalness bore (docs/experiments/2026-11-24-natural-teacher.md). Knows nothing of samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from training.data.speakers import FORMANTS, PACE

STYLES = ("jf_alpha", "jf_gongitsune", "jf_nezumi", "jf_tebukuro", "jm_kumo")
PITCHES = (260.0, 221.0, 219.0, 316.0, 90.0)  # Hz: medians of what the network says of each
SEED = 20_261_124
MADE, HELD_OUT = 600, 60
OFTEN = (4, 3, 1.5, 1.5, 4)  # how often a style takes part
ALONE = 0.15  # of the speakers have one style, as many again three, the others two
PITCH, TRACT, TEMPO, TILT, SPREAD = (0.82, 1.2), (0.93, 1.08), (0.8, 1.2), 1.5, (0.75, 1.4)
MOVED = 0.4  # of the speakers have another tract: it costs more naturalness than a mixture


@dataclass(frozen=True)
class StyledSpeaker:
    """`tract` scales formants, `pace` stretches time, `tilt` is dB an octave, `spread` is how
    lively the pitch is."""

    name: str
    shares: tuple[float, ...]  # of each style, one in all
    pitch: float = 1.0  # times what the mixture has
    tract: float = 1.0
    pace: float = 1.0
    tilt: float = 0.0
    spread: float = 1.0

    @property
    def hertz(self) -> float:
        """About how high it speaks."""
        logs = (share * math.log(own) for share, own in zip(self.shares, PITCHES, strict=True))
        return math.exp(sum(logs)) * self.pitch

    def axes(self) -> list[float]:
        """About -1 … 1 each: pitch, formants, pace, tilt; then the shares."""
        height, drawl = math.log2(self.tract) * FORMANTS, math.log2(self.pace) * PACE
        return [math.log2(self.hertz / 140), height, drawl, self.tilt / 2, *self.shares]


def _shares(random: Random) -> tuple[float, ...]:
    chance = random.random()
    count = 1 if chance < ALONE else 3 if chance < 2 * ALONE else 2
    shares = [0.0] * len(STYLES)
    while sum(share > 0 for share in shares) < count:
        style = random.choices(range(len(STYLES)), OFTEN)[0]
        shares[style] = shares[style] or random.uniform(0.1, 1)
    return tuple(share / sum(shares) for share in shares)


def _between(random: Random, ends: Sequence[float]) -> float:
    return math.exp(random.uniform(*(math.log(end) for end in ends)))


def _made(random: Random, index: int) -> StyledSpeaker:
    return StyledSpeaker(
        name=f"styled{index:04d}",
        shares=_shares(random),
        pitch=_between(random, PITCH),
        tract=_between(random, TRACT) if random.random() < MOVED else 1.0,
        pace=_between(random, TEMPO),
        tilt=random.uniform(-TILT, TILT),
        spread=_between(random, SPREAD),
    )


def pure() -> list[StyledSpeaker]:
    """The styles as they are."""
    return [StyledSpeaker(name, tuple(float(each == name) for each in STYLES)) for name in STYLES]


def everyone() -> list[StyledSpeaker]:
    """The styles themselves, those that are trained on, then those held out."""
    random = Random(SEED)
    return [*pure(), *(_made(random, index) for index in range(len(STYLES), MADE + HELD_OUT))]


def trained() -> list[StyledSpeaker]:
    return everyone()[:MADE]


def held_out() -> list[StyledSpeaker]:
    return everyone()[MADE:]
