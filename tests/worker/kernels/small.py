"""A small predictor with everything that the published one has, inputs for it, and a compiler
that makes kernels for the CPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.model.predictor import Predictor
from engine.model.shapes import BlockShape, TalkerShape
from engine.worker.kernels import nvrtc
from engine.worker.sampling import CANDIDATES, Knobs

TWIN = Path(__file__).parent / "twin.cpp"
WIDE, CODES, BOOKS = 512, 512, 2


def network(width: int = WIDE // 2) -> Predictor:
    block = BlockShape(width, 512, 2, 4, 2, 128, 1e6, 1e-6)
    talker = BlockShape(WIDE, 512, 1, 4, 2, 128, 1e6, 1e-6)
    shape = TalkerShape(talker, block, 600, CODES, BOOKS + 1, 9, 9, 99)
    random = torch.Generator().manual_seed(0)
    made = Predictor(shape).bfloat16().requires_grad_(False)
    for name, weight in made.named_parameters():
        if weight.dim() > 1:
            size = 1 if "embedding" in name else weight.shape[1] ** -0.5
            weight.normal_(0, size, generator=random)
        else:
            weight.uniform_(0.5, 1.5, generator=random)
    return made


def inputs(rows: int, seed: int) -> tuple[Tensor, Tensor, Knobs, Tensor]:
    """Hidden states, embeddings, knobs and lots of as many rows."""
    random = torch.Generator().manual_seed(seed)
    hidden, first = torch.randn(2, rows, WIDE, generator=random).bfloat16()
    heat, top_p, luck = torch.rand(3, rows, 1, generator=random)
    top_k = torch.randint(1, CANDIDATES, (rows, 1), generator=random).float()
    own = Knobs(1 / (heat + 0.5), top_k, 1 - top_p / 2, (luck > 0.3).float())
    return hidden, first, own, torch.rand(rows, BOOKS, generator=random)


def told(net: Predictor, hidden: Tensor, first: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
    """The plain logits [R, books, V] where the codes before are these, and the sum."""
    logits: list[Tensor] = []

    def choose(book: int, each: Tensor) -> Tensor:
        logits.append(each)
        return codes[:, book - 1]

    _, total = net.sample(hidden, first, choose)
    return torch.stack(logits, 1), total


def distance(found: Tensor, wanted: Tensor) -> float:
    return ((found.double() - wanted).norm() / wanted.norm()).item()


def compiled(
    folder: Path, name: str, parts: tuple[str, ...], entry: str, constants: dict[str, int | float]
) -> Path:
    """A library of kernels whose threads are fibers: `parts` of the sources, then `entry`."""
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler here")
    source, library = folder / f"{name}.cpp", folder / f"{name}.so"
    own = [part for part in parts if part != "primitives"]
    source.write_text(TWIN.read_text() + nvrtc.source(*own) + entry)
    # some systems' g++ checks jumps by itself, and takes one between fibers for a fault
    flags = ["-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-w", "-shared", "-fPIC"]
    flags += nvrtc.constants(constants)
    subprocess.run(["g++", *flags, "-o", str(library), str(source)], check=True)
    return library
