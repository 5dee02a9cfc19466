"""What a first start keeps for later ones: packed weights, machine code for GPUs, and which kernels
were right here.

Everything is kept by what it was made of, a checkpoint's content or a processor and the sources of
kernels, so nothing has to be told that it is out of date. Reading a checkpoint only to know its
digest takes seconds, so that is kept too, by the file's place, size and times. Whatever is damaged,
or belongs to another user, counts as not there. Knows no networks.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from engine.atomic import PARTIAL_SUFFIX, write_atomic
from engine.checkpoints.files import open_regular
from engine.errors import TimbreError
from engine.worker.loading.packed_file import DamagedFile, Forms, map_arrays, write_arrays

LARGEST_NOTE = 1 << 16  # bytes
LARGEST_BINARY = 16 << 20
MOST_THREADS = 1024
OWN = 0o644  # permissions: with the umask of many desktops a group could write, too
STALE_SECONDS = 3600  # after which nobody writes an unfinished file any more
UNUSED_SECONDS = 60 * 86400  # after which arrays are those of a model or version that is gone
_PIECE = 1 << 20
_DIGEST = hashlib.sha256().digest_size

log = logging.getLogger("timbre")


class StartCache:
    """A folder of this user's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def digest(self, *paths: Path) -> str:
        """A digest of the files' contents."""
        whole = hashlib.sha256()
        for path in paths:
            with open_regular(path) as file:
                identity = _identity(path, os.fstat(file.fileno()))
                known = self._read(f"digest-{identity}").get("sha256")
                if not isinstance(known, str):
                    digest = hashlib.sha256()
                    while piece := file.read(_PIECE):
                        digest.update(piece)
                    known = digest.hexdigest()
                    self._write(f"digest-{identity}", {"sha256": known})
            whole.update(known.encode())
        return whole.hexdigest()

    def arrays(self, kind: str, key: str, forms: Forms) -> dict[str, Tensor] | None:
        """What was kept with `keep`, mapped; None: nothing, or nothing that can be used."""
        path = self._packed(kind, key)
        try:
            state = path.lstat()
            if not _is_own(state) or not stat.S_ISREG(state.st_mode):
                raise DamagedFile(f"{path} is not a file of this user alone")
            note = f"checked-{_identity(path, state)}"
            trusted = bool(self._read(note))
            found = map_arrays(path, key, forms, trusted)
            if not trusted:
                self._write(note, {"checked": True})
            with suppress(OSError):
                os.utime(self.folder / f"{note}.json")  # when they were used last
        except FileNotFoundError:
            return None
        except (DamagedFile, OSError) as error:
            log.warning("Made anew: %s.", error)
            return None
        return found

    def keep(self, kind: str, key: str, arrays: Mapping[str, Tensor]) -> None:
        """Keep arrays, if the folder can be written to."""
        path = self._packed(kind, key)
        with suppress(TimbreError, OSError):
            self._make_folder()
            self._clear(kind)
            write_arrays(path, key, arrays, OWN)
            self._write(f"checked-{_identity(path, path.lstat())}", {"checked": True})

    def forget(self, kind: str, key: str) -> None:
        """Delete what was kept with `keep`; what is mapped stays in memory until it is let go."""
        with suppress(OSError):
            self._packed(kind, key).unlink()

    def proof(self, key: str) -> dict[str, int] | None:
        """With how many threads each kernel was fastest, where it gave the plain form's results;
        None: that is not known."""
        found = self._read(self.proof_file(key).stem)
        threads = {
            name: count
            for name, count in found.items()
            if type(count) is int and 1 <= count <= MOST_THREADS
        }
        return threads if threads and len(threads) == len(found) else None

    def prove(self, key: str, threads: Mapping[str, int]) -> None:
        self._write(self.proof_file(key).stem, dict(threads))

    def proof_file(self, key: str) -> Path:
        return self.folder / f"kernels-{_name(key)}.json"

    def seconds(self, key: str) -> dict[str, float]:
        """How long some things took here; empty: that is not known."""
        found = self._read(f"seconds-{_name(key)}")
        right = all(isinstance(each, float) and 0 < each < math.inf for each in found.values())
        return found if right else {}

    def keep_seconds(self, key: str, seconds: Mapping[str, float]) -> None:
        self._write(f"seconds-{_name(key)}", dict(seconds))

    def binary(self, key: str) -> bytes | None:
        """What was kept with `keep_binary`; None: nothing, or not as it was written."""
        path = self._binary(key)
        try:
            if not _is_own(path.lstat()):
                return None
            with open_regular(path) as file:
                digest, code = file.read(_DIGEST), file.read(LARGEST_BINARY)
        except (OSError, TimbreError):
            return None
        return code if hashlib.sha256(code).digest() == digest else None

    def keep_binary(self, key: str, code: bytes) -> None:
        with suppress(TimbreError, OSError):
            self._make_folder()
            self._clear("binary")
            write_atomic(self._binary(key), hashlib.sha256(code).digest() + code, OWN)

    def _binary(self, key: str) -> Path:
        return self.folder / f"binary-{_name(key)}.cubin"

    def _packed(self, kind: str, key: str) -> Path:
        return self.folder / f"{kind}-{_name(key)}.packed"

    def _read(self, name: str) -> dict[str, Any]:
        """A note; empty where there is none of this user's."""
        path = self.folder / f"{name}.json"
        try:
            if not _is_own(path.lstat()):
                return {}
            with open_regular(path) as file:
                found = json.loads(file.read(LARGEST_NOTE))
        except (OSError, ValueError, RecursionError, TimbreError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, name: str, note: Mapping[str, Any]) -> None:
        with suppress(TimbreError, OSError):
            self._make_folder()
            write_atomic(self.folder / f"{name}.json", json.dumps(note).encode(), OWN)

    def is_writable(self) -> bool:
        """Whether anything can be kept."""
        with suppress(OSError):
            self._make_folder()
        return os.access(self.folder, os.W_OK | os.X_OK)

    def _clear(self, kind: str) -> None:
        """Remove what processes left unfinished that were ended while they wrote, and what no
        start has used for long."""
        for part in self.folder.glob(f".{kind}-*{PARTIAL_SUFFIX}"):
            with suppress(OSError):
                if part.lstat().st_mtime < time.time() - STALE_SECONDS:
                    part.unlink()
        for path in self.folder.glob("*.packed"):
            with suppress(OSError):
                note = self.folder / f"checked-{_identity(path, path.lstat())}.json"
                if (
                    note if note.exists() else path
                ).lstat().st_mtime < time.time() - UNUSED_SECONDS:
                    path.unlink()
                    note.unlink()

    def _make_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _identity(path: Path, state: os.stat_result) -> str:
    """Another one for every change of a file, and for every copy."""
    numbers = state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
    return _name(f"{path.absolute()} {numbers}")


def _is_own(state: os.stat_result) -> bool:
    """Whether nobody but this user, or the system, can have written a file."""
    if not hasattr(os, "getuid"):
        return True
    return state.st_uid in (0, os.getuid()) and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


class KernelProof(NamedTuple):
    """Whether kernels gave the plain form's results here, with these weights and sources."""

    cache: StartCache
    key: str

    def known(self) -> dict[str, int] | None:
        """Threads by kernel; None: that was not tried."""
        return self.cache.proof(self.key)

    def keep(self, threads: Mapping[str, int]) -> None:
        self.cache.prove(self.key, threads)

    @property
    def file(self) -> Path:
        return self.cache.proof_file(self.key)
