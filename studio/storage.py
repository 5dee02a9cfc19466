"""What everything kept on disk shares: safe ids, plain files, and sweeping up after a crash.

Files are written by the engine's `atomic_replace` and `write_atomic`. Knows no takes, no scripts.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
import soundfile
from pydantic import Field

from engine import PARTIAL_SUFFIX, Pcm

# Seconds since 1970, up to the year 9999: what `datetime` can show.
Timestamp: TypeAlias = Annotated[float, Field(ge=0, lt=253_402_300_800)]
SAFE_ID = re.compile(r"[0-9a-z][0-9a-z-]{0,63}")
STALE = 3600.0  # seconds after which an unfinished file belongs to nobody


def new_id(now: float | None = None) -> str:
    """Sortable by time, and never given twice: 20261120-101530-3f9a2c41…."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{secrets.token_hex(8)}"


def is_safe_id(value: object) -> bool:
    """Can it be a file's name without leading anywhere else?"""
    return isinstance(value, str) and SAFE_ID.fullmatch(value) is not None


def is_plain_file(path: Path) -> bool:
    """A file of its own, not a link that leads elsewhere."""
    return path.is_file() and not path.is_symlink()


def plain_files(folder: Path, suffix: str) -> Iterator[Path]:
    """Files of a folder with a safe id for a name, in the order of their names."""
    for path in sorted(folder.glob(f"*{suffix}")):
        if is_safe_id(path.name[: -len(suffix)]) and is_plain_file(path):
            yield path


def sweep_unfinished(folder: Path) -> None:
    """Drop what a crash left half written; a recent file may still be in somebody's hands."""
    for path in folder.glob(f".*{PARTIAL_SUFFIX}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE:
                path.unlink()


def read_sound(path: Path) -> Pcm:
    pcm, _ = soundfile.read(path, dtype="int16")
    return np.asarray(pcm, np.int16)


def count_samples(path: Path) -> int:
    """From the header alone."""
    return int(soundfile.info(path).frames)
