"""How kernels are compiled: to run without Python's lock, and kept for the next start."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from numba import config, njit
from numba.core.event import Event, Listener, register

from engine.machine import kernel_folder


def version_of(folder: Path) -> str:
    """A digest of all kernels' sources; numba looks at one file, not at what it calls."""
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


if config.DISABLE_JIT:
    raise ImportError("NUMBA_DISABLE_JIT says that nothing is to be compiled")

VERSION = version_of(Path(__file__).parent)
EVERY = 5.0  # seconds between two lines about what is compiled

log = logging.getLogger("timbre")


class Progress(Listener):  # type: ignore[misc]
    """Says how far compiling is, which takes up to a minute where nothing was kept."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.known: set[str] = set()  # of all kernels
        self._clock, self._compiled, self._last = clock, set[str](), clock()

    def on_start(self, event: Event) -> None:
        """Nothing: what has begun is not done."""

    def on_end(self, event: Event) -> None:
        name = event.data["dispatcher"].py_func.__qualname__
        if name not in self.known:
            return
        if not self._compiled:
            self._last = self._clock() - EVERY
        self._compiled.add(name)
        if self._clock() - self._last >= EVERY:
            self._last = self._clock()
            log.warning(
                "Compiling kernels for this processor, once: %d of at most %d.",
                len(self._compiled),
                len(self.known),
            )


PROGRESS = Progress()
register("numba:compile", PROGRESS)


def can_be_kept(kernel: Any) -> bool:
    """Whether numba has found a folder for it."""
    return hasattr(getattr(kernel, "_cache", None), "_cache_file")


def is_kept(kernel: Any) -> bool:
    """Whether numba has kept some form of a kernel for this processor."""
    try:
        magic = kernel.targetctx.codegen().magic_tuple()
        index = kernel._cache._cache_file._load_index()
        return any(key[1] == magic for key in index)
    except Exception:  # another numba, or a damaged file: what is missing is compiled
        return False


def _kept(decorator: Any, function: Callable[..., Any]) -> Any:
    """The function, to be kept in our folder; those of others are kept where they were."""
    usual, ours = config.CACHE_DIR, kernel_folder()
    config.CACHE_DIR = usual or str(ours or "")
    try:
        return _forgiving(decorator(function))
    finally:
        config.CACHE_DIR = usual


def _forgiving(kernel: Any) -> Any:
    """A kernel that is compiled where its files are damaged, and runs where none can be kept."""
    cache = kernel._cache
    load, save = cache.load_overload, cache.save_overload

    def load_or_forget(*given: Any) -> Any:
        try:
            return load(*given)
        except Exception:  # pickle, LLVM and the disk have their own
            with suppress(OSError):
                cache.flush()

    def keep(*given: Any) -> None:
        with suppress(Exception):  # a full disk, or a damaged file that could not be replaced
            save(*given)

    cache.load_overload, cache.save_overload = load_or_forget, keep
    return kernel


def compiled(reorder: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function; `reorder`: sums may be in any order, which is faster."""

    # Python's division has a branch for zero, which keeps loops from becoming vectors
    options: dict[str, Any] = {"nogil": True, "fastmath": reorder, "error_model": "numpy"}

    def decorate(function: Callable[..., Any]) -> Any:
        function.__qualname__ += f"_{VERSION}"  # numba's name for what it keeps
        PROGRESS.known.add(function.__qualname__)
        try:
            return _kept(njit(cache=True, **options), function)
        except RuntimeError:  # no folder can be written to
            return njit(**options)(function)

    return decorate
