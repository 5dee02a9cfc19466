"""Imports torch without what only its compilers and trainers need: half of its modules, half of the
time.

What is left out is read when somebody asks for it, so it is never missing; what torch's operators
register for tensors without numbers, for `torch.Generator` and for traces nobody asks for by name,
so those who need it call `whole`. Only where nothing else runs: an engine's process on a CPU. Knows
no engine.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, version
from threading import RLock
from types import FrameType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

TRIED = ("2.13.",)  # releases whose modules can be read in this order
AS_IT_IS = "torch_as_it_is"  # an option of Python's (-X): leave nothing out
REGISTERED = "torch._meta_registrations"  # by being imported
LATER = (
    REGISTERED,
    "torch._export",
    "torch.ao",
    "torch.compiler",
    "torch.distributions",
    "torch.export",
    "torch.fft",
    "torch.func",
    "torch.fx.passes",
    "torch.masked",
    "torch.multiprocessing",
    "torch.nested",
    "torch.nn.intrinsic",
    "torch.nn.qat",
    "torch.nn.quantizable",
    "torch.nn.quantized",
    "torch.optim",
    "torch.profiler",
    "torch.quantization",
    "torch.quasirandom",
    "torch.sparse",
    "torch.testing",
    "torch.utils._debug_mode",
    "torch.utils.data",
)

_getframeinfo = inspect.getframeinfo
_reading = RLock()
_pending: dict[str, Loader] = {}


class _Later(ModuleType):
    """A module that is read when anything of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        # `inspect` looks at every module there is for names like __wrapped__
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        _read(self)
        if type(self) is _Later:  # it is being read, and asks itself
            raise AttributeError(f"{self.__name__} has no {name} yet", name=name, obj=self)
        return getattr(self, name)


def _read(module: ModuleType) -> None:
    """Read it unless it is; another thread that asks meanwhile waits for all of it."""
    with _reading:
        loader = _pending.pop(module.__name__, None)
        if loader is not None:
            loader.exec_module(module)
            module.__class__ = ModuleType


class _LaterLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._own = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Later(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        _pending[module.__name__] = self._own


class _LaterFinder:
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        if name not in LATER:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _LaterLoader(spec.loader)
        return spec


@contextmanager
def lean() -> Iterator[None]:
    """While torch is imported; with a release that was not tried, it is imported as it is.

    Where it fails, this process begins anew and leaves nothing out.
    """
    finder: Any = _LaterFinder
    try:
        tried = version("torch").startswith(TRIED)
    except PackageNotFoundError:  # built where it lies
        tried = False
    if not tried or AS_IT_IS in sys._xoptions:
        yield
        return
    before, inspect.getframeinfo = inspect.getframeinfo, _told_of
    sys.meta_path.insert(0, finder)
    try:
        yield
    except Exception:
        again = [sys.executable, "-X", AS_IT_IS, *sys.orig_argv[1:]]
        os.execv(sys.executable, again)
    finally:
        sys.meta_path.remove(finder)
        inspect.getframeinfo = before


def _told_of(frame: FrameType | TracebackType, context: int = 1) -> inspect.Traceback:
    """Where an operator is registered, for torch's messages; the line itself is not read, for which
    `inspect` looks at the file of every module there is."""
    return _getframeinfo(frame, 0)


def whole() -> None:
    """Import what registers itself, if it was left out."""
    if REGISTERED in _pending:
        _read(importlib.import_module(REGISTERED))


def seeded(seed: int) -> torch.Generator:
    """For random numbers that a comparison draws."""
    import torch

    whole()
    return torch.Generator().manual_seed(seed)
