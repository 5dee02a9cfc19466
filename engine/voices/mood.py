"""Moods: how a voice changes, as a shift in the space of speaker vectors.

The algebra, in one place. A voice V with moods M at strengths s is V + sum(s M), brought back to
the norm of V. So a strength of 0 is V to the bit, A + (B - A) points where B does, the order of
moods does not matter, and a blend of voices with moods is the blend with their weighted moods
(`engine/voices/routing.py` writes both in one form first). Pure numpy; knows no checkpoints and no
files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from engine.errors import InvalidSetting, InvalidVoice
from engine.types import Capabilities, Mood, Vector

MAX_STRENGTH = 1.5
MAX_MOODS = 8  # of one voice
MAX_PAIRS = 1_000
_CANCELLED = 1e-6  # of the voice's norm


@dataclass(frozen=True, eq=False)
class LearnedShift:
    """The mean shift of pairs, and how far the pairs agree."""

    shift: Vector
    pairs: int
    spread: float  # of the pairs' shifts around their mean, as a share of the mean's norm
    agreement: float  # mean cosine between the shifts of two pairs; 1 for a single pair


def with_moods(vector: Vector, moods: Iterable[tuple[Mood, float]]) -> Vector:
    """A speaker vector with moods at strengths; its norm stays. Raises InvalidVoice."""
    terms = [(mood.shift, strength) for mood, strength in moods if strength]
    if not terms:
        return vector
    if any(np.shape(shift) != np.shape(vector) for shift, _ in terms):
        sizes = ", ".join(sorted({str(np.size(shift)) for shift, _ in terms}))
        raise InvalidVoice(
            "The mood has {sizes} numbers and the voice {width}: it was learned for another model.",
            sizes=sizes,
            width=np.size(vector),
        )
    terms.sort(key=lambda term: (term[0].tobytes(), term[1]))  # any order gives the same bits
    base = np.asarray(vector, np.float64)
    moved = base + sum(strength * np.asarray(shift, np.float64) for shift, strength in terms)
    norm, reached = float(np.linalg.norm(base)), float(np.linalg.norm(moved))
    if not np.isfinite(reached) or reached <= _CANCELLED * norm or not norm:
        raise InvalidVoice("This mood cancels the voice out. Use less of it.")
    return (moved * (norm / reached)).astype(np.float32)


def learn_shift(pairs: Sequence[tuple[Vector, Vector]]) -> LearnedShift:
    """The shift from plain voices to the same voices in a mood: (plain, moody) pairs.

    Raises InvalidVoice.
    """
    if not 1 <= len(pairs) <= MAX_PAIRS:
        raise InvalidVoice("A mood is learned from 1 to {most:,} pairs.", most=MAX_PAIRS)
    if len({np.shape(vector) for pair in pairs for vector in pair}) != 1:
        raise InvalidVoice("The voices of a mood's pairs must be of one model.")
    sides = np.asarray(pairs, np.float64)  # [pairs, 2, width]
    if not np.isfinite(sides).all():
        raise InvalidVoice("A voice has numbers that are not finite. Make it again.")
    shifts = sides[:, 1] - sides[:, 0]  # [pairs, width]
    norms, shift = np.linalg.norm(shifts, axis=1), shifts.mean(0)
    size = float(np.linalg.norm(shift))
    if not norms.all() or not size:
        raise InvalidVoice(
            "The plain and the moody voices are the same: there is nothing to learn."
        )
    spread = float(np.sqrt(np.square(shifts - shift).sum(1).mean())) / size
    units = shifts / norms[:, None]
    cosines = [float(units[a] @ units[b]) for a, b in combinations(range(min(len(units), 200)), 2)]
    agreement = float(np.mean(cosines)) if cosines else 1.0
    return LearnedShift(shift.astype(np.float32), len(pairs), spread, agreement)


def speaker_space(able: Capabilities) -> str:
    """Which checkpoints' speaker vectors mean the same: those of one size and width."""
    return f"{able.size}-{able.width}"


def check_strength(strength: float) -> float:
    """The same strength. Raises InvalidSetting."""
    if not 0 <= strength <= MAX_STRENGTH:  # refuses NaN as well
        raise InvalidSetting(
            "A mood's strength is a number from 0 to {most:g}, not {strength}.",
            most=MAX_STRENGTH,
            strength=strength,
        )
    return strength


def check_moods(moods: Sequence[tuple[Mood, float]]) -> None:
    """Raises InvalidSetting for too many moods, or strengths out of range."""
    if len(moods) > MAX_MOODS:
        raise InvalidSetting("A voice has at most {most} moods.", most=MAX_MOODS)
    for _, strength in moods:
        check_strength(strength)
