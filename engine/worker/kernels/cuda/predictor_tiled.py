"""The predictor's part of a frame for many rows: cuBLAS products, CUDA kernels between them."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.predictor import Predictor
from engine.worker.kernels.cuda import nvrtc
from engine.worker.kernels.cuda.constants import predictor_constants
from engine.worker.state.sampling import SamplingTensors

SOURCES = ("primitives", "attention", "sampling", "rows")
THREADS = 256
WARPS = 8


def source(predictor: Predictor) -> nvrtc.Source:
    """The kernels of a predictor."""
    return nvrtc.read_source(SOURCES, predictor_constants(predictor))


class TiledPredictor:
    def __init__(self, predictor: Predictor, tables: dict[str, Tensor]) -> None:
        self._predictor, self._tables, self._config = predictor, tables, predictor.model.config
        self._codes = predictor.lm_head[0].out_features
        module = nvrtc.Module(source(predictor))
        self._add_norm, self._gate = module.kernel("add_norm", WARPS * 4), module.kernel("gate")
        self._attend, self._sum = module.kernel("attend_rows"), module.kernel("sum_rows")
        self._draw = module.kernel("draw_rows", self._codes * 16 + 128)

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        sampling: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> tuple[Tensor, Tensor]:
        """As `Predictor.sample`, with codes as `pick` draws them."""
        rows, books = len(hidden), len(self._predictor.lm_head)
        codes = torch.empty(rows, books, dtype=torch.long, device=hidden.device)
        begin = self._predictor.small_to_mtp_projection(torch.stack((hidden, first)))
        cache = self._allocate_cache(rows, hidden)
        self._run_position(begin[0].contiguous(), cache, 0)
        x = begin[1].contiguous()
        for book, head in enumerate(self._predictor.lm_head):
            normed = self._run_position(x, cache, book + 1)
            logits = torch.nn.functional.linear(normed, head.weight)
            self._draw_codes(codes, x, logits, sampling, uniforms, book, count)
        total, first = torch.empty_like(first), first.contiguous()
        self._sum(rows, THREADS, first, self._tables["embeddings"], codes, total)
        return codes, total

    def _allocate_cache(self, rows: int, like: Tensor) -> Tensor:
        """Keys and values [layers, 2, R, kv_heads, positions, d]; read only where written."""
        config, positions = self._config, len(self._predictor.lm_head) + 1
        size = (config.layers, 2, rows, config.kv_heads, positions, config.head_dim)
        return like.new_empty(size)

    def _run_position(self, x: Tensor, cache: Tensor, position: int) -> Tensor:
        """One position through all layers: x [R, width], changed in place -> normed [R, width]."""
        linear, added = torch.nn.functional.linear, None
        for layer, block in enumerate(self._predictor.model.layers):
            normed = self._normed(x, added, block.input_layernorm.weight)
            qkv = linear(normed, block.self_attn.qkv_proj.weight)
            attended = self._attended(qkv, cache[layer], layer, position)
            added = linear(attended, block.self_attn.o_proj.weight)
            normed = self._normed(x, added, block.post_attention_layernorm.weight)
            gated = self._gated(linear(normed, block.mlp.gate_up_proj.weight))
            added = linear(gated, block.mlp.down_proj.weight)
        return self._normed(x, added, self._predictor.model.norm.weight)

    def _normed(self, x: Tensor, added: Tensor | None, weight: Tensor) -> Tensor:
        """x += added -> x normed."""
        normed = torch.empty_like(x)
        self._add_norm(len(x), THREADS, x, added, weight, normed)
        return normed

    def _attended(self, qkv: Tensor, cache: Tensor, layer: int, position: int) -> Tensor:
        rows, config = len(qkv), self._config
        out = qkv.new_empty(rows, config.heads * config.head_dim)
        norms, rotary = self._tables["norms"][layer], self._tables["rotary"]
        blocks = -(-rows * config.kv_heads // WARPS)
        self._attend(blocks, THREADS, qkv, cache[0], cache[1], norms, rotary, out, position, rows)
        return out

    def _gated(self, gate_up: Tensor) -> Tensor:
        gated = gate_up.new_empty(len(gate_up), self._config.intermediate_size)
        self._gate(len(gate_up), THREADS, gate_up, gated)
        return gated

    def _draw_codes(
        self, codes: Tensor, x: Tensor, logits: Tensor, sampling: SamplingTensors,
        uniforms: Tensor, book: int, count: int | None,
    ) -> None:  # fmt: skip
        """Sample this book's codes; x becomes their embeddings."""
        ranked = min(count or self._codes, self._codes)
        strides = sampling.sample_mask.stride(0), uniforms.stride(0)
        inputs = self._tables["inputs"][book]
        self._draw(
            len(x), THREADS, logits, *sampling.tensors, uniforms, inputs, codes, x, book, ranked,
            *strides,
        )  # fmt: skip
