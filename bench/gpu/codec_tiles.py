"""`python -m bench.gpu.codec_tiles 1x1 64x4`: tile sizes for the codec's products on a GPU.

Times each product of the published shapes with every tile size and as the libraries' convolution.
`engine.worker.codec.fused_layers.tiles` is chosen by this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import torch
import torch.nn.functional as F
import typer

from bench.gpu.codec import DEVICE, milliseconds
from engine.model.codec import CodecState
from engine.worker.codec import fused_layers
from engine.worker.cuda_graphs import GraphCapture

COPIES = 10
SHAPES = {  # taps, dilation, channels, width, samples per frame
    "rise": (1, 1, 1024, 4096, 4),
    "fall": (1, 1, 4096, 1024, 4),
    "start": (7, 1, 1024, 1536, 4),
    "up1": (2, 1, 1536, 6144, 4),
    "wide1": (7, 3, 768, 768, 32),
    "point1": (1, 1, 768, 768, 32),
    "up2": (2, 1, 768, 1920, 32),
    "wide2": (7, 3, 384, 384, 160),
    "point2": (1, 1, 384, 384, 160),
    "up3": (2, 1, 384, 768, 160),
    "wide3": (7, 3, 192, 192, 640),
    "point3": (1, 1, 192, 192, 640),
    "up4": (2, 1, 192, 288, 640),
    "wide4": (7, 3, 96, 96, 1920),
    "point4": (1, 1, 96, 96, 1920),
}
TILES = (
    (16, 32, 128, 4, 6), (16, 64, 64, 4, 8), (64, 64, 64, 4, 4), (64, 64, 64, 4, 2),
    (64, 128, 64, 4, 3), (64, 128, 64, 4, 2), (128, 64, 64, 4, 4), (128, 64, 64, 4, 2),
    (128, 128, 64, 4, 3), (128, 128, 64, 4, 2), (128, 64, 32, 4, 5), (128, 64, 32, 4, 3),
    (128, 128, 32, 4, 5), (128, 128, 32, 4, 3), (128, 32, 32, 4, 5), (128, 32, 32, 4, 3),
    (64, 32, 32, 4, 3), (128, 128, 64, 8, 2), (64, 128, 32, 4, 3),
)  # fmt: skip


def sweep(cells: Iterable[tuple[int, int]]) -> None:
    """Time each product with every tile size, and as the libraries' convolution."""
    for batch, frames in cells:
        for name, (taps, dilation, channels, width, pace) in SHAPES.items():
            _sweep(name, taps, dilation, channels, width, batch, frames * pace)


def _sweep(
    name: str, taps: int, dilation: int, channels: int, width: int, batch: int, length: int
) -> None:
    kind = dict(device=DEVICE, dtype=torch.float16)
    past = (taps - 1) * dilation
    x = torch.randn(batch, length, channels, **kind)
    weight = torch.randn(taps * channels, width, **kind) / math.sqrt(taps * channels)
    ones = torch.ones(width, device=DEVICE)
    kept = CodecState(torch.zeros(0), torch.zeros(batch, max(16, past * channels), **kind), x)
    rows = torch.arange(batch, device=DEVICE)
    flow = fused_layers.StepContext(kept, rows, torch.full_like(rows, length), length)
    products = [  # several copies, so that weights are not in the cache
        fused_layers.ConvMatmul(
            weight.clone(), ones, channels, dilation=dilation, active=fused_layers.Snake(ones, ones)
        )
        for _ in range(COPIES)
    ]
    # the last product of a unit adds the residual and keeps the sums
    residual = torch.randn(batch, length, width, **kind) if taps == 1 else None
    flops = 2 * batch * length * taps * channels * width
    found = []
    for tile in TILES:
        names = ("tile_m", "tile_n", "tile_k", "num_warps", "num_stages")
        size = dict(zip(names, tile, strict=True))
        if size["tile_m"] > 2 * batch * length + 16 or channels % size["tile_k"]:
            continue
        fused_layers.tiles = lambda *_: size  # noqa: B023
        fused_layers.update_past = lambda *_: None
        try:
            works = [partial(p, flow, x, residual, residual is not None) for p in products]
            found.append((_milliseconds(works), tile))
        except Exception as error:  # too much shared memory
            print(f"  {tile}: {type(error).__name__}")
    joined = torch.randn(batch, channels, 1, length + past, **kind)
    joined = joined.contiguous(memory_format=torch.channels_last)
    kernel = weight.view(taps, channels, 1, width).permute(3, 1, 2, 0)
    kernel = kernel.contiguous(memory_format=torch.channels_last)
    libraries = [
        partial(F.conv2d, joined, kernel.clone(), dilation=(1, dilation)) for _ in products
    ]
    library = _milliseconds(libraries)
    best = sorted(found)[:4]
    told = ", ".join(f"{ms * 1000:.0f} us {flops / ms / 1e9:.0f} T {tile}" for ms, tile in best)
    print(f"{name:7} {batch:3} x {length:5}: library {library * 1000:.0f} us "
          f"{flops / library / 1e9:.0f} T | {told}", flush=True)  # fmt: skip


def _milliseconds(works: list[Callable[[], object]]) -> float:
    """Milliseconds per work, captured one after the other in a graph."""

    def work() -> None:
        for each in works:
            each()

    work()
    # the minimum, since other processes may use the GPU
    return milliseconds(GraphCapture(DEVICE)(work), 15, min) / len(works)


@torch.inference_mode()
def main(cells: list[str]) -> None:
    """CELLS like 1x1 8x12: rows by frames."""
    sweep(tuple(map(int, cell.split("x"))) for cell in cells)


if __name__ == "__main__":
    typer.run(main)
