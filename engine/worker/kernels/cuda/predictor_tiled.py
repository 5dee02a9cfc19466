"""The predictor's part of a frame for many rows: the library's products, ours between them."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.layers import Block
from engine.model.predictor import Predictor
from engine.worker.kernels.cuda import nvrtc
from engine.worker.kernels.cuda.constants import shape_constants
from engine.worker.state.sampling import SamplingTensors

PARTS = ("primitives", "attention", "sampling", "rows")
THREADS = 256
WARPS = 8


class TiledPredictor:
    def __init__(self, predictor: Predictor, tables: dict[str, Tensor]) -> None:
        self._predictor, self._tables, self._shape = predictor, tables, predictor.model.config
        self._codes = predictor.lm_head[0].out_features
        options = nvrtc.constants(shape_constants(predictor))
        module = nvrtc.Module(nvrtc.source(*PARTS), options)
        self._add_norm, self._gate = module.kernel("add_norm", WARPS * 4), module.kernel("gate")
        self._attend, self._sum = module.kernel("attend_rows"), module.kernel("sum_rows")
        self._draw = module.kernel("draw_rows", self._codes * 16 + 128)

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        own: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> tuple[Tensor, Tensor]:
        """As `Predictor.sample`, with the draws of `pick`."""
        rows, books = len(hidden), len(self._predictor.lm_head)
        codes = torch.empty(rows, books, dtype=torch.long, device=hidden.device)
        begin = self._predictor.small_to_mtp_projection(torch.stack((hidden, first)))
        past = self._past(rows, hidden)
        self._run(begin[0].contiguous(), past, 0)
        x = begin[1].contiguous()
        for book, head in enumerate(self._predictor.lm_head):
            logits = torch.nn.functional.linear(self._run(x, past, book + 1), head.weight)
            self._draw_into(codes, x, logits, own, uniforms, book, count)
        total, first = torch.empty_like(first), first.contiguous()
        self._sum(rows, THREADS, first, self._tables["embeddings"], codes, total)
        return codes, total

    def _past(self, rows: int, like: Tensor) -> Tensor:
        """Keys and values, [layers, 2, R, kv_heads, positions, d]: read no further than written."""
        config, positions = self._shape, len(self._predictor.lm_head) + 1
        return like.new_empty(config.layers, 2, rows, config.kv_heads, positions, config.head_dim)

    def _run(self, x: Tensor, past: Tensor, position: int) -> Tensor:
        """One position through all layers: x [R, width], which changes, -> normed [R, width]."""
        linear, added = torch.nn.functional.linear, None
        blocks: list[Block] = list(self._predictor.model.layers)  # type: ignore[arg-type]
        for layer, block in enumerate(blocks):
            normed = self._normed(x, added, block.input_layernorm.weight)
            qkv = linear(normed, block.self_attn.qkv_proj.weight)
            mixed = self._mixed(qkv, past[layer], layer, position)
            added = linear(mixed, block.self_attn.o_proj.weight)
            normed = self._normed(x, added, block.post_attention_layernorm.weight)
            gated = self._gated(linear(normed, block.mlp.gate_up_proj.weight))
            added = linear(gated, block.mlp.down_proj.weight)
        return self._normed(x, added, self._predictor.model.norm.weight)

    def _normed(self, x: Tensor, added: Tensor | None, weight: Tensor) -> Tensor:
        """x += added; what a norm makes of it."""
        normed = torch.empty_like(x)
        self._add_norm(len(x), THREADS, x, added, weight, normed)
        return normed

    def _mixed(self, qkv: Tensor, past: Tensor, layer: int, position: int) -> Tensor:
        rows, config = len(qkv), self._shape
        mixed = qkv.new_empty(rows, config.heads * config.head_dim)
        norms, turns = self._tables["norms"][layer], self._tables["turns"]
        blocks = -(-rows * config.kv_heads // WARPS)
        self._attend(blocks, THREADS, qkv, past[0], past[1], norms, turns, mixed, position, rows)
        return mixed

    def _gated(self, gates: Tensor) -> Tensor:
        gated = gates.new_empty(len(gates), self._shape.intermediate_size)
        self._gate(len(gates), THREADS, gates, gated)
        return gated

    def _draw_into(
        self, codes: Tensor, x: Tensor, logits: Tensor, own: SamplingTensors, uniforms: Tensor,
        book: int, count: int | None,
    ) -> None:  # fmt: skip
        """Draw this book's codes; x becomes their embeddings."""
        ranked = min(count or self._codes, self._codes)
        strides = own.sample_mask.stride(0), uniforms.stride(0)
        inputs = self._tables["inputs"][book]
        self._draw(
            len(x),
            THREADS,
            logits,
            *own.tensors,
            uniforms,
            inputs,
            codes,
            x,
            book,
            ranked,
            *strides,
        )
