"""Training state on disk, whole or in pieces small enough to carry.

A state is a dictionary for torch.save. Pieces are plain cuts of that file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

PIECE = 15 * 2**20


def save(state: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    torch.save(state, part)
    os.replace(part, path)


def load(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    return state


def split(path: Path, folder: Path) -> list[Path]:
    """Cut a file into numbered pieces."""
    folder.mkdir(parents=True, exist_ok=True)
    data = path.read_bytes()
    pieces = []
    for index, start in enumerate(range(0, len(data), PIECE)):
        piece = folder / f"{path.name}.{index:02d}"
        piece.write_bytes(data[start : start + PIECE])
        pieces.append(piece)
    return pieces


def join(folder: Path, name: str, path: Path) -> Path:
    """Put the pieces of `name` together again."""
    pieces = sorted(folder.glob(f"{name}.[0-9][0-9]"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(piece.read_bytes() for piece in pieces))
    return path
