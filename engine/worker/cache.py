"""Keys and values of a talker, a row for each slot, and attention over them.

Every slot has room for all its positions from the start: nothing moves and nothing is
allocated in a step. What lies past a row's length is masked, never read into a result, and
starts as zeros, because zero times a masked NaN would still be NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.shapes import BlockShape

Rows: TypeAlias = slice | Tensor  # neighbours as a slice (a view), others by index (a copy)


def zeros(*size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Zeros. On a CPU, memory that nothing has touched costs nothing."""
    if device.type != "cpu":
        return torch.zeros(*size, dtype=dtype, device=device)
    count = int(np.prod(size, dtype=np.int64))
    return torch.from_numpy(np.zeros(count * dtype.itemsize, np.uint8)).view(dtype).view(size)


@dataclass(frozen=True)
class KeyValueCache:
    keys: Tensor  # [layers, slots, kv_heads, positions, head_dim]
    values: Tensor

    @classmethod
    def allocate(
        cls, shape: BlockShape, slots: int, positions: int, device: torch.device, dtype: torch.dtype
    ) -> KeyValueCache:
        size = (shape.layers, slots, shape.kv_heads, positions, shape.head_dim)
        return cls(*(zeros(*size, dtype=dtype, device=device) for _ in range(2)))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.keys, self.values


class SlotAttend:
    """Attention of new positions of some slots over all that the slots hold.

    `rows` are the slots, `index` the same as a tensor [R]; `positions` [R, T] where the new
    keys and values go; `extent` bounds every position from above.
    """

    def __init__(
        self, cache: KeyValueCache, rows: Rows, index: Tensor, positions: Tensor, extent: int
    ) -> None:
        heads = torch.arange(cache.keys.shape[2], device=index.device)
        self._cache, self._rows, self._extent = cache, rows, extent
        self._places = index[:, None, None], heads[:, None], positions[:, None]  # [R, kv, T]
        seen = torch.arange(extent, device=index.device) <= positions[..., None]
        self._mask = seen[:, None]  # [R, 1, T, extent]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        keys.index_put_(self._places, k)
        values.index_put_(self._places, v)
        keys = keys[:, :, : self._extent][self._rows]
        values = values[:, :, : self._extent][self._rows]
        return F.scaled_dot_product_attention(
            q, keys, values, attn_mask=self._mask, enable_gqa=True
        )
