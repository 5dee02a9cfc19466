"""Mixes speaker embeddings, and parses the written form of a blend: `robert:0.7,clara:0.3`.

Pure numpy on vectors; knows no voices, checkpoints or files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.errors import InvalidSetting, InvalidVoice
from engine.types import Vector

Method: TypeAlias = Literal["linear", "spherical"]
Weighted: TypeAlias = tuple[tuple[str, float], ...]
Rows: TypeAlias = NDArray[np.float64]  # [voices, width]

MAX_PARTS = 16
MAX_WEIGHT = 1_000_000.0
MAX_TEXT = 4_096  # characters of a written blend
RESERVED = "+,:()"  # separators of names and weights
_ROUNDS, _STILL, _OPPOSITE = 64, 1e-13, 1e-9
_NUMBER = r"\d+(?:\.\d*)?(?:e-?\d+)?|\.\d+(?:e-?\d+)?"
_PART = re.compile(
    rf"([^{re.escape(RESERVED)}]+)(?:\(\s*({_NUMBER})\s*\)|:\s*({_NUMBER}))?\s*", re.I
)


def mix(vectors: Sequence[Vector], weights: Sequence[float], method: Method = "linear") -> Vector:
    """Mix vectors; the result's norm is the weighted mean of their norms.

    The order of the parts does not matter, and a voice mixed with itself is unchanged.
    """
    shares = _shares(weights, len(vectors))
    rows = _rows(vectors)[shares > 0]  # [voices, width]
    shares = shares[shares > 0]
    norms = np.linalg.norm(rows, axis=1)
    if not norms.all():
        raise InvalidVoice("A voice of zeros cannot be blended. Make it again from its recording.")
    blended = _METHODS[method](rows, norms, shares)
    return (blended * float(shares @ norms)).astype(np.float32)


def parse_blend(text: str) -> Weighted:
    """`robert:0.7,clara:0.3`, `robert(2)+clara(1)` or plain `robert`; no weight means 1."""
    if len(text) > MAX_TEXT:
        raise InvalidSetting("A blend is written in at most {most:,} characters.", most=MAX_TEXT)
    pieces = re.split(r"[+,]", text)
    if len(pieces) > MAX_PARTS:
        raise InvalidSetting(
            "A blend has at most {most} voices; this one has {count}.",
            most=MAX_PARTS,
            count=len(pieces),
        )
    parts = tuple(_part(piece, text) for piece in pieces)
    check_weights([weight for _, weight in parts])
    return parts


def format_blend(parts: Weighted) -> str:
    """The text that `parse_blend` reads back as these parts."""
    return ",".join(f"{name}:{weight!r}" for name, weight in parts)


def check_weights(weights: Sequence[float]) -> None:
    """Raise InvalidSetting for weights out of range, or all zero."""
    if not all(0 <= weight <= MAX_WEIGHT for weight in weights):  # refuses NaN as well
        raise InvalidSetting("A weight is a number from 0 to {most:,.0f}.", most=MAX_WEIGHT)
    if not any(weight > 0 for weight in weights):
        raise InvalidSetting("At least one weight of a blend must be above 0.")


def _part(piece: str, text: str) -> tuple[str, float]:
    match = _PART.fullmatch(piece.strip())
    name = match[1].strip() if match else ""
    if not match or not name:
        raise InvalidSetting(
            "The blend '{text}' cannot be read. Write it like 'robert:0.7,clara:0.3'.",
            text=text[:80],
        )
    return name, float(match[2] or match[3] or 1.0)


def _shares(weights: Sequence[float], count: int) -> NDArray[np.float64]:
    if count == 0 or len(weights) != count:
        raise InvalidSetting("A blend needs at least one voice, and one weight for each.")
    check_weights(weights)
    shares = np.asarray(weights, np.float64) / max(weights)  # tiny weights must not underflow
    return np.asarray(shares / shares.sum(), np.float64)


def _rows(vectors: Sequence[Vector]) -> Rows:
    widths = {np.shape(vector) for vector in vectors}
    if len(widths) != 1 or len(next(iter(widths))) != 1:
        sizes = ", ".join(sorted({str(np.size(vector)) for vector in vectors}))
        raise InvalidVoice(
            "Only vectors of one width can be blended; these have {sizes} numbers.", sizes=sizes
        )
    rows = np.asarray(vectors, np.float64)
    if not np.isfinite(rows).all():
        raise InvalidVoice("A voice has numbers that are not finite. Make it again.")
    return rows


def _linear(rows: Rows, norms: Rows, shares: Rows) -> Rows:
    """The direction of the weighted mean."""
    return _unit(shares @ rows, norms.min())


def _spherical(rows: Rows, norms: Rows, shares: Rows) -> Rows:
    """The point on the sphere with the least weighted sum of squared angles to all voices.

    For two voices this is slerp; for more it does not depend on their order.
    """
    points = rows / norms[:, None]
    mean = _unit(shares @ points, 1.0)
    for _ in range(_ROUNDS):
        step = shares @ _log(mean, points)
        mean = _exp(mean, step)
        if np.linalg.norm(step) < _STILL:
            break
    return mean


def _log(base: Rows, points: Rows) -> Rows:
    """The logarithmic map: tangents at `base` towards the points. [voices, width]"""
    cosines = points @ base
    across = points - cosines[:, None] * base
    sines = np.linalg.norm(across, axis=1)
    angles = np.arctan2(sines, cosines)
    scale = np.divide(angles, sines, out=np.ones_like(sines), where=sines > 0)
    return np.asarray(across * scale[:, None])


def _exp(base: Rows, tangent: Rows) -> Rows:
    """The exponential map: the point reached from `base` along a tangent."""
    angle = float(np.linalg.norm(tangent))
    if angle == 0:
        return base
    moved = np.cos(angle) * base + np.sin(angle) / angle * tangent
    return np.asarray(moved / np.linalg.norm(moved))


def _unit(vector: Rows, scale: float) -> Rows:
    norm = float(np.linalg.norm(vector))
    if norm <= _OPPOSITE * scale:
        raise InvalidVoice("These voices cancel each other out. Change the weights a little.")
    return np.asarray(vector / norm)


_METHODS: dict[Method, Callable[[Rows, Rows, Rows], Rows]] = {
    "linear": _linear,
    "spherical": _spherical,
}
