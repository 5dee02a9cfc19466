"""A process that compiles Triton's kernels for its parent, without a GPU and without torch.

It reads a job a line and answers a line; what it compiled lies in Triton's folder.
"""

from __future__ import annotations

import json
import signal
import sys
from importlib import import_module
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend


def main(target: tuple[str, int, int], done: str) -> None:
    """Until the parent is done, or gone; `done`: the answer to a job that could be done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Windows, which has no sessions
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the parent is gone: no traceback
    for line in sys.stdin:
        module, name, described = json.loads(line)
        try:
            compile_described(getattr(import_module(module), name), described, GPUTarget(*target))
        except Exception as error:  # the parent meets it itself, and says so
            print(f"failed: {error!r}".splitlines()[0], flush=True)
        else:
            print(done, flush=True)


def compile_described(kernel: Any, described: str, target: GPUTarget) -> Any:
    """Compile a kernel as `JITFunction.preload` does, for a device that need not be here."""
    return _compile(ASTSource, kernel, described, target)


def is_kept(kernel: Any, described: str, target: GPUTarget) -> bool:
    """Whether it lies in Triton's folder."""
    try:
        _compile(_Sought, kernel, described, target)
    except _Missing:
        return False
    return True


class _Missing(Exception):
    """A kernel would have to be compiled."""


class _Sought(ASTSource):  # type: ignore[misc]
    """A kernel that is not compiled."""

    def make_ir(self, *_: object) -> None:
        raise _Missing


def _compile(kind: type[ASTSource], kernel: Any, described: str, target: GPUTarget) -> Any:
    found = json.loads(described)
    keys = map(tuple, found["constant_keys"])
    constants = {
        key: _constant(each) for key, each in zip(keys, found["constant_vals"], strict=True)
    }
    attributes = dict(zip(map(tuple, found["attrs_keys"]), found["attrs_vals"], strict=True))
    signature = {name: _tuples(each) for name, each in found["signature"].items()}
    backend = make_backend(target)
    options = backend.parse_options(
        {
            name: tuple(each) if isinstance(each, list) else each
            for name, each in found["options"].items()
        }
    )
    source = kind(kernel, signature, constants, attributes)
    return triton.compile(source, target=target, options=options.__dict__)


def _constant(value: Any) -> Any:
    if triton.language.dtype.is_dtype(value):
        return triton.language.dtype(value)
    if isinstance(value, dict) and "constexpr" in value:
        return triton.language.constexpr(value["constexpr"])
    return value


def _tuples(value: Any) -> Any:
    """JSON made lists of tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
