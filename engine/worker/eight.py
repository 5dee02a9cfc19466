"""Weights in 8 bits: a setting, never the default. Prompts are quicker, sound drifts a little.

In the talker's blocks, what makes queries, keys and values, gates, and what goes back down is
rounded to float8_e4m3fn, with a scale for each output. Scales are powers of two, so that two
bytes hold the rounded numbers exactly: every form of the network has the same weights. Products of
very many rows are made in 8 bits where the device can, their inputs rounded row by row.
Attention's last product stays whole: rounding its inputs takes longer than it saves. So does the
predictor, whose rows are never so many. The numbers in 8 bits lie beside the others: half as much
memory again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor, nn

from engine.model.layers import RMSNorm, Transformer
from engine.model.talker import Talker
from engine.worker.talker.block_forward import blocks

LARGEST = 448.0  # number of float8_e4m3fn
LEAST = -100  # exponent of a scale: rows of nothing have one, too
OFF = 0.06  # relative, of a product: twice what rounding its inputs does
PROVEN = (17, 300)  # rows

log = logging.getLogger("timbre")


class Eight(NamedTuple):
    """Rows of numbers in 8 bits."""

    numbers: Tensor  # [rows, columns]
    scale: Tensor  # of each row, float32: [1, rows] of weights, [rows, 1] of inputs


def rounded(weight: Tensor) -> Eight:
    """A weight [outputs, inputs] in 8 bits."""
    most = weight.float().abs().amax(1)
    part, exponent = torch.frexp(most / LARGEST)
    exponent = (exponent - (part == 0.5).int()).clamp(LEAST, 127)  # 2 ** exponent is enough
    scale = ((exponent + 127) << 23).view(torch.float32)  # exactly, as no power is everywhere
    numbers = (weight.float() / scale[:, None]).to(torch.float8_e4m3fn)
    return Eight(numbers, scale[None])


def spread(weight: Eight, dtype: torch.dtype) -> Tensor:
    """The same numbers in more bits."""
    return (weight.numbers.float() * weight.scale.t()).to(dtype)


@torch.no_grad()
def round_weights(talker: Talker) -> None:
    """From now on the weights are rounded, and carry their 8 bits where those are of use."""
    able = _able(talker.model.norm.weight) and all(
        size % 16 == 0 for linear in rounded_linears(talker) for size in linear.weight.shape
    )
    for linear in rounded_linears(talker):
        found = rounded(linear.weight)
        linear.weight.copy_(spread(found, linear.weight.dtype))
        if able:
            linear.eight = found  # type: ignore[assignment]
    if not able:
        log.warning("Weights are rounded to 8 bits, but nothing is quicker for it on this device.")


def rounded_linears(talker: Talker) -> Iterator[nn.Linear]:
    """Those whose weights are rounded."""
    for block in blocks(talker.model):
        yield from (block.self_attn.qkv_proj, block.mlp.gate_up_proj, block.mlp.down_proj)


def _able(weight: Tensor) -> bool:
    """Whether the device multiplies 8 bits, and we can round inputs for it."""
    if weight.device.type != "cuda" or weight.dtype != torch.bfloat16:
        return False
    recent = torch.cuda.get_device_capability(weight.device) >= (8, 9)
    return recent and hasattr(torch, "_scaled_mm") and find_spec("triton") is not None


class Products:
    """Products in 8 bits, and what rounds their inputs, as `walk` asks for them."""

    def __init__(self, stack: Transformer) -> None:
        from engine.worker import eight_kernels  # they need Triton

        self._stack, self._kernels = stack, eight_kernels

    def normed(self, x: Tensor, added: Tensor | None, norm: RMSNorm) -> tuple[Tensor, Eight]:
        total, *normed = self._kernels.add_norm(x, added, norm.weight, norm.eps)
        return total, Eight(*normed)

    def product(self, rows: Eight, linear: nn.Linear) -> Tensor:
        """As `linear` would, of inputs in 8 bits."""
        weight: Eight = linear.eight  # type: ignore[assignment]
        made: Tensor = torch._scaled_mm(
            rows.numbers, weight.numbers.t(), scale_a=rows.scale, scale_b=weight.scale,
            out_dtype=torch.bfloat16, use_fast_accum=True,
        )  # fmt: skip
        return made

    def gated(self, gates: Tensor) -> Eight:
        return Eight(*self._kernels.gate(gates))

    @torch.inference_mode()
    def off(self, rows: int) -> float:
        """How far products in 8 bits are from ordinary ones, for random inputs: the worst."""
        apart = [(own.float() - other).norm() / other.norm() for own, other in self._pairs(rows)]
        return float(torch.stack(apart).max())

    def _pairs(self, rows: int) -> Iterator[tuple[Tensor, Tensor]]:
        """What comes of the first block's products in 8 bits, and of the ordinary ones."""
        block, random = blocks(self._stack)[0], torch.Generator().manual_seed(rows)
        qkv, mlp, norm = block.self_attn.qkv_proj, block.mlp, block.input_layernorm
        x = torch.randn(rows, qkv.in_features, generator=random).to(qkv.weight)
        _, alone = self.normed(x, None, norm)
        total, normed = self.normed(x, x, norm)
        yield self.product(alone, qkv), qkv(norm(x)).float()
        yield self.product(normed, qkv), qkv(norm(total)).float()
        gates = mlp.gate_up_proj(norm(total))
        yield self.product(normed, mlp.gate_up_proj), gates.float()
        gate, up = gates.chunk(2, -1)
        inner = mlp.down_proj(nn.functional.silu(gate) * up)
        yield self.product(self.gated(gates), mlp.down_proj), inner.float()


def products(stack: Transformer) -> Products | None:
    """None where weights are whole, or this device errs with 8 bits."""
    if not hasattr(blocks(stack)[0].self_attn.qkv_proj, "eight"):
        return None
    try:
        found = Products(stack)
        off = max(found.off(rows) for rows in PROVEN)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # whatever a driver or compiler may say
        log.warning("Products in 8 bits do not run here: %s", error)
        return None
    if off < OFF:
        return found
    log.warning("Products in 8 bits are %.0e off here and are not used.", off)
    return None
