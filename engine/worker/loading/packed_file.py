"""A file of arrays in the form in which they are used: mapped, not read.

All processes that map it share its memory, and pages that are not used take none. The file is not
trusted: its reader knows names, types and sizes of all arrays, so where each begins follows from
those and not from the file, and a file of another length or of other arrays is refused. What the
numbers are is up to the digest in its head. Knows no networks.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias

import torch
from torch import Tensor

from engine.atomic import atomic_replace

MAGIC = b"timbre\x00\x01"
HEAD, ALIGN = 4096, 64  # bytes before the first array; each begins at a multiple of ALIGN
_DIGEST = 32  # bytes of one
_PIECE = 1 << 20


class Form(NamedTuple):
    """An array's type and size."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize * torch.Size(self.shape).numel()


Forms: TypeAlias = Mapping[str, Form]  # in the order in which arrays lie


class DamagedFile(Exception):
    """The file is another one than was looked for, or it is not whole."""


def form_of(tensor: Tensor) -> Form:
    return Form(tensor.dtype, tuple(tensor.shape))


def write_arrays(target: Path, key: str, arrays: Mapping[str, Tensor], mode: int = 0o666) -> None:
    """Write arrays in their order. `key` says what they are of; a reader names the same one."""
    forms = {name: form_of(each) for name, each in arrays.items()}
    body = hashlib.sha256()
    with atomic_replace(target, mode) as part, part.open("r+b") as file:
        file.seek(HEAD)
        for (_, start, _), tensor in zip(_places(forms), arrays.values(), strict=True):
            gap = memoryview(b"\0" * (start - file.tell()))
            for piece in (gap, *_pieces(tensor)):
                file.write(piece)
                body.update(piece)
        file.seek(0)
        file.write(MAGIC + _digest_of(key, forms) + body.digest())


def map_arrays(path: Path, key: str, forms: Forms, trusted: bool = False) -> dict[str, Tensor]:
    """The arrays of a file. Raises DamagedFile, or OSError where there is none.

    `trusted`: this very file was checked before; else its numbers are compared with their digest.
    """
    with path.open("rb") as file:
        length = os.fstat(file.fileno()).st_size
        places = list(_places(forms))
        end = max((start + form.bytes for _, start, form in places), default=HEAD)
        if length != end:
            raise DamagedFile(f"{path} has {length} bytes, not {end}")
        head = file.read(len(MAGIC) + 2 * _DIGEST)
        if head[:-_DIGEST] != MAGIC + _digest_of(key, forms):
            raise DamagedFile(f"{path} holds other arrays")
        file.seek(HEAD)
        if not trusted and _body_digest(file) != head[-_DIGEST:]:
            raise DamagedFile(f"{path} has changed since it was written")
        # a copy on writing: nothing written here reaches the file or another process
        memory = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY)
    whole = torch.frombuffer(memory, dtype=torch.uint8)
    return {
        name: whole[start : start + form.bytes].view(form.dtype).view(form.shape)
        for name, start, form in places
    }


def _places(forms: Forms) -> Iterator[tuple[str, int, Form]]:
    """Where each array begins."""
    at = HEAD
    for name, form in forms.items():
        at += -at % ALIGN
        yield name, at, form
        at += form.bytes


def _pieces(tensor: Tensor) -> Iterator[memoryview]:
    """An array's bytes, some at a time."""
    flat = tensor.detach().contiguous().view(-1).view(torch.uint8).numpy()
    for start in range(0, len(flat), _PIECE):
        yield flat[start : start + _PIECE].data


def _digest_of(key: str, forms: Forms) -> bytes:
    listed = [(name, str(form.dtype), form.shape) for name, form in forms.items()]
    return hashlib.sha256(json.dumps([key, listed]).encode()).digest()


def _body_digest(file: IO[bytes]) -> bytes:
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.digest()
