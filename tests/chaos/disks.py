"""Disks that are full, and folders that may not be written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("needs the limits of a Unix", allow_module_level=True)

import resource

NOBODY = 65_534


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """Let no file grow past so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nothing in the folder be changed, not even by an administrator."""
    before = {path: path.stat().st_mode for path in [folder, *folder.rglob("*"), *folder.parents]}
    places = [path for path in before if path.is_dir() and folder in (path, *path.parents)]
    is_root = os.geteuid() == 0
    try:
        for path, mode in before.items():
            _allow(path, 0o555 if path in places else mode | 0o555)
        if is_root:
            os.seteuid(NOBODY)
        yield
    finally:
        if is_root:
            os.seteuid(0)
        for path, mode in before.items():
            if path.exists():
                _allow(path, mode & 0o7777)


def _allow(path: Path, mode: int) -> None:
    if path.stat().st_uid == os.geteuid() and path.stat().st_mode & 0o7777 != mode & 0o7777:
        path.chmod(mode & 0o7777)
