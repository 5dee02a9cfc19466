"""New positions through all of the talker's layers: one a row for a frame, many for prompts.

The fused form stands beside the plain one (`FrameStep.run`), whose hidden states it equals but
for rounding, and is taken where it can be: on a GPU with Triton, for shapes its kernels know.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from engine.model.configs import TransformerConfig
from engine.model.layers import Attention
from engine.model.talker import TalkerModel
from engine.worker.state.slot_state import Slots
from engine.worker.talker.block_forward import AttendLayer, Plain, blocks, walk

Written: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]  # as TalkerForward.prompt

PROMPT = 150  # positions that the two forms are compared after
ROUGH, CLOSE = 0.2, 1e-3  # how far apart they may be, in two bytes and in four
FEW = 16  # rows up to which our own products are the quicker ones
MOST = 4  # rows up to which one launch does it all, where it can

log = logging.getLogger("timbre")


def talking(
    stack: TalkerModel, slots: Slots, cos: Tensor, sin: Tensor, plain: Written
) -> TalkerForward | None:
    """None where only the plain form runs, or where the two differ."""
    if slots.hidden.device.type != "cuda" or not _known(stack.config):
        return None
    if find_spec("triton") is None:
        log.warning("There is no Triton here: frames take about three times as long. Install it.")
        return None
    bound = ROUGH if slots.hidden.dtype.itemsize == 2 else CLOSE
    try:
        talk = TalkerForward(stack, slots, cos, sin)
        if talk.whole is not None:
            if _close(talk, plain, slots, bound, "one launch"):
                return talk
            talk.whole = None
        difference = differing(talk, plain, slots)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # an old card, or nothing to compile with
        log.warning("The talker's kernels do not run here (%s): frames take longer.", error)
        return None
    if difference < bound:
        return talk
    log.warning("The talker's kernels are %.0e off here: frames take longer.", difference)
    return None


def _close(talk: TalkerForward, plain: Written, slots: Slots, bound: float, name: str) -> bool:
    """Whether the form of this name, and all beside it, runs and does what the plain form does."""
    try:
        difference = differing(talk, plain, slots)
    except RuntimeError as error:
        log.warning("The talker's %s does not run here: %s", name, error)
        return False
    if difference < bound:
        return True
    log.warning("The talker's %s is %.0e off here and is not used.", name, difference)
    return False


@torch.inference_mode()
def differing(talk: TalkerForward, plain: Written, slots: Slots) -> float:
    """How far the two are apart, on the row that is nobody's: a prompt, and a frame after it."""
    device, length = slots.hidden.device, min(PROMPT, slots.positions - 1)
    draw = torch.Generator().manual_seed(0)
    drawn = torch.randn(1, length + 1, slots.hidden.shape[1], generator=draw)
    x = drawn.to(device, slots.hidden.dtype)
    row, at = torch.tensor([slots.spare], device=device), torch.arange(length + 1, device=device)
    found = [talk.prompt(x[:, :length], row, at[None, :length])]
    for rows in (MOST, MOST + 1, FEW + 1):  # all ways; the row is itself in all of them
        same = torch.zeros(rows, dtype=torch.long, device=device)
        found.append(talk(x[0, length + same], row[same], at[length + same])[:, None])
    prompt = RowInputs(x[:, :length], row, at[None, :length])  # once more: it writes what is there
    beside, again = talk.both(RowInputs(x[0, length + same], row[same], at[length + same]), prompt)
    found += [beside[:, None], again]
    wanted = [plain(*prompt)] + [plain(x[:, length:], row, at[None, length:])] * 4
    wanted.append(wanted[0])
    pairs = zip(found, wanted, strict=True)
    # of rows the worst; what is no number stays none
    apart = [((own - other).norm(dim=(1, 2)) / other.norm()).max() for own, other in pairs]
    return float(torch.stack(apart).max())


def _known(config: TransformerConfig) -> bool:
    """Heads are powers of two that a tensor core takes; queries and keys are normed."""
    dim = config.head_dim
    plain = config.sliding_window is None and not config.layer_scale
    return plain and config.qk_norm and dim >= 16 and dim & (dim - 1) == 0


class RowInputs(NamedTuple):
    """Inputs of some rows, and where they go."""

    x: Tensor  # [R, width], or [R, T, width]
    index: Tensor  # [R]
    positions: Tensor  # [R], or [R, T]


class TalkerForward:
    """The layers of one talker over its slots, on the kernels of `fused`."""

    def __init__(self, stack: TalkerModel, slots: Slots, cos: Tensor, sin: Tensor) -> None:
        from engine.worker.kernels.triton import attention as fused_attention
        from engine.worker.kernels.triton import linear as fused  # they need Triton

        config = stack.config
        self._stack, self._cache, self._plain = stack, slots.cache, Plain()
        self._fused, self._attention = fused, fused_attention
        done = torch.zeros(len(slots.frame) * config.kv_heads, dtype=torch.int32, device=cos.device)
        heads = config.heads, config.kv_heads
        self._turn = fused_attention.Turn(*heads, config.norm_eps, cos, sin, done)
        self._cut = fused_attention.Cut(*FEW_CUT)
        self._tiles = {name: fused.Tile(*cut) for name, cut in TILES.items()}
        self.whole = _whole(stack, slots, cos, sin)

    def __call__(self, x: Tensor, index: Tensor, position: Tensor) -> Tensor:
        """New inputs [R, width] of these rows [R] at their positions [R] -> hidden [R, width]."""
        if self.whole is not None and len(x) <= MOST:
            return self.whole(x, index, position)
        if len(x) <= FEW:
            split = partial(self._attention.attend, cut=self._cut)
            return self._few(x, self._over(split, index, position))
        return self._many(x, self._over(self._attention.attend, index, position))

    def prompt(self, x: Tensor, index: Tensor, positions: Tensor) -> Tensor:
        """As above for T new inputs a row [R, T, width] at positions [R, T], in rising order."""
        attend = self._over(self._attention.attend_prompt, index, positions.contiguous())
        return self._many(x.flatten(0, 1), attend).view_as(x)

    def both(self, frames: RowInputs, prompts: RowInputs) -> tuple[Tensor, Tensor]:
        """One pass over the weights for both: inputs [R, width] and [R, T, width] of other rows."""
        count, attention = len(frames.x), self._attention
        ones = self._over(attention.attend, frames.index, frames.positions)
        many = self._over(attention.attend_prompt, prompts.index, prompts.positions.contiguous())

        def attend(layer: int, own: Attention, qkv: Tensor) -> Tensor:
            return torch.cat((ones(layer, own, qkv[:count]), many(layer, own, qkv[count:])))

        hidden = self._many(torch.cat((frames.x, prompts.x.flatten(0, 1))), attend)
        return hidden[:count], hidden[count:].view_as(prompts.x)

    def _few(self, x: Tensor, attend: AttendLayer) -> Tensor:
        """Norms, residuals and gates are parts of the products."""
        fused, eps, cut = self._fused, self._stack.config.norm_eps, self._tiles
        each = blocks(self._stack)
        normed = fused.as_normed(x, each[0].input_layernorm.weight)
        afters = [*(block.input_layernorm for block in each[1:]), self._stack.norm]
        for layer, (block, after) in enumerate(zip(each, afters, strict=True)):
            own, mlp = block.self_attn, block.mlp
            qkv = fused.product(normed, own.qkv_proj.weight, cut["qkv"], eps)
            mixed = attend(layer, block.self_attn, qkv)
            norm = block.post_attention_layernorm.weight
            x, normed = fused.product_added(mixed, own.o_proj.weight, cut["out"], x, norm)
            inner = fused.product(normed, mlp.gate_up_proj.weight, cut["gate"], eps, gated=True)
            down = mlp.down_proj.weight
            x, normed = fused.product_added(inner, down, cut["down"], x, after.weight)
        return self._last(x, None)

    def _many(self, x: Tensor, attend: AttendLayer) -> Tensor:
        """Products are the library's."""
        return self._last(*walk(self._stack, self._plain, x, attend))

    def _over(self, attend: Callable[..., Tensor], index: Tensor, position: Tensor) -> AttendLayer:
        """Attention of a layer over the slots' cache."""

        def run(layer: int, own: Attention, qkv: Tensor) -> Tensor:
            norms = own.q_norm.weight, own.k_norm.weight
            kept = self._cache.keys[layer], self._cache.values[layer]
            return attend(qkv, norms, self._turn, index, position, *kept)

        return run

    def _last(self, x: Tensor, added: Tensor | None) -> Tensor:
        return self._plain.normed(x, added, self._stack.norm)[1]


def _whole(
    stack: TalkerModel, slots: Slots, cos: Tensor, sin: Tensor
) -> Callable[[Tensor, Tensor, Tensor], Tensor] | None:
    """One launch for few rows, where there is a kernel for it."""
    if slots.hidden.device.type != "cuda":
        return None
    found: Callable[[Tensor, Tensor, Tensor], Tensor] | None
    found = import_module("engine.worker.kernels.cuda.talker_kernels").few(stack, slots, (cos, sin))
    return found


FEW_CUT = 64, 4, 3, 4  # of attention for few rows
# How products of few rows are cut: columns, inputs a warp, warps, loads ahead (on an H200).
TILES = {
    "qkv": (16, 64, 4, 4),
    "out": (16, 64, 4, 6),
    "gate": (16, 64, 4, 3),
    "down": (16, 64, 4, 6),
}
