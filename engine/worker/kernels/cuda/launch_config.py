"""How a transformer's layers lie on a device where one launch runs all of them.

A block a multiprocessor has its share of every product's columns; their weights pass through its
shared memory in stages of eight columns and a slab of inputs. Knows no networks and no kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.model.configs import BlockShape

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

    def constants(self, shape: BlockShape, tiles: int) -> dict[str, int | float]:
        """What a kernel is compiled for."""
        qkv, mix, gate, down = self.parts
        return dict(
            LAYERS=shape.layers, GRID=self.blocks, TILES=tiles, STAGES=self.stages,
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


def fit(shape: BlockShape, processors: int, shared: int, codes: int = 0) -> Fit | None:
    """For a device of so many multiprocessors with so much shared memory each.

    With `codes` keys of a draw in it, and as many columns of a head. None: not at all.
    """
    known = shape.head_dim == 128 and shape.heads <= 2 * shape.kv_heads and shape.qk_norm
    if not known or shape.width % 256 or codes % 256:
        return None
    blocks = _blocks(shape, codes, processors)
    fits = (_fit(shape, blocks, slab, shared, codes) for slab in (1024, 512, 256))
    return next((found for found in fits if found is not None), None)


def _blocks(shape: BlockShape, codes: int, processors: int) -> int:
    """The most, as a power of two, that share all columns evenly."""
    _, qkv = _mixed(shape)
    even = math.gcd(*(width // 8 for width in (shape.width, qkv, shape.inner, codes)))
    return math.gcd(even, 1 << (min(processors, BLOCKS).bit_length() - 1))


def _fit(shape: BlockShape, blocks: int, slab: int, shared: int, codes: int) -> Fit | None:
    mixed, qkv = _mixed(shape)
    if math.gcd(slab, shape.width, mixed, shape.inner) != slab:
        return None
    products = (
        Product(qkv // 8 // blocks, shape.width, 1),
        Product(shape.width // 8 // blocks, mixed, 1),
        Product(2 * shape.inner // 8 // blocks, shape.width, 2),
        Product(shape.width // 8 // blocks, shape.inner, 1),
    )
    head = codes // 8 // blocks
    widest = max(head, min(WIDEST, max(product.columns for product in products)))
    space, kept = max(8 * widest * 512 + 512, codes * 16), MOST_ROWS * shape.width // blocks * 2
    stages = (shared - STATIC - WORDS - space - kept) // (slab * 16 + 16)
    qkv_parts, mix, gate, down = (each.parts(slab, int(stages * AHEAD)) for each in products)
    if not (qkv_parts and mix and gate and down) or head * (shape.width // slab) > stages:
        return None
    return Fit(blocks, slab, stages, space, kept, (qkv_parts, mix, gate, down))


def _mixed(shape: BlockShape) -> tuple[int, int]:
    """Widths of all heads' values, and of queries, keys and values."""
    mixed = shape.heads * shape.head_dim
    return mixed, mixed + 2 * shape.kv_heads * shape.head_dim
