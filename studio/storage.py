"""Shared parts of stores on disk: safe ids, plain files, cleanup after a crash.

Files are written by the engine's `atomic_replace` and `write_atomic`.
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
STALE = 3600.0  # seconds after which an unfinished file is deleted


def new_id(now: float | None = None) -> str:
    """A unique id that sorts by time: 20261120-101530-3f9a2c41…."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{secrets.token_hex(8)}"


def is_safe_id(value: object) -> bool:
    """Whether it is a safe file name."""
    return isinstance(value, str) and SAFE_ID.fullmatch(value) is not None


def is_plain_file(path: Path) -> bool:
    """Whether it is a regular file and no link."""
    return path.is_file() and not path.is_symlink()


def plain_files(folder: Path, suffix: str) -> Iterator[Path]:
    """Files of a folder whose names are safe ids, sorted."""
    for path in sorted(folder.glob(f"*{suffix}")):
        if is_safe_id(path.name[: -len(suffix)]) and is_plain_file(path):
            yield path


def sweep_unfinished(folder: Path) -> None:
    """Delete files that a crash left unfinished; recent ones may still be written."""
    for path in folder.glob(f".*{PARTIAL_SUFFIX}"):
        with suppress(OSError):
            if is_stale(path):
                path.unlink()


def is_stale(path: Path) -> bool:
    """Whether nobody writes it any more. Raises OSError where it is gone."""
    return time.time() - path.stat().st_mtime > STALE


def read_sound(path: Path) -> Pcm:
    pcm, _ = soundfile.read(path, dtype="int16")
    return np.asarray(pcm, np.int16)


def count_samples(path: Path) -> int:
    """The number of samples, from the header."""
    return int(soundfile.info(path).frames)
