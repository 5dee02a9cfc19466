"""A small predictor with every part of the published one, its inputs, and a compiler of the CUDA
kernels for the CPU."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.model.configs import TalkerConfig, TransformerConfig
from engine.model.predictor import Predictor
from engine.worker.kernels.cuda import nvrtc
from engine.worker.state.sampling import CANDIDATES, SamplingTensors

TWIN = Path(__file__).parent / "twin.cpp"
WIDE, CODES, BOOKS = 512, 512, 2
# RUN(kernel) exports a kernel for `TwinModule`.
LAUNCHES = """
template <class... Given>
bool run(void (*kernel)(Given...), int blocks, unsigned long shared, Given... given) {
  return run_grid(blocks, shared, [=] { kernel(given...); });
}
#define RUN(kernel) \
  extern "C" auto run_##kernel() { return &run_of<decltype(kernel)>::template call<&kernel>; }
template <class Kernel> struct run_of;
template <class... Given> struct run_of<void(Given...)> {
  template <void (*kernel)(Given...)> static bool call(int blocks, unsigned long shared,
                                                       Given... given) {
    return run(kernel, blocks, shared, given...);
  }
};
"""


def network(width: int = WIDE // 2) -> Predictor:
    block = TransformerConfig(width, 512, 2, 4, 2, 128, 1e6, 1e-6)
    talker = TransformerConfig(WIDE, 512, 1, 4, 2, 128, 1e6, 1e-6)
    config = TalkerConfig(talker, block, 600, CODES, BOOKS + 1, 9, 9, 99)
    random = torch.Generator().manual_seed(0)
    made = Predictor(config).bfloat16().requires_grad_(False)
    for name, weight in made.named_parameters():
        if weight.dim() > 1:
            size = 1 if "embedding" in name else weight.shape[1] ** -0.5
            weight.normal_(0, size, generator=random)
        else:
            weight.uniform_(0.5, 1.5, generator=random)
    return made


def inputs(rows: int, seed: int) -> tuple[Tensor, Tensor, SamplingTensors, Tensor]:
    """Hidden states, embeddings, sampling settings and uniforms of some rows."""
    random = torch.Generator().manual_seed(seed)
    hidden, first = torch.randn(2, rows, WIDE, generator=random).bfloat16()
    heat, top_p, sample_mask = torch.rand(3, rows, 1, generator=random)
    top_k = torch.randint(1, CANDIDATES, (rows, 1), generator=random).float()
    sampling = SamplingTensors(1 / (heat + 0.5), top_k, 1 - top_p / 2, (sample_mask > 0.3).float())
    return hidden, first, sampling, torch.rand(rows, BOOKS, generator=random)


def distance(found: Tensor, wanted: Tensor) -> float:
    return ((found.double() - wanted).norm() / wanted.norm()).item()


def compiled(
    folder: Path, name: str, parts: tuple[str, ...], entry: str, constants: dict[str, int | float]
) -> Path:
    """A library of kernels whose threads are fibers: `parts` of the sources, then `entry`."""
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler here")
    source, library = folder / f"{name}.cpp", folder / f"{name}.so"
    chosen = [part for part in parts if part != "primitives"]
    read = nvrtc.read_source(chosen, constants)
    source.write_text(TWIN.read_text() + read.text + entry)
    # some systems' g++ checks jumps by itself, and takes one between fibers for a fault
    flags = ["-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-w", "-shared", "-fPIC"]
    flags += read.options
    subprocess.run(["g++", *flags, "-o", str(library), str(source)], check=True)
    return library


class TwinModule:
    """Stands for nvrtc.Module, for kernels of one launch each."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))

    def kernel(self, name: str, shared: int = 0) -> Callable[..., None]:
        entry = self._library[f"run_{name}"]
        entry.restype = ctypes.c_void_p
        return partial(self._launch, ctypes.CFUNCTYPE(ctypes.c_bool)(entry()), shared)

    @staticmethod
    def _launch(run: Any, shared: int, blocks: int, threads: int, *arguments: Any) -> None:
        assert threads == 256  # WORKERS
        given = [
            ctypes.c_int(each)
            if isinstance(each, int)
            else each
            if isinstance(each, ctypes.Structure)
            else ctypes.c_void_p(None if each is None else each.data_ptr())
            for each in arguments
        ]
        assert run(ctypes.c_int(blocks), ctypes.c_ulong(shared), *given), "threads wait forever"
