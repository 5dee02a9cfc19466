"""Compiles CUDA source with NVRTC, which comes with torch, and launches its kernels.

NVRTC and the driver are called as C libraries; no compiler has to be installed. What is compiled is
kept for later starts where `Module.kept` says. A source takes a second to four, without Python's
lock, so several are compiled beside other work.
"""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from engine.worker.device import load_library

FOLDER = Path(__file__).parent
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class KernelError(RuntimeError):
    """A kernel could not be compiled or launched."""


class Kept(Protocol):
    """Machine code of earlier starts, by all that it was made of."""

    def binary(self, key: str) -> bytes | None: ...

    def keep_binary(self, key: str, code: bytes) -> None: ...


class Source(NamedTuple):
    """CUDA source, and the compiler's options."""

    text: str
    options: tuple[str, ...]


class Module:
    """One compiled source on the current device."""

    kept: ClassVar[Kept | None] = None  # of the process; None: every start compiles

    def __init__(self, source: Source) -> None:
        self._driver, self._module = _driver(), ctypes.c_void_p()
        self.check(self._driver.cuModuleLoadData(ctypes.byref(self._module), _compiled(source)))

    def kernel(self, name: str, shared: int = 0) -> Kernel:
        """A kernel with `shared` bytes of shared memory."""
        function = ctypes.c_void_p()
        found = self._driver.cuModuleGetFunction(
            ctypes.byref(function), self._module, name.encode()
        )
        self.check(found)
        self.check(self._driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared))
        return Kernel(self, self._driver, function, shared)

    def check(self, result: int) -> None:
        if result:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(result, ctypes.byref(text))
            raise KernelError(f"CUDA error: {(text.value or b'unknown').decode()}")


class Kernel:
    """One kernel of a module. Launches go to the current stream."""

    def __init__(
        self, module: Module, driver: ctypes.CDLL, function: ctypes.c_void_p, shared: int
    ) -> None:
        self._module, self._driver = module, driver
        self._function, self._shared = function, shared

    def __call__(
        self, blocks: int, threads: int, *arguments: Tensor | int | ctypes.Structure | None
    ) -> None:
        """Launch. A tensor is passed as its address, None as a null pointer, a number as int."""
        self._launch(self._driver.cuLaunchKernel, blocks, threads, map(_argument, arguments), None)

    def launch_cooperative(self, blocks: int, threads: int, argument: ctypes.Structure) -> None:
        """Launch with all blocks resident at once, so that they may wait for each other."""
        self._launch(self._driver.cuLaunchCooperativeKernel, blocks, threads, (argument,))

    def _launch(
        self, launch: Any, blocks: int, threads: int, arguments: Iterable[Any], *extra: None
    ) -> None:
        values = tuple(arguments)  # must outlive the call
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        sizes = (blocks, 1, 1, threads, 1, 1, self._shared)
        self._module.check(launch(self._function, *sizes, stream, pointers, *extra))


def _argument(value: Tensor | int | ctypes.Structure | None) -> Any:
    if isinstance(value, ctypes.Structure):
        return value
    if isinstance(value, int):
        return ctypes.c_int(value)
    return ctypes.c_void_p(None if value is None else value.data_ptr())


def read_source(names: Iterable[str], constants: dict[str, int | float]) -> Source:
    """Source files of this folder in this order, with these names defined."""
    text = "\n".join((FOLDER / f"{name}.cu").read_text() for name in names)
    return Source(text, tuple(define_constants(constants)))


def define_constants(values: dict[str, int | float]) -> list[str]:
    """Compiler options that define names; a value that is not an int becomes a C float."""
    return [f"-D{name}={v if isinstance(v, int) else f'{v!r}f'}" for name, v in values.items()]


_begun: dict[tuple[str, Source], Future[bytes]] = {}  # by architecture, until they are taken
_beginning = threading.Lock()


def compile_ahead(sources: Iterable[Source]) -> None:
    """Begin to compile sources for the current device that modules will soon be made of."""
    architecture = _architecture()
    with _beginning:
        for source in sources:
            begun = _begun.get((architecture, source))
            if begun is None or (begun.done() and begun.exception()):  # of a load that failed, too
                _begun[architecture, source] = _begin(architecture, source, load_compiler())


def _begin(architecture: str, source: Source, compiler: ctypes.CDLL) -> Future[bytes]:
    begun: Future[bytes] = Future()

    def compile_source() -> None:
        try:
            begun.set_result(compile_once(architecture, source, compiler, Module.kept))
        except Exception as error:
            begun.set_exception(error)

    # no pool, whose threads would hold up the end of the program for seconds
    threading.Thread(target=compile_source, name="nvrtc", daemon=True).start()
    return begun


def _compiled(source: Source) -> bytes:
    """Machine code for the current device."""
    architecture = _architecture()
    with _beginning:
        begun = _begun.pop((architecture, source), None)
    if begun is not None:
        return begun.result()
    return compile_once(architecture, source, load_compiler(), Module.kept)


def _architecture() -> str:
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


class Binary(NamedTuple):
    code: bytes  # a cubin
    log: str  # warnings; with --ptxas-options=-v, what each kernel takes of the device


def compile_once(
    architecture: str, source: Source, compiler: ctypes.CDLL, kept: Kept | None
) -> bytes:
    """As `compile_for`, or what an earlier start has kept of it."""
    key = json.dumps([architecture, _version(compiler), source.options, source.text])
    code = kept.binary(key) if kept else None
    if code is None:
        code = compile_for(architecture, source, compiler).code
        if kept:
            kept.keep_binary(key, code)
    return code


def _version(compiler: ctypes.CDLL) -> list[int]:
    numbers = ctypes.c_int(), ctypes.c_int()
    compiler.nvrtcVersion(*map(ctypes.byref, numbers))
    return [number.value for number in numbers]


def compile_for(architecture: str, source: Source, compiler: ctypes.CDLL) -> Binary:
    """Machine code for devices of this architecture, none of which has to be here."""
    program, text = ctypes.c_void_p(), source.text.encode()
    flags = [f"--gpu-architecture={architecture}", "--std=c++17", *source.options]
    array = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    compiler.nvrtcCreateProgram(ctypes.byref(program), text, b"timbre.cu", 0, None, None)
    try:
        failed = compiler.nvrtcCompileProgram(program, len(flags), array)
        read_log = compiler.nvrtcGetProgramLogSize, compiler.nvrtcGetProgramLog, program
        log = _read(*read_log).rstrip(b"\0").decode(errors="replace")
        if failed:
            raise KernelError(log)
        return Binary(_read(compiler.nvrtcGetCUBINSize, compiler.nvrtcGetCUBIN, program), log)
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


def _read(size: Any, read: Any, program: ctypes.c_void_p) -> bytes:
    length = ctypes.c_size_t()
    size(program, ctypes.byref(length))
    buffer = ctypes.create_string_buffer(length.value)
    read(program, buffer)
    return buffer.raw


def _driver() -> ctypes.CDLL:
    return load_library(KernelError, "libcuda.so.1", "nvcuda.dll")


def load_compiler() -> ctypes.CDLL:
    major = (torch.version.cuda or "").split(".")[0]
    names = f"libnvrtc.so.{major}", f"nvrtc64_{major}0_0.dll", "libnvrtc.so"
    return load_library(KernelError, *names)
