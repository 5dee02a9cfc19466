"""How a transformer's layers lie on a device where one launch runs all of them.

A block a multiprocessor has its share of every product's columns; their weights pass through its
shared memory in stages of eight columns and a slab of inputs. Knows no networks and no kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.model.configs import TransformerConfig

TILES = (1, 2)  # of 16 rows: each its own kernel
MOST_ROWS = 32  # of one launch, or of each crew in it
WORDS = 128  # bytes
STATIC = 1024  # bytes of shared memory that a kernel takes besides
THREADS = 256  # of a block
BLOCKS = 128  # at most
AHEAD = 2 / 3  # of the ring that a part's weights take at most, so that the next ones come
WIDEST = 6  # columns in eights that a part makes at once: more take too many registers


@dataclass(frozen=True)
class Fit:
    blocks: int  # at most one a multiprocessor
    slab: int  # inputs of a stage
    stages: int  # of weights that fit in a block's shared memory
    products: int  # bytes beside them for a product, or a draw
    kept: int  # bytes for this block's columns
    parts: tuple[int, int, int, int]  # of which qkv, its projection, gate and up, and down are made

    @property
    def shared(self) -> int:
        return self.stages * (self.slab * 16 + 16) + self.products + self.kept + WORDS

    def constants(self, config: TransformerConfig, tiles: int) -> dict[str, int | float]:
        """What a kernel is compiled for."""
        qkv, mix, gate, down = self.parts
        return dict(
            LAYERS=config.layers, GRID=self.blocks, TILES=tiles, STAGES=self.stages,
            SLAB=self.slab, OWN=MOST_ROWS, WORDS=WORDS, PRODUCTS=self.products,
            QKV_PARTS=qkv, MIX_PARTS=mix, GATE_PARTS=gate, DOWN_PARTS=down,
        )  # fmt: skip


@dataclass(frozen=True)
class Product:
    """This block's share of one: columns in eights, inputs, and what parts hold together."""

    columns: int
    inputs: int
    together: int

    def parts(self, slab: int, stages: int) -> int:
        """The fewest parts whose weights take at most so many stages; 0: none does."""
        for parts in range(1, self.columns // self.together + 1):
            some, rest = divmod(self.columns, parts)
            fits = some <= WIDEST and some * (self.inputs // slab) <= stages
            if not rest and some % self.together == 0 and fits:
                return parts
        return 0


def fit(config: TransformerConfig, processors: int, shared: int, codes: int = 0) -> Fit | None:
    """For a device of so many multiprocessors with so much shared memory each.

    With `codes` keys of a draw in it, and as many columns of a head. None: not at all.
    """
    known = config.head_dim == 128 and config.heads <= 2 * config.kv_heads and config.qk_norm
    if not known or config.hidden_size % 256 or codes % 256:
        return None
    blocks = _blocks(config, codes, processors)
    fits = (_fit(config, blocks, slab, shared, codes) for slab in (1024, 512, 256))
    return next((found for found in fits if found is not None), None)


def _blocks(config: TransformerConfig, codes: int, processors: int) -> int:
    """The most, as a power of two, that share all columns evenly."""
    _, qkv = _mixed(config)
    even = math.gcd(
        *(width // 8 for width in (config.hidden_size, qkv, config.intermediate_size, codes))
    )
    return math.gcd(even, 1 << (min(processors, BLOCKS).bit_length() - 1))


def _fit(config: TransformerConfig, blocks: int, slab: int, shared: int, codes: int) -> Fit | None:
    mixed, qkv = _mixed(config)
    if math.gcd(slab, config.hidden_size, mixed, config.intermediate_size) != slab:
        return None
    products = (
        Product(qkv // 8 // blocks, config.hidden_size, 1),
        Product(config.hidden_size // 8 // blocks, mixed, 1),
        Product(2 * config.intermediate_size // 8 // blocks, config.hidden_size, 2),
        Product(config.hidden_size // 8 // blocks, config.intermediate_size, 1),
    )
    head = codes // 8 // blocks
    widest = max(head, min(WIDEST, max(product.columns for product in products)))
    space, kept = (
        max(8 * widest * 512 + 512, codes * 16),
        MOST_ROWS * config.hidden_size // blocks * 2,
    )
    stages = (shared - STATIC - WORDS - space - kept) // (slab * 16 + 16)
    qkv_parts, mix, gate, down = (each.parts(slab, int(stages * AHEAD)) for each in products)
    if not (qkv_parts and mix and gate and down) or head * (config.hidden_size // slab) > stages:
        return None
    return Fit(blocks, slab, stages, space, kept, (qkv_parts, mix, gate, down))


def _mixed(config: TransformerConfig) -> tuple[int, int]:
    """Widths of all heads' values, and of queries, keys and values."""
    mixed = config.heads * config.head_dim
    return mixed, mixed + 2 * config.kv_heads * config.head_dim
