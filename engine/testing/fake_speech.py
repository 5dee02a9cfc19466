"""Fake codes, computed from seed, text and frame number, and tones for them."""

from __future__ import annotations

import numpy as np

from engine.plan import Prompt
from engine.types import CODEBOOKS, FRAME_SAMPLES, Codes, Pcm

EDGE = 240  # samples over which a tone fades in and out: 10 ms
LOUDNESS = 8000
LOWEST, TONES = 12, 37  # cycles a frame: 150 to 600 Hz


def fake_frames(prompt: Prompt) -> int:
    """The frames of a text: one per character."""
    return max(2, len(prompt.text_ids))


def fake_codes(prompt: Prompt, seed: int, frame: int) -> Codes:
    """The codes of one frame; they depend on the text known by then."""
    known = len(prompt.text_ids)
    if prompt.layout == "streamed":
        beside = 1 + (len(prompt.reference.codes) if prompt.reference else 0)
        told = prompt.reference.text_ids if prompt.reference else ()
        known = max(0, min(known, beside + frame + 1 - len(told)))
    last = prompt.text_ids[known - 1] if known else 0
    state = np.uint64((seed * 1_000_003 + known * 8191 + last * 131 + frame * 7919) % 2**63)
    mixed = (state + np.arange(1, CODEBOOKS + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(40)) % np.uint64(2048)).astype(np.int64)


def fake_tone(codes: Codes) -> Pcm:
    """The audio of a frame: a short tone."""
    cycles = LOWEST + int(codes[0]) % TONES
    wave = np.sin(2 * np.pi * cycles * np.arange(FRAME_SAMPLES) / FRAME_SAMPLES)
    wave[:EDGE] *= np.linspace(0, 1, EDGE)
    wave[-EDGE:] *= np.linspace(1, 0, EDGE)
    return (LOUDNESS * wave).astype(np.int16)


_TABLE = [fake_tone(np.array([tone])) for tone in range(TONES)]


def fake_sound(codes: Codes) -> Pcm:
    """The audio of several frames."""
    return np.concatenate([_TABLE[int(code) % TONES] for code in codes[:, 0]])
