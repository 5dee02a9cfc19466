"""Keeps a data folder and an object store the same: s3://bucket/timbre, gs://…, any fsspec address.

What is new on one side is copied to the other, what is gone is removed there too. Objects appear
whole, and local files by a rename. Of all processes that see a folder, one does it. Where both
sides have changed since, the store's stays. Knows files, and nothing of what is in them.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

from engine import InvalidSetting, atomic_replace

KEPT: Final = ("voices", "takes", "scripts")  # folders
TRASH: Final = ".trash"  # the only hidden folder that is kept
STATE, LOCK = ".mirror.json", ".mirror.lock"
ROUND_SECONDS: Final = 0.3
AFTER_ERROR: Final = 5.0  # seconds

Mark: TypeAlias = "list[Any] | None"  # by which a change is seen; None: not there

log = logging.getLogger("timbre")


class Mirror:
    """One folder and one address. `sync` is one round."""

    def __init__(self, folder: Path, address: str) -> None:
        """Raises InvalidSetting."""
        self._folder = folder
        self._store, self._root = _open(address)
        self._same: dict[str, tuple[Mark, Mark]] = {}  # marks when both sides were the same
        with suppress(OSError, ValueError):
            told = json.loads((folder / STATE).read_text("utf-8"))
            self._same = {path: (here, there) for path, (here, there) in told.items()}

    def run(self, over: threading.Event) -> None:
        """Round after round, while no other process does it."""
        while not over.wait(ROUND_SECONDS):
            with suppress(BlockingIOError), _alone(self._folder):
                self._rounds(over)

    def _rounds(self, over: threading.Event) -> None:
        while not over.wait(ROUND_SECONDS):
            try:
                self.sync()
            except Exception as error:
                log.warning("The store cannot be reached: %s", error)
                over.wait(AFTER_ERROR)

    def sync(self) -> None:
        here, there = self._here(), self._there()
        changed = [
            path
            for path in here.keys() | there.keys() | self._same.keys()
            if self._same.get(path) != (here.get(path), there.get(path))
        ]
        gone = {path for path in self._same if path not in here or path not in there}
        order = {path: (path in gone, _is_card(path) ^ (path in gone)) for path in changed}
        for path in sorted(changed, key=order.__getitem__):
            self._settle(path, here.get(path), there.get(path))
        if changed:
            with atomic_replace(self._folder / STATE) as part:
                part.write_text(json.dumps(self._same), "utf-8")

    def _settle(self, path: str, here: Mark, there: Mark) -> None:
        before = self._same.get(path, (None, None))
        if there == before[1] or (there is None and here != before[0]):
            there = self._push(path, here)
        else:
            here = self._pull(path, there)
        self._same[path] = (here, there)
        if here is None and there is None:
            del self._same[path]

    def _push(self, path: str, here: Mark) -> Mark:
        name = f"{self._root}/{path}"
        if here is None:
            with suppress(FileNotFoundError):
                self._store.rm_file(name)
            return None
        self._store.pipe_file(name, (self._folder / path).read_bytes())
        self._store.invalidate_cache()
        return _mark(self._store.info(name))

    def _pull(self, path: str, there: Mark) -> Mark:
        target = self._folder / path
        if there is None:
            target.unlink(missing_ok=True)
            with suppress(OSError):  # there is more in it
                target.parent.rmdir()
            return None
        data = self._store.cat_file(f"{self._root}/{path}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_replace(target) as part:
            part.write_bytes(data)
        return _local_mark(target)

    def _here(self) -> dict[str, Mark]:
        found: dict[str, Mark] = {}
        for kept in KEPT:
            for place, folders, files in os.walk(self._folder / kept):
                folders[:] = [name for name in folders if name == TRASH or name[0] != "."]
                for name in files:
                    path = Path(place, name)
                    relative = path.relative_to(self._folder).as_posix()
                    if _is_kept(relative) and (mark := _local_mark(path)):
                        found[relative] = mark
        return found

    def _there(self) -> dict[str, Mark]:
        self._store.invalidate_cache()
        try:
            told: Mapping[str, Any] = self._store.find(self._root, detail=True)
        except FileNotFoundError:
            return {}
        named = {name[len(self._root) :].lstrip("/"): info for name, info in told.items()}
        return {path: _mark(info) for path, info in named.items() if _is_kept(path)}


@contextmanager
def mirrored(folder: Path, address: str) -> Iterator[None]:
    """Keep them the same meanwhile; the folder has what the store has when the block begins."""
    if not address:
        yield
        return
    mirror, over = Mirror(folder, address), threading.Event()
    with suppress(BlockingIOError), _alone(folder):
        mirror.sync()
    thread = threading.Thread(target=mirror.run, args=(over,), name="timbre-mirror", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(BlockingIOError), _alone(folder):
            mirror.sync()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Raises BlockingIOError while another process is here."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _open(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs

        store, root = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise InvalidSetting(
            "{address} cannot be used: {error}. See docs/cluster.md.",
            address=address,
            error=error,
        ) from error
    return store, str(root).rstrip("/")


def _is_kept(path: str) -> bool:
    """Whether it is a file of ours: below the kept folders, and nothing hidden or outside."""
    pure = PurePosixPath(path)
    folders, name = pure.parts[:-1], pure.name
    hidden = name.startswith(".") or any(part[0] == "." and part != TRASH for part in folders)
    return bool(folders) and folders[0] in KEPT and not hidden


def _local_mark(path: Path) -> Mark:
    try:
        told = path.lstat()
    except OSError:
        return None
    return [told.st_mtime_ns, told.st_size] if not path.is_symlink() else None


def _mark(info: Mapping[str, Any]) -> list[Any]:
    """Of an object, as far as its store tells; JSON."""
    names = ("size", "ETag", "etag", "generation", "mtime", "LastModified", "updated", "created")
    return [str(info.get(name, "")) for name in names]


def _is_card(path: str) -> bool:
    """It speaks of other files: it is written after them, and goes before them."""
    return path.endswith(".json")
