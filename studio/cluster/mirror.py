"""Keeps a data folder and an object store the same: s3://bucket/timbre, gs://…, any fsspec address.

What is new on one side is copied to the other, what is gone is removed there too. Objects appear
whole, and local files by a rename. Of all processes that see a folder, one does it. Where both
sides have changed since, the store's stays. A store is known by a marker, an empty object: to
another one, or to one that was emptied, everything local is copied, and nothing is removed. Knows
files, and nothing of what is in them.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, TypeAlias

from engine import InvalidSetting, atomic_replace, mark_changed

KEPT: Final = ("voices", "takes", "scripts")  # folders
TRASH: Final = ".trash"  # the only hidden folder that is kept
STATE, LOCK = ".mirror.json", ".mirror.lock"
MARKER: Final = ".store-"  # and a random name
ROUND_SECONDS: Final = 0.3
AFTER_ERROR: Final = 5.0  # seconds

Mark: TypeAlias = "list[Any] | None"  # by which a change is seen; None: not there
UNKNOWN: Final[list[Any]] = []  # the mark of an object that was written, until it is listed

log = logging.getLogger("timbre")


class Synced(NamedTuple):
    """A file when both sides were the same. The digest tells a change from another mark for it."""

    here: Mark = None
    there: Mark = None
    digest: str = ""


class Mirror:
    """One folder and one address. `sync` is one round; one process at a time may call it."""

    def __init__(self, folder: Path, address: str) -> None:
        """Raises InvalidSetting."""
        self._folder = folder
        self._store, self._root = _open(address)
        self._failed: set[str] = set()  # groups of files of which one could not be copied
        self.load()

    def load(self) -> None:
        """Read how far this machine has come, possibly by another process."""
        self._marker = ""
        self._same: dict[str, Synced] = {}
        with suppress(OSError, ValueError, KeyError, AttributeError, TypeError):
            told = json.loads((self._folder / STATE).read_text("utf-8"))
            same = {path: Synced(*each) for path, each in told["same"].items()}
            self._marker, self._same = str(told["marker"]), same

    def run(self, over: threading.Event) -> None:
        """Round after round, while no other process does it."""
        while not over.wait(ROUND_SECONDS):
            try:
                with _alone(self._folder):
                    self.load()
                    self._rounds(over)
            except BlockingIOError:  # another process does it
                continue
            except OSError as error:
                log.warning("%s cannot be locked: %s", self._folder, error)
                over.wait(AFTER_ERROR)

    def _rounds(self, over: threading.Event) -> None:
        while not over.wait(ROUND_SECONDS):
            if not self.try_sync():
                over.wait(AFTER_ERROR)

    def try_sync(self) -> bool:
        """Whether it succeeded; what it did not is said."""
        try:
            self.sync()
        except Exception as error:
            log.warning("%s and the store are not the same: %s", self._folder, error)
            return False
        return True

    def sync(self) -> None:
        """Raises what the store or the disk raises; what was copied until then is kept."""
        here, there = self._here(), self._there()
        changed = [
            path
            for path in here.keys() | there.keys() | self._same.keys()
            if self._same.get(path, Synced())[:2] != (here.get(path), there.get(path))
        ]
        gone = {path for path in self._same if path not in here or path not in there}
        order = {
            path: (_group(path) in self._failed, path in gone, _is_card(path) ^ (path in gone))
            for path in changed
        }
        try:
            for path in sorted(changed, key=order.__getitem__):
                self._try_settle(path, here.get(path), there.get(path))
            self._failed.clear()
        finally:
            if changed:
                self._save()

    def _try_settle(self, path: str, here: Mark, there: Mark) -> None:
        """What changed again since it was listed is left to the next round."""
        try:
            if _local_mark(self._folder / path) == here:
                self._settle(path, here, there)
        except FileNotFoundError:  # on either side
            pass
        except Exception:
            self._failed.add(_group(path))  # whose turn is after all others
            raise

    def _settle(self, path: str, here: Mark, there: Mark) -> None:
        before = self._same.get(path, Synced())
        if there == before.there or (there is None and here != before.here):
            after = self._push(path, here)
        else:
            after = self._pull(path, here, there, before)
        self._same[path] = after
        if after.here is None and after.there is None:
            del self._same[path]

    def _push(self, path: str, here: Mark) -> Synced:
        """The next round reads what is there then: another machine may write at the same time."""
        name = f"{self._root}/{path}"
        if here is None:
            with suppress(FileNotFoundError):
                self._store.rm_file(name)
            return Synced()
        data = (self._folder / path).read_bytes()
        self._store.pipe_file(name, data)
        return Synced(here, UNKNOWN, _digest(data))

    def _pull(self, path: str, here: Mark, there: Mark, before: Synced) -> Synced:
        target = self._folder / path
        if there is None:
            target.unlink(missing_ok=True)
            with suppress(OSError):  # there is more in it
                target.parent.rmdir()
            self._mark_changed(path)
            return Synced()
        data = self._store.cat_file(f"{self._root}/{path}")
        if _digest(data) == before.digest:  # only its mark is another one
            same = here == before.here
            return before._replace(there=there) if same else self._push(path, here)
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_replace(target) as part:
            part.write_bytes(data)
            written = _local_mark(part)  # not of what another process may write a moment later
            if _local_mark(target) != here:
                raise FileNotFoundError(f"{target} has changed since it was listed")
        self._mark_changed(path)
        return Synced(written, there, _digest(data))

    def _mark_changed(self, path: str) -> None:
        """Give the folder of all voices, takes or scripts a new time, by which readers see it."""
        mark_changed(self._folder / PurePosixPath(path).parts[0])

    def _save(self) -> None:
        state = {"marker": self._marker, "same": self._same}
        with atomic_replace(self._folder / STATE) as part:
            part.write_text(json.dumps(state), "utf-8")

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
        told: Mapping[str, Any] = {}
        with suppress(FileNotFoundError):
            told = self._store.find(self._root, detail=True)
        root = f"{self._root}/"
        named = {name[len(root) :]: each for name, each in told.items() if name.startswith(root)}
        self._recognise(min((name for name in named if name.startswith(MARKER)), default=""))
        return {path: _mark(each) for path, each in named.items() if _is_kept(path)}

    def _recognise(self, marker: str) -> None:
        """Forget what was the same in another store. Two machines may mark a new one: the first
        name counts."""
        if not marker:
            marker = f"{MARKER}{secrets.token_hex(8)}"
            self._store.pipe_file(f"{self._root}/{marker}", b"")
        if marker != self._marker:
            self._marker, self._same = marker, {}


@contextmanager
def mirrored(folder: Path, address: str) -> Iterator[None]:
    """Keep them the same meanwhile.

    The folder has what the store has when the block begins, if no other process is at it already.
    """
    if not address:
        yield
        return
    mirror, over = Mirror(folder, address), threading.Event()
    with suppress(BlockingIOError), _alone(folder):
        mirror.load()
        mirror.sync()
    thread = threading.Thread(target=mirror.run, args=(over,), name="timbre-mirror", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(BlockingIOError), _alone(folder):
            mirror.load()
            mirror.try_sync()


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


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _is_card(path: str) -> bool:
    """It speaks of other files: it is written after them, and goes before them."""
    return path.endswith(".json")


def _group(path: str) -> str:
    """The voice, take or script that a file belongs to."""
    return str(PurePosixPath(*PurePosixPath(path).parts[:2]).with_suffix(""))
