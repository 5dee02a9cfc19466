"""What an engine's own process imports on a CPU before it is told what to open.

Two imports are cut short, which is allowed here because nothing else runs in that process. Torch
tells how hundreds of operations change shapes alone, for compilers that are not used here: a fourth
of its time. numba looks whether scipy and cffi are there and imports them, for functions that no
kernel calls. Whoever asks for one of torch's two modules later gets it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

SHAPES = ("torch._meta_registrations", "torch.distributed._meta_registrations")
NOT_USED = ("scipy", "cffi")


class _Later(ModuleType):
    """Stands for a module that is imported when something in it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system looks for these
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


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


def _import_torch() -> None:
    if "torch" not in sys.modules:
        for name in SHAPES:
            sys.modules[name] = _Later(name)
    from engine.open import open_engine  # noqa: F401
    from engine.worker.worker import TorchWorker  # noqa: F401


def _import_kernels() -> None:
    with _absent():
        from numba.core.registry import cpu_target

        from engine.worker.codec.cpu_decoder import CpuDecoder  # noqa: F401
        from engine.worker.kernels.cpu.predictor import predict  # noqa: F401

        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()


_import_torch()
_import_kernels()
