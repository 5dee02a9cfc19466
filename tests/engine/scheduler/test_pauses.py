"""Speech that is heard in pieces is cut at pauses, and nothing of it is lost or moved."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.scheduler.pauses import split
from engine.thresholds import LEAST_PIECE
from engine.types import CODEBOOKS, FRAME_SAMPLES, Chunk


def sound(*parts: tuple[float, float], loudness: float = 8000) -> NDArray[np.int16]:
    """Tones and (loudness 0) silence: seconds and loudness of each."""
    random = np.random.default_rng(0)
    pieces = [random.normal(0, loud * loudness, round(seconds * 24_000)) for seconds, loud in parts]
    return np.concatenate(pieces).clip(-32768, 32767).astype(np.int16)


def chunks(pcm: NDArray[np.int16], size: int = 4) -> list[Chunk]:
    frames = len(pcm) // FRAME_SAMPLES
    codes = np.arange(frames)[:, None].repeat(CODEBOOKS, 1)
    return [
        Chunk(number, pcm[at * FRAME_SAMPLES : (at + size) * FRAME_SAMPLES], codes[at : at + size])
        for number, at in enumerate(range(0, frames, size))
    ]


def heard(pcm: NDArray[np.int16]) -> tuple[list[Chunk], list[Chunk]]:
    """Pieces, and what stays held, as chunks come one by one."""
    held: list[Chunk] = []
    pieces, loudest = [], 0.0
    for chunk in chunks(pcm):
        piece, held, loudest = split([*held, chunk], loudest)
        pieces += [piece] if piece else []
    return pieces, held


@pytest.mark.parametrize("loudness", [300, 8000])
def test_pieces_end_inside_pauses(loudness: float) -> None:
    parts = (1.0, 1.0), (0.3, 0.0), (1.4, 0.7), (0.25, 0.01), (0.9, 1.0)
    pieces, _ = heard(sound(*parts, loudness=loudness))
    ends = np.cumsum([piece.seconds for piece in pieces])
    assert len(ends) == 2
    assert 1.06 <= ends[0] <= 1.24
    assert 2.76 <= ends[1] <= 2.89


def test_a_consonant_is_no_pause() -> None:
    pieces, held = heard(sound((0.6, 1.0), (0.09, 0.0), (0.6, 1.0)))
    assert not pieces
    assert sum(chunk.frames for chunk in held) == 16


def test_nothing_is_lost() -> None:
    pcm = sound((0.9, 1.0), (0.3, 0.0), (2.2, 0.8), (0.4, 0.0), (1.0, 1.0))
    pieces, held = heard(pcm)
    whole = [*pieces, *held]
    joined = np.concatenate([chunk.pcm for chunk in whole])
    np.testing.assert_array_equal(joined, pcm[: len(joined)])
    codes = np.concatenate([chunk.codes for chunk in whole])[:, 0]
    np.testing.assert_array_equal(codes, np.arange(len(pcm) // FRAME_SAMPLES))
    assert all(piece.frames >= LEAST_PIECE for piece in pieces)


def test_speech_without_a_pause_is_cut_where_it_is_quietest() -> None:
    pieces, _ = heard(sound((1.0, 1.0), (0.16, 0.3), (1.0, 1.0)))
    assert 1.0 <= pieces[0].seconds <= 1.16
