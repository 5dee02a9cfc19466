"""How one launch splits a transformer's layers over a GPU.

Each multiprocessor runs one block, which computes its share of every product's columns. Weights
pass through its shared memory in stages of eight columns and a slab of inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from engine.model.configs import TransformerConfig

TILES = (1, 2)  # of 16 rows: a kernel is compiled for each
POSTED_ROWS = 16  # up to this, blocks wait for numbers, not for each other
MAX_ROWS = 32  # of one launch, or of each of its partitions
SCRATCH = 128  # bytes of shared memory for counters
STATIC = 1024  # bytes of statically allocated shared memory
THREADS = 256  # per block
MAX_BLOCKS = 128
# Largest share of the ring for one part, so that the next part can be loaded meanwhile; more where
# shared memory is small.
PREFETCH = (2 / 3, 3 / 4, 1.0)
MAX_COLUMNS = 6  # of a part, in eights: more need too many registers


def shared_memory(device: Any) -> int:
    """Bytes that a block may ask for, of a device's properties, whose types do not name it."""
    return int(device.shared_memory_per_block_optin)


@dataclass(frozen=True)
class LaunchConfig:
    blocks: int  # at most one per multiprocessor
    slab: int  # inputs of a stage
    stages: int  # of weights in a block's shared memory
    product_bytes: int  # for a product's sums, or the keys when sampling
    residual_bytes: int  # for the residual of this block's columns
    parts: tuple[int, int, int, int]  # of the products: qkv, o, gate and up, down

    @property
    def shared(self) -> int:
        ring = self.stages * (self.slab * 16 + 16)
        return ring + self.product_bytes + self.residual_bytes + SCRATCH

    def constants(
        self, config: TransformerConfig, tiles: int, posted: bool = False
    ) -> dict[str, int | float]:
        """Compile-time constants of a kernel. `posted`: without barriers, for POSTED_ROWS."""
        qkv, out, gate, down = self.parts
        return dict(
            LAYERS=config.layers, GRID=self.blocks, TILES=tiles, STAGES=self.stages,
            SLAB=self.slab, MAX_ROWS=MAX_ROWS, SCRATCH=SCRATCH, PRODUCT_BYTES=self.product_bytes,
            QKV_PARTS=qkv, OUT_PARTS=out, GATE_PARTS=gate, DOWN_PARTS=down,
            POSTED=int(posted), POSTED_ROWS=POSTED_ROWS,
        )  # fmt: skip


@dataclass(frozen=True)
class Product:
    """A block's share of one product."""

    columns: int  # in eights
    inputs: int
    multiple: int  # of columns that stay in one part: a gate with its up

    def parts(self, slab: int, stages: int) -> int:
        """The fewest parts whose weights fit into `stages`; 0: none fits."""
        for parts in range(1, self.columns // self.multiple + 1):
            columns, rest = divmod(self.columns, parts)
            fits = columns <= MAX_COLUMNS and columns * (self.inputs // slab) <= stages
            if not rest and columns % self.multiple == 0 and fits:
                return parts
        return 0


def find_launch_config(
    config: TransformerConfig, processors: int, shared: int, codes: int = 0
) -> LaunchConfig | None:
    """For a GPU with `processors` multiprocessors of `shared` bytes of shared memory.

    `codes`: columns of a head after the layers, and keys when sampling. None: no split fits.
    """
    known = config.head_dim == 128 and config.heads <= 2 * config.kv_heads and config.qk_norm
    if not known or config.hidden_size % 256 or codes % 256:
        return None
    blocks = _blocks(config, codes, processors)
    configs = (
        _with_slab(config, blocks, slab, shared, codes, prefetch)
        for prefetch in PREFETCH
        for slab in (1024, 512, 256)
    )
    return next((found for found in configs if found is not None), None)


def _blocks(config: TransformerConfig, codes: int, processors: int) -> int:
    """The largest power of two that divides all columns evenly."""
    _, qkv = _attention_widths(config)
    widths = (config.hidden_size, qkv, config.intermediate_size, codes)
    even = math.gcd(*(width // 8 for width in widths))
    return math.gcd(even, 1 << (min(processors, MAX_BLOCKS).bit_length() - 1))


def _with_slab(
    config: TransformerConfig, blocks: int, slab: int, shared: int, codes: int, prefetch: float
) -> LaunchConfig | None:
    attended, qkv = _attention_widths(config)
    width, inner = config.hidden_size, config.intermediate_size
    if math.gcd(slab, width, attended, inner) != slab:
        return None
    products = (
        Product(qkv // 8 // blocks, width, 1),
        Product(width // 8 // blocks, attended, 1),
        Product(2 * inner // 8 // blocks, width, 2),
        Product(width // 8 // blocks, inner, 1),
    )
    head = codes // 8 // blocks
    widest = max(head, min(MAX_COLUMNS, max(product.columns for product in products)))
    space, residual = max(8 * widest * 512 + 512, codes * 16), MAX_ROWS * width // blocks * 2
    stages = (shared - STATIC - SCRATCH - space - residual) // (slab * 16 + 16)
    qkv_parts, out, gate, down = (each.parts(slab, int(stages * prefetch)) for each in products)
    if not (qkv_parts and out and gate and down) or head * (width // slab) > stages:
        return None
    return LaunchConfig(blocks, slab, stages, space, residual, (qkv_parts, out, gate, down))


def _attention_widths(config: TransformerConfig) -> tuple[int, int]:
    """Widths of attention's output, and of queries, keys and values."""
    attended = config.heads * config.head_dim
    return attended, attended + 2 * config.kv_heads * config.head_dim
