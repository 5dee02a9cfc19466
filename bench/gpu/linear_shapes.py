"""`python -m bench.gpu.linear_shapes`: finds tile sizes for products of few rows.

Every tile is timed over all layers of a published talker with random weights, in one graph, so that
weights come from memory and not from a cache. Prints microseconds per layer by rows, with the
library's product and the lower bound by memory bandwidth.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.worker.cuda_graphs import GraphCapture

LAYERS, WIDTH, INNER, HEADS, KEPT, DIM = 28, 2048, 6144, 16, 8, 128
REPEATS = 20  # of a timed graph
BANDWIDTH = 4.3e12  # bytes per second, the most that was measured on an H200
# name -> columns, inputs, what is fused
PRODUCTS = {
    "qkv": ((HEADS + 2 * KEPT) * DIM, WIDTH, "norm"),
    "out": (WIDTH, HEADS * DIM, "added"),
    "gate": (2 * INNER, WIDTH, "gated"),
    "down": (WIDTH, INNER, "added"),
}
TILES = [
    cut
    for cut in itertools.product((16, 32), (32, 64, 128), (4, 8), (3, 4, 6))
    if cut[0] * cut[1] * cut[2] * cut[3] <= 72 << 10  # elements in flight
]

CUTS = [*itertools.product((32, 64, 128), (4, 8), (2, 3), (1, 4)), (64, 4, 3, 2), (64, 4, 3, 8)]


def weights(name: str, layers: int) -> list[Tensor]:
    columns, inputs, _ = PRODUCTS[name]
    return [
        torch.randn(columns, inputs, device="cuda", dtype=torch.bfloat16) * inputs**-0.5
        for _ in range(layers)
    ]


def call(name: str, rows: int, cut: tuple[int, ...] | None) -> Callable[[Tensor], Any]:
    """The product of a weight with this tile or by the library (None), with the fused parts."""
    from engine.worker.kernels.triton.linear import (
        Tile,
        add_norm,
        as_normed,
        gate,
        product,
        product_added,
    )

    columns, inputs, kind = PRODUCTS[name]
    x = torch.randn(rows, inputs, device="cuda", dtype=torch.bfloat16)
    norm = torch.ones(max(columns, inputs), device="cuda", dtype=torch.bfloat16)
    added = torch.zeros(rows, columns, device="cuda", dtype=torch.bfloat16)
    if cut is not None:
        tile, normed = Tile(*cut), as_normed(x, norm[:inputs])
        if kind == "added":
            return lambda w: product_added(x, w, tile, added, norm)
        return lambda w: product(normed, w, tile, 1e-6, gated=kind == "gated")
    if kind == "added":
        return lambda w: add_norm(F.linear(x, w), added, norm[:columns], 1e-6)
    if kind == "gated":
        return lambda w: gate(F.linear(x, w))
    return lambda w: F.linear(x, w)


def compile_some(work: list[tuple[str, int, tuple[int, ...]]]) -> None:
    """Compile in another process, to fill the cache."""
    for name, rows, cut in work:
        try:
            call(name, rows, cut)(weights(name, 1)[0])
        except Exception as error:
            print("tile not possible:", name, rows, cut, type(error).__name__, flush=True)
    torch.cuda.synchronize()


def compile_all(rows: list[int], processes: int) -> None:
    blocks = sorted({16 if count <= 16 else 32 for count in rows})
    work: list[tuple[str, int, tuple[int, ...]]] = [
        (name, block, cut) for name in PRODUCTS for block in blocks for cut in TILES
    ]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(compile_some, [work[i::processes] for i in range(processes)], 1)


def _spread(call: Callable[..., Any], values: Sequence[Any]) -> Any:
    return call(*values)


def microseconds(record: GraphCapture, run: Callable[[], Any]) -> float:
    run()
    replay = record(run)
    replay()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(REPEATS):
        replay()
    torch.cuda.synchronize()
    return 1e6 * (time.perf_counter() - begun) / REPEATS


def tune(rows: list[int], record: GraphCapture) -> list[dict[str, Any]]:
    table = []
    for name, (columns, inputs, _) in PRODUCTS.items():
        layers = weights(name, LAYERS)
        floor = round(columns * inputs * 2 / BANDWIDTH * 1e6, 2)
        for count in rows:
            spent = timed(name, count, layers, record)
            best = dict(sorted(spent.items(), key=lambda pair: pair[1])[:5])
            found = {"product": name, "rows": count, "floor": floor}
            table.append({**found, "library": spent["None"], "best": best})
            print(json.dumps(table[-1]), flush=True)
    return table


def timed(name: str, rows: int, layers: list[Tensor], record: GraphCapture) -> dict[str, float]:
    """Microseconds per layer by tile; None is the library."""
    spent: dict[str, float] = {}
    for cut in (None, *TILES):
        try:
            run = over(call(name, rows, cut), layers)
            spent[str(cut)] = round(microseconds(record, run) / len(layers), 2)
        except Exception as error:
            print(name, rows, cut, type(error).__name__, flush=True)
    return spent


def over(run: Callable[[Any], Any], layers: Iterable[Any]) -> Callable[[], Any]:
    return lambda: [run(layer) for layer in layers]


def attention(rows: int, length: int, record: GraphCapture) -> None:
    """Microseconds per layer for rows of one length, by tile."""
    from engine.worker.kernels.triton.attention import AttentionTile, HeadConfig, attend

    positions = 1024
    cos, sin = torch.randn(2, positions, DIM, device="cuda", dtype=torch.bfloat16)
    norm = torch.ones(DIM, device="cuda", dtype=torch.bfloat16)
    done = torch.zeros(rows * KEPT, dtype=torch.int32, device="cuda")
    heads = HeadConfig(HEADS, KEPT, 1e-6, cos, sin, done)
    cache = torch.randn(LAYERS, 2, rows, KEPT, positions, DIM, device="cuda", dtype=torch.bfloat16)
    qkv = torch.randn(rows, (HEADS + 2 * KEPT) * DIM, device="cuda", dtype=torch.bfloat16)
    index, at = torch.arange(rows, device="cuda"), torch.full((rows,), length, device="cuda")
    spent = {}
    for cut in CUTS:
        one = partial(attend, qkv, (norm, norm), heads, index, at, tile=AttentionTile(*cut))
        run = over(partial(_spread, one), cache)
        spent[str(cut)] = round(microseconds(record, run) / LAYERS, 2)
    floor = rows * length * KEPT * DIM * 4 / BANDWIDTH * 1e6
    best = dict(sorted(spent.items(), key=lambda pair: pair[1]))
    print(f"attention {rows} rows of {length}, floor {floor:.2f} us:", best, flush=True)


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--rows", type=int, nargs="+", default=[1, 8, 16, 32])
    ask.add_argument("--processes", type=int, default=14)
    ask.add_argument("--out", type=Path, default=Path("."))
    ask.add_argument("--products", type=int, default=1, help="0: only attention")
    args = ask.parse_args()
    begun = time.perf_counter()
    if args.products:
        compile_all(args.rows, args.processes)
    print(f"compiled in {time.perf_counter() - begun:.1f} s", flush=True)
    with torch.inference_mode():
        record = GraphCapture(torch.device("cuda"))
        for rows, length in itertools.product((1, 8, 32, 64, 128), (200, 900)):
            attention(rows, length, record)
        table = tune(args.rows, record) if args.products else []
    (args.out / "tiles.json").write_text(json.dumps(table))


if __name__ == "__main__":
    main()
