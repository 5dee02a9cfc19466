"""Reads the weights of Perth's networks from the package `resemble-perth`.

The file is a zip of plain arrays and a pickle that names them. The pickle is never opened: the
arrays are in the order of the networks, and a checksum ensures that it is the known file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple, TypeAlias
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from engine import InvalidSetting

MISSING = (
    "The watermark needs one more package. Run pip install 'timbre-studio[watermark]' "
    "(in a checkout: -r requirements-watermark.txt), and start again."
)
NETWORKS = 4  # the encoder and three detectors
DEPTH = 7  # layers; all but the first and the last have seven taps
REACH = 7
_PACKAGE = "resemble-perth"
_FILE = "perth/perth_net/pretrained/implicit/perth_net_250000.pth.tar"
_SHA256 = "a15bce457ebc53ce5e6c9c3f11df78cf7ee2bf9cdab0a798902135b4c4027670"

Floats: TypeAlias = NDArray[np.float32]


class Layer(NamedTuple):
    taps: Floats  # [moments, in, out]
    bias: Floats  # [out]


Net: TypeAlias = tuple[Layer, ...]


def is_installed() -> bool:
    return _find() is not None


def read_networks() -> tuple[Net, ...]:
    """The encoder, then the detectors. Raises InvalidSetting."""
    path = _find()
    if path is None:
        raise InvalidSetting(MISSING)
    if hashlib.sha256(path.read_bytes()).hexdigest() != _SHA256:
        raise InvalidSetting(
            "{path} is not the file that Timbre knows. Install it again.", path=path
        )
    with ZipFile(path) as file:
        layers = list(_layers(file))
    return tuple(tuple(layers[at : at + DEPTH]) for at in range(0, len(layers), DEPTH))


def _layers(file: ZipFile) -> Iterator[Layer]:
    for number in range(NETWORKS * DEPTH):
        weight, bias = _array(file, 2 * number), _array(file, 2 * number + 1)
        moments = REACH if 0 < number % DEPTH < DEPTH - 1 else 1
        taps = weight.reshape(len(bias), -1, moments).transpose(2, 1, 0)
        yield Layer(np.ascontiguousarray(taps), bias)


def _array(file: ZipFile, number: int) -> Floats:
    return np.frombuffer(file.read(f"archive/data/{number}"), "<f4")


def _find() -> Path | None:
    try:
        path = Path(str(distribution(_PACKAGE).locate_file(_FILE)))
    except PackageNotFoundError:
        return None
    return path if path.is_file() else None
