"""Runs new positions through the talker's layers: one per row in a decode step, many in prefill.

On a GPU the layers run on Triton kernels where these support the sizes, and up to four rows in one
persistent CUDA launch. Both equal the plain form (`FrameStep.run`) except for rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.configs import TransformerConfig
from engine.model.layers import Attention, Block, Transformer
from engine.model.talker import TalkerModel
from engine.worker.backends import Candidate, select_backend
from engine.worker.device import runs_cuda
from engine.worker.lean_torch import seeded
from engine.worker.state.slot_state import Slots

if TYPE_CHECKING:
    from engine.worker.kernels.cuda.talker_kernels import PersistentTalker

# x [R, T, width] of rows [R] at positions [R, T] -> hidden [R, T, width]
PlainForward: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
AttendLayer: TypeAlias = Callable[[int, Attention, Tensor], Tensor]  # qkv -> attended values

TRIAL_PROMPT = 150  # prompt length for the comparison
TOLERANCES = {2: 0.2, 4: 1e-3, 8: 1e-3}  # relative, by bytes per number
FUSED_ROWS = 16  # up to this, Triton's products are faster than cuBLAS
PERSISTENT_ROWS = 4  # up to this, one persistent launch is fastest
SPLIT_ATTENTION = 64, 4, 3, 4  # AttentionTile for up to FUSED_ROWS rows
MANY_ROWS = 32  # above, programs fill the card by themselves
MANY_ATTENTION = 64, 4, 2, 1  # AttentionTile above: more programs at a time, the same sums
# Tiles of products for up to FUSED_ROWS rows: columns, inputs per warp, warps, stages (on an H200).
TILES = {
    "qkv": (16, 64, 4, 4),
    "out": (16, 64, 4, 6),
    "gate": (16, 64, 4, 3),
    "down": (16, 64, 4, 6),
}


class RowInputs(NamedTuple):
    """New inputs of some rows, and their positions."""

    x: Tensor  # [R, width], or [R, T, width]
    index: Tensor  # type: ignore[assignment]  # [R]; not tuple's method
    positions: Tensor  # [R], or [R, T]


def select_talker_forward(
    model: TalkerModel, slots: Slots, cos: Tensor, sin: Tensor, plain: PlainForward
) -> TalkerForward | None:
    """The kernels that run here and agree with the plain form; None: use that one."""
    if slots.hidden.device.type != "cuda" or not supports(model.config):
        return None

    def build_persistent() -> TalkerForward | None:
        if find_spec("triton") is None or not runs_cuda(slots.hidden.device):
            return None
        from engine.worker.kernels.cuda import talker_kernels

        persistent = talker_kernels.build(model, slots, (cos, sin))
        return build(persistent) if persistent else None

    def build_layers() -> TalkerForward:
        if find_spec("triton") is None:
            raise RuntimeError("Triton is not installed; frames take about three times as long")
        return build()

    def build(persistent: PersistentTalker | None = None) -> TalkerForward:
        from engine.worker.kernels.triton.launch import compile_kernels

        forward, given = TalkerForward(model, slots, cos, sin, persistent), trial(slots)
        compile_kernels(lambda: trial_paths(forward, *given))
        return forward

    def difference(forward: TalkerForward) -> float:
        return talker_difference(forward, plain, slots)

    candidates = (
        Candidate("the talker's persistent kernel", build_persistent, difference),
        Candidate("the talker's Triton kernels", build_layers, difference),
    )
    tolerance = TOLERANCES[slots.hidden.dtype.itemsize]
    return select_backend(candidates, None, tolerance)


def supports(config: TransformerConfig) -> bool:
    """Whether heads are powers of two in a tensor core's range, with normed queries and keys."""
    dim = config.head_dim
    plain = config.sliding_window is None and not config.layer_scale
    return plain and config.qk_norm and dim >= 16 and dim & (dim - 1) == 0


def trial(slots: Slots) -> tuple[RowInputs, RowInputs]:
    """A prompt on the padding row, and a frame after it."""
    device, length = slots.hidden.device, min(TRIAL_PROMPT, slots.positions - 1)
    random = seeded(0)
    x = torch.randn(1, length + 1, slots.hidden.shape[1], generator=random)
    x = x.to(device, slots.hidden.dtype)
    row = torch.tensor([slots.padding_row], device=device)
    at = torch.arange(length + 1, device=device)
    prompt = RowInputs(x[:, :length], row, at[None, :length])
    return prompt, RowInputs(x[:, length:], row, at[None, length:])


@torch.inference_mode()
def trial_paths(forward: TalkerForward, prompt: RowInputs, frame: RowInputs) -> list[Tensor]:
    """Hidden states of the prompt, of the frame by every path, and of the prompt beside it."""
    found = [forward.prefill(*prompt)]
    for rows in (PERSISTENT_ROWS, PERSISTENT_ROWS + 1, FUSED_ROWS + 1, MANY_ROWS + 1):
        same = torch.zeros(rows, dtype=torch.long, device=frame.x.device)  # the row, repeated
        repeated = RowInputs(frame.x[0, same], frame.index[same], frame.positions[0, same])
        found.append(forward(*repeated)[:, None])
    frames, again = forward.mixed(repeated, prompt)  # again, which writes equal keys
    return [*found, frames[:, None], again]


@torch.inference_mode()
def talker_difference(forward: TalkerForward, plain: PlainForward, slots: Slots) -> float:
    """Relative difference on the padding row: a prompt, and a frame after it by every path."""
    prompt, frame = trial(slots)
    found = trial_paths(forward, prompt, frame)
    wanted = [plain(*prompt)] + [plain(*frame)] * 5
    wanted.append(wanted[0])
    pairs = zip(found, wanted, strict=True)
    # the worst row of each; NaN propagates
    worst = [((one - other).norm(dim=(1, 2)) / other.norm()).max() for one, other in pairs]
    return float(torch.stack(worst).max())


class TalkerForward:
    """The layers of one talker over its slots, on Triton's kernels."""

    def __init__(
        self,
        model: TalkerModel,
        slots: Slots,
        cos: Tensor,
        sin: Tensor,
        persistent: PersistentTalker | None = None,
    ) -> None:
        from engine.worker.kernels.triton import attention, linear  # need Triton

        config = model.config
        self._model, self._cache = model, slots.cache
        self._linear, self._attention = linear, attention
        size = len(slots.frame) * config.kv_heads
        finished = torch.zeros(size, dtype=torch.int32, device=cos.device)
        self._heads = attention.HeadConfig(
            config.heads, config.kv_heads, config.norm_eps, cos, sin, finished
        )
        self._split = attention.AttentionTile(*SPLIT_ATTENTION)
        self._many = attention.AttentionTile(*MANY_ATTENTION)
        self._tiles = {name: linear.Tile(*sizes) for name, sizes in TILES.items()}
        self.persistent = persistent

    def __call__(self, x: Tensor, index: Tensor, position: Tensor) -> Tensor:
        """New inputs [R, width] of these rows [R] at their positions [R] -> hidden [R, width]."""
        if self.persistent is not None and len(x) <= PERSISTENT_ROWS:
            return self.persistent(x, index, position)
        if len(x) <= FUSED_ROWS:
            split = partial(self._attention.attend, tile=self._split)
            return self._run_fused(x, self._over_cache(split, index, position))
        return self._run(x, self._over_cache(self._attend(len(x)), index, position))

    def prefill(self, x: Tensor, index: Tensor, positions: Tensor) -> Tensor:
        """The same for T new inputs per row [R, T, width] at ascending positions [R, T]."""
        attend = self._over_cache(self._attention.attend_prompt, index, positions.contiguous())
        return self._run(x.flatten(0, 1), attend).view_as(x)

    def mixed(self, frames: RowInputs, prompts: RowInputs) -> tuple[Tensor, Tensor]:
        """One pass over the weights for inputs [R, width] and [R, T, width] of other rows."""
        count, attention = len(frames.x), self._attention
        decode = self._over_cache(self._attend(count), frames.index, frames.positions)
        prefill = self._over_cache(
            attention.attend_prompt, prompts.index, prompts.positions.contiguous()
        )

        def attend(layer: int, weights: Attention, qkv: Tensor) -> Tensor:
            attended = decode(layer, weights, qkv[:count]), prefill(layer, weights, qkv[count:])
            return torch.cat(attended)

        hidden = self._run(torch.cat((frames.x, prompts.x.flatten(0, 1))), attend)
        return hidden[:count], hidden[count:].view_as(prompts.x)

    def _run_fused(self, x: Tensor, attend: AttendLayer) -> Tensor:
        """Few rows: norms, residuals and gates are fused with Triton's products."""
        linear, eps, tiles = self._linear, self._model.config.norm_eps, self._tiles
        layers = blocks(self._model)
        normed = linear.as_normed(x, layers[0].input_layernorm.weight)
        next_norms = [*(block.input_layernorm for block in layers[1:]), self._model.norm]
        for layer, (block, next_norm) in enumerate(zip(layers, next_norms, strict=True)):
            attention, mlp = block.self_attn, block.mlp
            qkv = linear.product(normed, attention.qkv_proj.weight, tiles["qkv"], eps)
            out, norm = attention.o_proj.weight, block.post_attention_layernorm.weight
            attended = attend(layer, attention, qkv)
            x, normed = linear.product_added(attended, out, tiles["out"], x, norm)
            gate_up, down = mlp.gate_up_proj.weight, mlp.down_proj.weight
            inner = linear.product(normed, gate_up, tiles["gate"], eps, gated=True)
            x, normed = linear.product_added(inner, down, tiles["down"], x, next_norm.weight)
        return self._last_norm(x, None)

    def _run(self, x: Tensor, attend: AttendLayer) -> Tensor:
        """Many rows: products by cuBLAS, norms and gates by Triton: [R, width] -> hidden."""
        linear, eps, added = self._linear, self._model.config.norm_eps, None
        for layer, block in enumerate(blocks(self._model)):
            attention, mlp = block.self_attn, block.mlp
            x, normed = linear.add_norm(x, added, block.input_layernorm.weight, eps)
            attended = attend(layer, attention, F.linear(normed, attention.qkv_proj.weight))
            added = F.linear(attended, attention.o_proj.weight)
            x, normed = linear.add_norm(x, added, block.post_attention_layernorm.weight, eps)
            inner = linear.gate(F.linear(normed, mlp.gate_up_proj.weight))
            added = F.linear(inner, mlp.down_proj.weight)
        return self._last_norm(x, added)

    def _attend(self, rows: int) -> Callable[..., Tensor]:
        """Attention of more than FUSED_ROWS rows."""
        attend = self._attention.attend
        return partial(attend, tile=self._many) if rows > MANY_ROWS else attend

    def _over_cache(
        self, attend: Callable[..., Tensor], index: Tensor, position: Tensor
    ) -> AttendLayer:
        """Attention of a layer over the slots' cache."""

        def run(layer: int, weights: Attention, qkv: Tensor) -> Tensor:
            norms = weights.q_norm.weight, weights.k_norm.weight
            cache = self._cache.keys[layer], self._cache.values[layer]
            return attend(qkv, norms, self._heads, index, position, *cache)

        return run

    def _last_norm(self, x: Tensor, added: Tensor | None) -> Tensor:
        normed: Tensor = self._linear.add_norm(
            x, added, self._model.norm.weight, self._model.config.norm_eps
        )[1]
        return normed


def blocks(model: Transformer) -> list[Block]:
    return list(model.layers)
