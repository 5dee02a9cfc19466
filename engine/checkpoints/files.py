"""Reads a checkpoint's files, which are untrusted.

JSON values are checked for type and range, and single rows can be read from a safetensors file.
Every error is a CheckpointError that names the file and the key. No torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import numpy as np

from engine.errors import CheckpointError
from engine.messages import Message
from engine.types import Vector

CODEC_FOLDER = "speech_tokenizer"
PREFIX = "module."  # that a wrapper of torch puts before every name
LARGEST_JSON = 16 << 20  # bytes
WIDEST_ROW = 1 << 20  # numbers
LARGEST_FILE = 1 << 48  # bytes, above every shape and place in one
DIGESTED = 4 << 10  # bytes of a tensor, twice
_STORED = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """A file to read, reached through links or not; a device or a pipe would never end."""
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise CheckpointError("{path} is no plain file. Download it again.", path=path)
            yield file
    except FileNotFoundError as error:
        raise CheckpointError(
            "{path} cannot be read ({reason}). A checkpoint folder needs it.",
            path=path,
            reason=error.strerror,
        ) from error
    except OSError as error:
        raise CheckpointError(
            "{path} cannot be read ({reason}).", path=path, reason=error.strerror
        ) from error


def _open_without_waiting(path: str, flags: int) -> int:
    """Opens a pipe at once, also without a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_json(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds."""
    with open_regular(path) as file:
        data = file.read(LARGEST_JSON + 1)
    if len(data) > LARGEST_JSON:
        raise CheckpointError("{path} is too large to be a configuration.", path=path)
    return _object(data, path)


def _object(raw: bytes, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            "{path} is damaged: {error}. Download it again.", path=path, error=error
        ) from error
    if not isinstance(value, dict):
        raise CheckpointError("{path} is damaged: no JSON object. Download it again.", path=path)
    return value


@dataclass(frozen=True)
class Table:
    """A JSON object whose values are checked for type and range when they are read."""

    raw: Mapping[str, Any]
    source: str

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """An integer from `low` to `high`; `default` where the key is missing."""
        value = self.raw.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(
                key, Message("a whole number from {low} to {high}", low=low, high=high)
            )
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self.raw.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value:
            raise self.wrong(key, Message("a word"))
        return value

    def table(self, key: str) -> Table:
        value = self.raw.get(key)
        if not isinstance(value, dict):
            raise self.wrong(key, Message("an object"))
        return Table(value, f"{self.source}: {key}")

    def numbers(self, key: str, high: int) -> dict[str, int]:
        """A table of integers below `high` by name; empty where the key is missing."""
        if self.raw.get(key) is None:
            return {}
        inner = self.table(key)
        return {name: inner.integer(name, 0, high - 1) for name in inner.raw}

    def wrong(self, key: str, wanted: str) -> CheckpointError:
        found = repr(self.raw.get(key, "missing"))[:60]
        return CheckpointError(
            "{source}: '{key}' should be {wanted}, not {found}. Download it again.",
            source=self.source,
            key=key,
            wanted=wanted,
            found=found,
        )


def read_row(folder: Path, name: str, row: int) -> Vector:
    """One row of a matrix among the folder's weights, as float32."""
    path = folder / _shard(folder, name)
    with open_regular(path) as file:
        size = int.from_bytes(file.read(8), "little")
        if not 0 < size <= LARGEST_JSON:
            raise CheckpointError("{path} is no safetensors file. Download it again.", path=path)
        header = Table(_object(file.read(size), path), str(path))
        dtype, width, start = _place(header.table(_key(header, name)), row)
        file.seek(8 + size + start)
        data = file.read(width * dtype.itemsize)
    if len(data) != width * dtype.itemsize:
        raise CheckpointError("{path} ends too early. Download it again.", path=path)
    return _decode(np.frombuffer(data, dtype))


def weights_digest(folder: Path) -> str:
    """A hash that tells a talker's weights from any others, without reading all of them.

    Names, types and shapes of its tensors, and the first and middle bytes of each; "" without
    weights that can be read. Tuning changes every matrix, so pieces of each tell.
    """
    digest = hashlib.sha256()
    paths = sorted(folder.glob("*.safetensors"))
    for path in paths:
        with open_regular(path) as file:
            size = int.from_bytes(file.read(8), "little")
            if not 0 < size <= LARGEST_JSON:
                return ""  # loading it says what is wrong
            header = _object(file.read(size), path)
            for name in sorted(name for name in header if "talker." in name):
                table = Table(header, str(path)).table(name)
                ends = table.raw.get("data_offsets")
                if not _naturals(ends):
                    return ""
                about = [name, table.raw.get("dtype"), table.raw.get("shape")]
                digest.update(json.dumps(about).encode())
                for start in (ends[0], (ends[0] + ends[1]) // 2):
                    file.seek(8 + size + start)
                    digest.update(file.read(max(0, min(DIGESTED, ends[1] - start))))
    return digest.hexdigest() if paths else ""


def _shard(folder: Path, name: str) -> str:
    """The file that holds this tensor."""
    if (folder / "model.safetensors").is_file():
        return "model.safetensors"
    path = folder / "model.safetensors.index.json"
    places = Table(read_json(path), str(path)).table("weight_map")
    shard = places.text(_key(places, name))
    if Path(shard).name != shard:
        raise CheckpointError(
            "{path} points outside its folder: {shard!r}.", path=path, shard=shard
        )
    return shard


def _key(names: Table, name: str) -> str:
    """The tensor's name there: with the wrapper's prefix only where it is not without it."""
    return PREFIX + name if name not in names.raw and PREFIX + name in names.raw else name


def _place(header: Table, row: int) -> tuple[np.dtype[Any], int, int]:
    """The stored dtype, the number of columns, and the byte offset of the row."""
    stored, shape, ends = (header.raw.get(key) for key in ("dtype", "shape", "data_offsets"))
    if stored not in _STORED:
        raise header.wrong("dtype", Message("one of {there}", there=", ".join(_STORED)))
    if not _naturals(shape) or not 0 <= row < shape[0] or shape[1] > WIDEST_ROW:
        raise header.wrong("shape", Message("a matrix with a row {row}", row=row))
    dtype, width = np.dtype(_STORED[stored]), shape[1]
    if not _naturals(ends) or ends[1] - ends[0] != shape[0] * width * dtype.itemsize:
        raise header.wrong("data_offsets", Message("as long as the shape says"))
    return dtype, width, ends[0] + row * width * dtype.itemsize


def _naturals(value: Any) -> TypeGuard[list[int]]:
    """Whether this is a list of two integers, none of them negative or past any file's end."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    return all(type(number) is int and 0 <= number <= LARGEST_FILE for number in value)


def _decode(numbers: np.ndarray[Any, np.dtype[Any]]) -> Vector:
    if numbers.dtype == np.uint16:  # bfloat16: the upper half of a float32
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(np.float32)
