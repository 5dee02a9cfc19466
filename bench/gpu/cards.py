"""`python -m bench.gpu.cards`: which kernels other NVIDIA cards would get.

Every CUDA source is compiled for the architecture of each card, which needs NVRTC and no GPU
(`pip install nvidia-cuda-nvrtc` where torch is the build for CPUs). What
the compiler says of registers and shared memory is held against the card's limits, with the same
functions that choose kernels when a model is loaded. Says nothing about speed, and nothing is run.
"""

from __future__ import annotations

import argparse
import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import torch

from bench.random_config import config as checkpoint_config
from engine.checkpoints.checkpoint import SpecialIds
from engine.model.configs import TalkerConfig
from engine.model.talker import Talker
from engine.worker.kernels.cuda import (
    glue_kernels,
    nvrtc,
    predictor_persistent,
    predictor_tiled,
    talker_kernels,
)
from engine.worker.kernels.cuda.constants import predictor_constants
from engine.worker.kernels.cuda.launch_config import MAX_BLOCKS, TILES, find_launch_config
from engine.worker.kernels.cuda.predictor_kernels import PARTITIONS

REGISTERS: Final = 65_536  # of a multiprocessor, on every card here
PERSISTENT: Final = 9  # compute capability from which kernels of one launch are built


@dataclass(frozen=True)
class Card:
    """Published figures of one card."""

    name: str
    capability: tuple[int, int]
    processors: int  # multiprocessors
    shared: int  # bytes of shared memory that a block may ask for
    memory: int  # GB

    @property
    def architecture(self) -> str:
        return "sm_{}{}".format(*self.capability)


CARDS: Final = (
    Card("RTX 3060", (8, 6), 28, 101_376, 12),
    Card("A100", (8, 0), 108, 166_912, 40),
    Card("L4", (8, 9), 58, 101_376, 24),
    Card("RTX 4090", (8, 9), 128, 101_376, 24),
    Card("H100", (9, 0), 132, 232_448, 80),
    Card("B200", (10, 0), 148, 232_448, 180),
    Card("RTX 5090", (12, 0), 170, 101_376, 32),
)


@dataclass(frozen=True)
class Source:
    """One compiled module, and what it asks for when it is launched."""

    name: str
    files: tuple[str, ...]
    constants: dict[str, int | float]
    shared: int  # bytes of dynamic shared memory, the most of its kernels
    threads: int


@dataclass(frozen=True)
class Usage:
    """What one kernel takes, by the compiler."""

    kernel: str
    registers: int
    static: int  # bytes of shared memory
    spilled: int  # bytes of stores and loads


def find_compiler() -> ctypes.CDLL | None:
    """NVRTC as torch brings it, or NVIDIA's package; None: it is not installed."""
    try:
        return nvrtc.load_compiler()
    except nvrtc.KernelError:
        spec = find_spec("nvidia")
        places = spec.submodule_search_locations if spec else None
    files = [file for place in places or () for file in Path(place).rglob("libnvrtc.so.*")]
    return ctypes.CDLL(str(min(files))) if files else None


def talker_of(size: str) -> Talker:
    """A network of the published shapes, without memory."""
    raw = checkpoint_config(size, "custom_voice")["talker_config"]
    with torch.device("meta"):
        return Talker(TalkerConfig.from_dict(raw)).to(torch.bfloat16)


def sources(talker: Talker, ids: SpecialIds, card: Card) -> Iterator[Source]:
    """The modules that this card would compile; what it cannot take is left out."""
    predictor = talker.code_predictor
    codes = predictor.lm_head[0].out_features
    glue = glue_kernels.constants(talker, ids)
    keys = talker.config.vocab_size * 16 + 128
    yield Source("frame glue", glue_kernels.SOURCES, glue, keys, glue_kernels.THREADS)
    tiled = predictor_constants(predictor)
    yield Source(
        "predictor, tiled",
        predictor_tiled.SOURCES,
        tiled,
        codes * 16 + 128,
        predictor_tiled.THREADS,
    )
    if card.capability[0] < PERSISTENT:
        return
    for partitions in (1, PARTITIONS):
        launch = find_launch_config(
            predictor.model.config, card.processors // partitions, card.shared, codes
        )
        for tiles in TILES if launch else ():
            assert launch
            yield Source(
                f"predictor, one launch, {partitions} × {launch.blocks} blocks, {16 * tiles} rows",
                predictor_persistent.SOURCES,
                predictor_persistent.constants(predictor, launch, tiles),
                launch.shared,
                256,
            )
    config = talker.model.config
    launch = find_launch_config(config, card.processors, card.shared)
    if launch and launch.blocks == MAX_BLOCKS:
        size = (config.layers, 64, config.kv_heads, 4096, config.head_dim)
        with torch.device("meta"):
            cache = torch.empty(size, dtype=torch.bfloat16)
        yield Source(
            f"talker, one launch, {launch.blocks} blocks",
            talker_kernels.SOURCES,
            talker_kernels.constants(config, launch, 1, cache),
            launch.shared,
            256,
        )


def compile_usage(source: Source, card: Card, compiler: ctypes.CDLL) -> list[Usage]:
    read = nvrtc.read_source(source.files, source.constants)
    verbose = read._replace(options=(*read.options, "--ptxas-options=-v"))
    return read_usage(nvrtc.compile_for(card.architecture, verbose, compiler).log)


def read_usage(log: str) -> list[Usage]:
    """Each kernel's part of what ptxas writes."""
    parts = re.split(r"Compiling entry function '", log)[1:]
    return [
        Usage(
            kernel=part.split("'")[0],
            registers=_number(r"Used (\d+) registers", part),
            static=_number(r"(\d+) bytes smem", part),
            spilled=_number(r"(\d+) bytes spill stores", part)
            + _number(r"(\d+) bytes spill loads", part),
        )
        for part in parts
    ]


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def misfits(usage: Usage, source: Source, card: Card) -> list[str]:
    """Why this kernel could not be launched on this card."""
    reasons = []
    if usage.registers * source.threads > REGISTERS:
        reasons.append(f"{usage.registers} registers × {source.threads} threads")
    if source.shared + usage.static > card.shared:
        reasons.append(f"{source.shared + usage.static} bytes of shared memory of {card.shared}")
    return reasons


def report(size: str, card: Card, compiler: ctypes.CDLL) -> Iterator[str]:
    talker = talker_of(size)
    end = checkpoint_config(size, "custom_voice")["talker_config"]["codec_eos_token_id"]
    names = [field.name for field in fields(SpecialIds)]
    ids = SpecialIds(**dict.fromkeys(names, 0) | {"codec_eos": end})  # the one that is compiled in
    for source in sources(talker, ids, card):
        usages = compile_usage(source, card, compiler)
        reasons = [reason for usage in usages for reason in misfits(usage, source, card)]
        spilled = sum(usage.spilled for usage in usages)
        most = max(usage.registers for usage in usages)
        verdict = "; ".join(reasons) or "fits"
        yield (
            f"| {card.name} ({card.architecture}) | {size} | {source.name} | {most} | {spilled} | "
            f"{source.shared >> 10} of {card.shared >> 10} KiB | {verdict} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nvrtc", help="NVRTC's library; without it, the one that is installed")
    parser.add_argument("--size", nargs="*", default=["0.6B", "1.7B"])
    arguments = parser.parse_args()
    compiler = ctypes.CDLL(arguments.nvrtc) if arguments.nvrtc else find_compiler()
    if compiler is None:
        parser.error("NVRTC is not here: pip install nvidia-cuda-nvrtc")
    print("| card | model | kernels | registers | spilled bytes | shared memory | |")
    print("|---|---|---|---|---|---|---|")
    for size in arguments.size:
        for card in CARDS:
            for line in report(size, card, compiler):
                print(line, flush=True)


if __name__ == "__main__":
    main()
