"""A machine that dies: after a number of file operations, none works any more."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Dead(BaseException):
    """Stands for the death of the process: nothing catches it."""


@contextmanager
def dies_after(operations: int) -> Iterator[list[str]]:
    """Allow so many operations on the disk, then none; yields the names of all attempted ones."""
    requested: list[str] = []

    def dying(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            requested.append(name)
            if len(requested) > operations:
                if name == "write_bytes":  # half of it may have reached the disk
                    real(args[0], args[1][: len(args[1]) // 2])
                raise Dead
            return real(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("replace", "fsync", "open", "rename"):
            patch.setattr(os, name, dying(name, getattr(os, name)))
        for name in ("write_bytes", "unlink"):
            patch.setattr(pathlib.Path, name, dying(name, getattr(pathlib.Path, name)))
        yield requested


def every_death(action: Callable[[int], None]) -> int:
    """Call `action` where the first disk operation fails, then the second, … until none does."""
    operations = 0
    while True:
        with dies_after(operations) as done:
            try:
                action(operations)
            except Dead:
                operations += 1
                continue
        assert len(done) <= operations
        return operations
