"""Files that appear whole under their name or not at all. Knows nothing of what is in them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PART = ".part"  # the ending of a file on its way


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A new empty file beside `target` to be filled; it takes the name when the block ends well."""
    part = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}{PART}")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield part
        sync(part)
        os.replace(part, target)
        sync(target.parent)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def write_whole(target: Path, data: bytes) -> None:
    """Write a file in one go, safe against a crash in the middle."""
    with replacing(target) as part:
        part.write_bytes(data)


def sync(path: Path) -> None:
    """Wait until a file or a folder is on the disk; where folders cannot be asked, go on."""
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR
    try:
        descriptor = os.open(path, flags)
    except OSError:
        if path.is_dir():  # Windows opens no folders
            return
        raise
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
