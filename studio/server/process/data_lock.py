"""One server a data folder: two would not see each other's takes, and overwrite them.

The processes of a cluster share it: they know of each other, and one of them alone has the page.

The lock is the kernel's (flock), so that it ends with its process, however that ends; the file's
text says who has it and is never trusted for more. Knows no settings.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from engine import InvalidSetting

NAME: Final = ".server-lock"
LONGEST: Final = 1000  # bytes of the text
BYTE: Final = 1 << 20  # that Windows locks: beyond the text, which others read
TAKEN: Final = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)

log = logging.getLogger("timbre")


@contextmanager
def data_lock(folder: Path, shared: bool = False) -> Iterator[None]:
    """Hold the folder, alone or with others that share it.

    Raises InvalidSetting, which says who has it, or why it cannot be there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / NAME).open("a+b", buffering=0)
    except OSError as error:  # then nobody can write there
        if not folder.is_dir():
            raise _impossible(folder, error) from error
        log.warning("%s is not locked: %s.", folder, error.strerror)
        yield
        return
    with file:
        try:
            _lock(file, shared)
        except OSError as error:
            if error.errno in TAKEN:
                raise _taken(folder, _holder(file)) from error
            log.warning("%s cannot be locked: %s.", folder, error.strerror)
        else:
            file.truncate(0)
            file.write(_process_id())
        yield


def _lock(file: BinaryIO, shared: bool) -> None:
    if sys.platform == "win32":
        import msvcrt

        file.seek(BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        file.seek(0)
    else:
        import fcntl

        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(file, kind | fcntl.LOCK_NB)


def _process_id() -> bytes:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode()


def _holder(file: BinaryIO) -> dict[str, str]:
    """The holder as the file describes it; question marks for what is missing."""
    try:
        file.seek(0)
        found = json.loads(file.read(LONGEST))
    except (OSError, ValueError):
        found = None
    fields = found if isinstance(found, dict) else {}
    return {key: str(fields.get(key, "?"))[:100] for key in ("pid", "host", "since")}


def _impossible(folder: Path, error: OSError) -> InvalidSetting:
    return InvalidSetting(
        "The folder {folder} cannot be made ({reason}). Choose another one with --data.",
        folder=folder,
        reason=error.strerror,
    )


def _taken(folder: Path, holder: dict[str, str]) -> InvalidSetting:
    return InvalidSetting(
        "{folder} is in use by another server (process {pid} on {host}, since {since}). "
        "Stop that one, or choose another folder with --data.",
        folder=folder,
        **holder,
    )
