"""Kernels that Python calls. What numba has compiled of them is kept as machine code, which a later
start runs without LLVM.

Its arguments are numbers, arrays and named tuples of these, flat, in numba's order. Code is kept
beside what numba keeps, by all that it was made of, and numba takes over wherever there is none
that can be used. Knows no networks.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import llvmlite
import numba
import numpy as np
from llvmlite.binding import get_host_cpu_name
from numba import config

from engine.atomic import write_atomic
from engine.worker.kernels.cpu.llvm import features
from engine.worker.kernels.cpu.machine_code import SUPPORTED, MachineCode, UnknownObject

Called: TypeAlias = Callable[[int, int], object]  # with a thread's number, and how many there are
KEEPING = 1  # another number for another form of what is kept
ENDING = ".code"
OWN = 0o644
_DIGEST = hashlib.sha256().digest_size
_WORD = ctypes.c_int64  # also of a place in memory
_NUMBERS = {int: _WORD, np.int64: _WORD, np.float32: ctypes.c_float, bool: ctypes.c_bool}


class Entry:
    """A kernel whose first arguments are a thread's number and how many there are."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel  # numba's
        self._codes: dict[tuple[Any, ...], Any] = {}  # by kinds of arguments; None: there is none
        self._compiled: set[tuple[Any, ...]] = set()  # by numba

    def __call__(self, *given: Any) -> Called:
        """The kernel with its other arguments."""
        if not SUPPORTED:
            return partial(_by_numba, self.kernel, _whole(given))
        kinds: list[Any] = []
        numbers: list[Any] = []
        _flatten(given, kinds, numbers)
        key = tuple(kinds)
        if key not in self._codes:
            self._codes[key] = self._kept(key)
        code = self._codes[key]
        if code is None:
            return partial(self._compile, key, _whole(given))
        result, error = _WORD(), _WORD()
        places = ctypes.byref(result), ctypes.byref(error)

        def run(number: int, threads: int, given: Any = given) -> None:  # whose memory is used
            if code(*places, _WORD(number), _WORD(threads), *numbers):
                raise RuntimeError(f"{self.kernel.__name__} failed")

        return run

    def _compile(self, key: tuple[Any, ...], given: Any, number: int, threads: int) -> None:
        self.kernel(number, threads, *given)
        if number == 0 and key not in self._compiled:
            self._compiled.add(key)
            self._keep(key, given)

    def _kept(self, key: tuple[Any, ...]) -> Any:
        if _folder(self.kernel) is None:
            return None
        with suppress(OSError, UnknownObject, UnicodeDecodeError):
            whole = self._path(key).read_bytes()
            digest, rest = whole[:_DIGEST], whole[_DIGEST:]
            if hashlib.sha256(rest).digest() != digest:
                return None
            function, _, code = rest.partition(b"\0")
            return _callable(MachineCode(code, function.decode()))
        return None

    def _keep(self, key: tuple[Any, ...], given: Any) -> None:
        """Keep what was compiled, and use it from the next call on."""
        kernel, cache = self.kernel, self.kernel._cache
        with suppress(Exception):  # another numba, or a disk that is full
            types = tuple(kernel.typeof_pyval(each) for each in (0, 1, *given))
            compiled = kernel.overloads[types]
            kept = cache._index_key(types, kernel.targetctx.codegen())
            _, form, (code, _) = cache._cache_file.load(kept)[0]
            function = compiled.fndesc.llvm_func_name
            assert form == "object"
            assert compiled.signature.return_type == numba.types.none  # no memory for a result
            self._codes[key] = _callable(MachineCode(code, function))
            whole = function.encode() + b"\0" + code
            write_atomic(self._path(key), hashlib.sha256(whole).digest() + whole, OWN)

    def _path(self, key: tuple[Any, ...]) -> Path:
        made_of = repr((KEEPING, _processor(), self.kernel.__module__, key)).encode()
        name = f"{self.kernel.__qualname__}-{hashlib.sha256(made_of).hexdigest()[:16]}{ENDING}"
        return Path(str(_folder(self.kernel)), name)


def are_kept(kernel: Any) -> bool:
    """Whether there is machine code of a kernel of this version, for whatever arguments."""
    folder = _folder(kernel)
    if not SUPPORTED or folder is None:
        return False
    return any(Path(folder).glob(f"{kernel.__qualname__}-*{ENDING}"))


def _folder(kernel: Any) -> str | None:
    """Where numba keeps a kernel; None: nowhere, since it found none that it can write to."""
    found: str | None = getattr(getattr(kernel, "_cache", None), "cache_path", None)
    return found


@cache
def _processor() -> list[str]:
    """What machine code depends on, beside its source: the processor and what compiles for it, as
    numba tells them apart. What Linux says of a processor may not be what a program runs on."""
    name = config.CPU_NAME or get_host_cpu_name()
    versions = numba.__version__, llvmlite.__version__
    return [name, features(), str(config.OPT), *versions]


def _callable(code: MachineCode) -> Any:
    run: Any = ctypes.CFUNCTYPE(ctypes.c_int32)(code.start)
    run.code = code  # which is in memory as long as this
    return run


class Fixed:
    """An argument that many calls share, made flat once."""

    def __init__(self, whole: Any) -> None:
        self.whole, kinds = whole, list[Any]()
        self.numbers: list[Any] = []
        _flatten((whole,), kinds, self.numbers)
        self.kind = repr(kinds)


def fixed(*given: Any) -> tuple[Fixed, ...]:
    return tuple(map(Fixed, given))


def _whole(given: Any) -> list[Any]:
    return [each.whole if isinstance(each, Fixed) else each for each in given]


def _by_numba(kernel: Any, given: Any, number: int, threads: int) -> None:
    kernel(number, threads, *given)


def _flatten(values: Any, kinds: list[Any], numbers: list[Any]) -> None:
    for value in values:
        if isinstance(value, Fixed):
            kinds.append(value.kind)
            numbers += value.numbers
        elif isinstance(value, np.ndarray):
            flags = value.flags
            order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
            kinds.append((value.dtype.str, value.ndim, order, flags.writeable, flags.aligned))
            place = value.__array_interface__["data"][0]
            sizes = 0, 0, value.size, value.itemsize, place, *value.shape, *value.strides
            numbers += map(_WORD, sizes)  # no owner: a kernel frees nothing
        elif isinstance(value, tuple):
            kinds.append(type(value).__name__)
            _flatten(value, kinds, numbers)
        else:
            kinds.append(type(value))
            plain = value.item() if isinstance(value, np.generic) else value
            numbers.append(_NUMBERS[type(value)](plain))
