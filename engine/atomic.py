"""Atomic file writes: a file appears under its name complete, or not at all.

And one writer of a folder at a time, of all processes that see it.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from engine.errors import NotSaved
from engine.messages import Message

Held = TypeVar("Held")

PARTIAL_SUFFIX = ".part"  # the ending of a file that is being written
LOCK, LOOK = ".lock", 0.01  # seconds between two looks at a lock that another process has
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def atomic_replace(target: Path, mode: int = 0o666) -> Iterator[Path]:
    """A new empty file beside `target`, renamed to it when the block ends without an exception.

    `mode`: its permissions, less the umask.
    """
    part = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}{PARTIAL_SUFFIX}")
    with explain_write_errors(target):
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        yield part
        with explain_write_errors(target):
            sync(part)
            os.replace(part, target)
            sync(target.parent)
    finally:
        with suppress(OSError):
            part.unlink()


def write_atomic(target: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a file atomically."""
    with atomic_replace(target, mode) as part, explain_write_errors(target):
        part.write_bytes(data)


@contextmanager
def exclusive(folder: Path, looks: int | None = None) -> Iterator[None]:
    """Hold a folder against other processes; not reentrant.

    Where that cannot be (no such folder, a file system without locks, Windows) there is no lock. A
    lock ends with its process, however that ends. `looks`: how often it is asked for, each LOOK
    seconds, before it is given up with NotSaved: its holder may have been stopped. None: for ever.
    """
    file = None
    with suppress(ImportError, OSError):
        import fcntl

        file = (folder / LOCK).open("ab")
        if looks is None:
            fcntl.flock(file, fcntl.LOCK_EX)
        elif not had_within(looks, partial(_locked, file)):
            file.close()
            raise NotSaved("Another program holds {path}. End it, then try again.", path=folder)
    try:
        yield
    finally:
        if file:
            file.close()


def _locked(file: BinaryIO) -> bool:
    import fcntl

    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def had_within(looks: int, ask: Callable[[], Held | None]) -> Held | None:
    """What `ask` has once another process lets go of it; None after so many looks in vain."""
    for _ in range(looks):
        if held := ask():
            return held
        time.sleep(LOOK)
    return None


@contextmanager
def explain_write_errors(target: Path) -> Iterator[None]:
    """Turn an OSError into a NotSaved that says what to do."""
    try:
        yield
    except OSError as error:
        raise NotSaved(_reason(error, target)) from error


def _reason(error: OSError, target: Path) -> Message:
    if error.errno in _FULL:
        return Message(
            "{name} could not be saved: the disk is full. Make room and try again.",
            name=target.name,
        )
    if error.errno in _FORBIDDEN:
        return Message(
            "{folder} may not be written. Allow it, or choose another folder.",
            folder=target.parent,
        )
    return Message(
        "{name} could not be saved ({reason}). Look at the disk and try again.",
        name=target,
        reason=error.strerror,
    )


def sync(path: Path) -> None:
    """Flush a file or a folder to the disk; do nothing for folders that cannot be opened."""
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR
    try:
        descriptor = os.open(path, flags)
    except OSError:
        if path.is_dir():  # Windows cannot open folders
            return
        raise
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def mark_changed(folder: Path) -> None:
    """Give a folder a time of its own, to the nanosecond: clocks of file systems stand still for
    some milliseconds, in which another change would not be seen."""
    now = time.time_ns()
    with suppress(OSError):
        os.utime(folder, ns=(now, now))
