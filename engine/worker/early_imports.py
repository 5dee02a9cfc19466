"""What an engine's own process imports on a CPU before it is told what to open.

numba imports scipy and cffi if they are installed, for functions that no kernel calls. Both are
hidden while numba is imported: nothing else runs in that process. Torch is imported as
`lean_torch` says. Half of what the libraries have in memory then was only needed to start them, and
is let go of.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, BinaryIO

from engine.worker.lean_torch import lean

NOT_USED = ("scipy", "cffi")
CODE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-xp .*\.so(?:\.\d+)*$", re.MULTILINE)

# of a page in /proc/self/pagemap: a word, whose last byte says what it is
WORD, HELD, OF_FILE = 8, 0xC0, 0x20


class _Absent:
    """Finds no package of these names."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name in NOT_USED:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)
        return None


@contextmanager
def _absent() -> Iterator[None]:
    finder: Any = _Absent
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _prepare_numba() -> None:
    """Fill its tables of what can be compiled, without which nothing that it kept is loaded; where
    machine code is there, which needs no tables, they are filled if they are asked for."""
    from numba.core.registry import cpu_target

    from engine.worker.kernels.cpu.entries import are_kept
    from engine.worker.kernels.cpu.predictor import predict

    if are_kept(predict):
        return

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def _import_torch() -> None:
    with lean():
        import torch  # noqa: F401
    from engine.worker.worker import TorchWorker  # noqa: F401


def _compiles_kernels() -> bool:
    from engine.worker.device import compiles_kernels

    return compiles_kernels()


def _import_kernels() -> None:
    from engine.worker.codec.cpu_decoder import CpuDecoder  # noqa: F401
    from engine.worker.kernels.cpu.predictor import predict  # noqa: F401


def let_go_of_libraries() -> None:
    """Of the pages of their code, unless some were changed: those that are called come back from
    the file, or from the system's copy of it. Without /proc, as in some sandboxes, they stay."""
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    with suppress(OSError):
        maps = Path("/proc/self/maps").read_text(errors="replace")
        with Path("/proc/self/pagemap").open("rb") as pages:
            for found in CODE.finditer(maps):
                start, stop = (int(each, 16) for each in found.groups())
                if not _is_changed(pages, start, stop):
                    advise(start, stop - start, mmap.MADV_DONTNEED)


def _is_changed(pages: BinaryIO, start: int, stop: int) -> bool:
    """Whether a page is no longer the file's, as relocations and other programs' hooks leave it."""
    pages.seek(start // mmap.PAGESIZE * WORD)
    words = pages.read((stop - start) // mmap.PAGESIZE * WORD)
    return any(kind & HELD and not kind & OF_FILE for kind in set(words[WORD - 1 :: WORD]))


with _absent():
    _import_torch()
    if _compiles_kernels():
        _import_kernels()
        _prepare_numba()
let_go_of_libraries()
