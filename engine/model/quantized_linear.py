"""A linear layer whose weights are kept in 8 or 4 bits, for CPUs.

8 bits: a scale for each output. 4 bits: a scale and a zero for each group of inputs. The products
are torch's own and take bfloat16; sums are in float32. Knows no networks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import torch
from torch import Tensor, nn

GROUP = 32  # inputs that share a scale, in 4 bits
_INPUTS, _OUTPUTS = 32, 16  # what the products take is a multiple of these
_LEVELS = {8: 127, 4: 15}
_AT_ONCE = 1 << 17  # weights that are rounded together: what stays in a core's cache
# rows [M, inputs], weights in 8 bits or panels, scales -> [M, outputs]
Multiply: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]


class QuantizedLinear(nn.Module):
    """`weight` is whole until `pack` is called, so that it is filled as that of any other layer."""

    scales: Tensor  # 8 bits: [outputs]; 4 bits: [groups, outputs, 2], scales and zeros
    levels: Tensor | None = None  # 4 bits: [outputs, inputs], while a model is loaded
    panels: Tensor | None = None  # the same in another product's order, if there is one

    def __init__(self, linear: nn.Linear, bits: int) -> None:
        """Stands in for a layer whose weights are not read yet."""
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.bits = bits
        self.multiply: Multiply | None = None  # in place of torch's product
        self.weight, self.bias = linear.weight, linear.bias

    @staticmethod
    def takes(linear: nn.Linear) -> bool:
        return linear.in_features % _INPUTS == 0 and linear.out_features % _OUTPUTS == 0

    def pack(self, pieces: Iterable[Tensor] | None = None) -> None:
        """Keep in few bits these weights, rows after rows; without any, what `weight` holds."""
        parts = [
            _rounded(some.float(), self.bits)
            for piece in (pieces or [self.weight.detach()])
            for some in piece.split(max(1, _AT_ONCE // self.in_features))
        ]
        whole = torch.cat([levels for levels, _ in parts])
        if self.bits == 8:
            self.take(whole, torch.cat([scales for _, scales in parts]))
            return
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(whole.int(), 1)
        self.take(packed, torch.cat([scales for _, scales in parts], 1))
        self.levels = whole

    def take(self, weight: Tensor, scales: Tensor) -> None:
        """Keep weights that are packed."""
        del self.weight
        self.register_buffer("weight", weight)
        self.register_buffer("scales", scales)

    def take_panels(self, multiply: Multiply) -> None:
        """Keep the panels alone, for this product."""
        assert self.panels is not None
        self.weight, self.panels, self.multiply = self.panels, None, multiply
        self.scales = torch.ones(self.out_features)  # panels hold theirs

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.in_features)
        if self.multiply is not None:
            out = self.multiply(rows, self.weight, self.scales)
        elif self.bits == 8:
            out = torch.ops.aten._weight_int8pack_mm(rows.bfloat16(), self.weight, self.scales)
        else:
            product = torch.ops.aten._weight_int4pack_mm_for_cpu
            out = product(rows.bfloat16(), self.weight, GROUP, self.scales)
        out = out.to(x.dtype).view(*x.shape[:-1], self.out_features)
        return out if self.bias is None else out + self.bias


def _rounded(weight: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Levels [outputs, inputs] and scales of some outputs in float32."""
    return _in_8_bits(weight) if bits == 8 else _in_4_bits(weight)


def _in_8_bits(weight: Tensor) -> tuple[Tensor, Tensor]:
    scales = weight.abs().amax(1).clamp(min=torch.finfo(weight.dtype).tiny) / _LEVELS[8]
    scales = scales.bfloat16()
    whole = (weight / scales.float()[:, None]).round().clamp(-_LEVELS[8], _LEVELS[8])
    return whole.to(torch.int8), scales


def _in_4_bits(weight: Tensor) -> tuple[Tensor, Tensor]:
    groups = weight.unflatten(1, (-1, GROUP))  # [outputs, groups, GROUP]
    low, high = groups.amin(2), groups.amax(2)
    scales = ((high - low).clamp(min=1e-12) / _LEVELS[4]).bfloat16()
    zeros = (low + 8 * scales.float()).bfloat16()  # the value of level 8
    levels = ((groups - zeros.float()[..., None]) / scales.float()[..., None] + 8).round()
    whole = levels.clamp(0, _LEVELS[4]).flatten(1).to(torch.uint8)
    return whole, torch.stack((scales, zeros), 2).transpose(0, 1).contiguous()
