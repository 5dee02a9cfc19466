"""Since when each sound of a project has been unused: `superseded.json`, replaced as a whole.

A sound is deleted only after it was found unused for a whole period, so that what a change brings
back is still there. Knows keys and times; the caller knows what is in use.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pydantic import TypeAdapter

from engine import write_atomic
from studio.storage import Timestamp

FILE = "superseded.json"
_TIMES = TypeAdapter(dict[str, Timestamp])  # by key


def note_superseded(folder: Path, keys: Collection[str], now: float) -> dict[str, float]:
    """Note that exactly these keys are unused now; returns since when each has been."""
    known = _read(folder / FILE)
    times = {key: min(known.get(key, now), now) for key in sorted(keys)}
    if times != known:
        write_atomic(folder / FILE, _TIMES.dump_json(times))
    return times


def _read(path: Path) -> dict[str, float]:
    try:
        return _TIMES.validate_json(path.read_bytes())
    except (OSError, ValueError):  # missing or damaged: all times begin now
        return {}
