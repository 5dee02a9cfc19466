"""Keys and values of a talker, a row per slot, and attention over them.

Every slot has addresses for all its positions from the start, so nothing moves. On GPUs with
virtual memory management, memory is mapped when a sequence gets the slot, as far as it may need;
elsewhere all memory is allocated at once. Positions past a row's length are masked. They start as
zeros, because zero times a masked NaN would still be NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.configs import TransformerConfig
from engine.model.zeros import zeros
from engine.worker.state.virtual_memory import GrowingTensor

GROWING_ORDER = 2, 0, 3, 1, 4  # of a growing tensor's dimensions, as keys and values have them
Rows: TypeAlias = slice | Tensor  # adjacent rows as a slice (a view), others by index (a copy)


@dataclass(frozen=True)
class KeyValueCache:
    keys: Tensor  # [layers, slots, kv_heads, positions, head_dim], with any strides
    values: Tensor
    growing: tuple[GrowingTensor, ...] = ()  # keys and values, if their memory grows

    @classmethod
    def allocate(
        cls,
        config: TransformerConfig,
        slots: int,
        positions: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> KeyValueCache:
        size = (config.layers, slots, config.kv_heads, positions, config.head_dim)
        keys, values = (zeros(*size, dtype=dtype, device=device) for _ in range(2))
        return cls(keys, values)

    @classmethod
    def allocate_growing(
        cls,
        config: TransformerConfig,
        slots: int,
        positions: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> KeyValueCache:
        """With growing memory: all data of a position is adjacent, so a slot is one range."""
        size = _growing_size(config, slots, positions)
        both = GrowingTensor(size, 0, dtype, device), GrowingTensor(size, 0, dtype, device)
        keys, values = (each.tensor.permute(*GROWING_ORDER) for each in both)
        return cls(keys, values, both)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.keys, self.values

    @property
    def bytes(self) -> int:
        """Bytes of allocated memory."""
        return self.mapped_bytes or self.keys.nbytes + self.values.nbytes

    @property
    def mapped_bytes(self) -> int:
        """Bytes mapped outside torch's allocator."""
        return sum(each.bytes for each in self.growing)


def growing_keys(config: TransformerConfig, positions: int, dtype: torch.dtype) -> Tensor:
    """A cache's keys without memory, with the strides that growing ones have for any slots."""
    size = _growing_size(config, 1, positions)
    return torch.empty(size, dtype=dtype, device="meta").permute(*GROWING_ORDER)


def _growing_size(config: TransformerConfig, slots: int, positions: int) -> tuple[int, ...]:
    return slots, positions, config.layers, config.kv_heads, config.head_dim


class SlotAttend:
    """Attention of new positions of some slots over the slots' keys and values.

    `rows` are the slots, `index` the same as a tensor [R]; `positions` [R, T] are those of the new
    keys and values; `bounds` is above every position.
    """

    def __init__(
        self, cache: KeyValueCache, rows: Rows, index: Tensor, positions: Tensor, bounds: int
    ) -> None:
        heads = torch.arange(cache.keys.shape[2], device=index.device)
        self._cache, self._rows, self._extent = cache, rows, bounds
        self._places = index[:, None, None], heads[:, None], positions[:, None]  # [R, kv, T]
        seen = torch.arange(bounds, device=index.device) <= positions[..., None]
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
