"""Recordings as the model gets them, each file read once: each press of Clone needs them all.

Voices of them are kept by the engine. Knows no components.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from engine import Recording, load_reference_audio

KEPT: Final = 10  # as many as make one voice; of a minute each they are 58 MB


def recording_at(path: str) -> Recording:
    """Raises InvalidAudio."""
    try:
        state = Path(path).stat()
    except (OSError, ValueError):
        return load_reference_audio(path)  # which says what is wrong
    return _loaded(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=KEPT)
def _loaded(path: str, changed: int, size: int) -> Recording:
    return load_reference_audio(path)
