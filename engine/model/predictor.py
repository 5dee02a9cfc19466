"""The code predictor: from a talker's hidden state and codebook 0 to codebooks 1–15.

One frame is a sequence of its own: position 0 is the hidden state, position 1 codebook 0, position
i+1 codebook i. The caller samples codes from a head's logits. Parameter names are those of the
checkpoint below `talker.code_predictor`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.configs import TalkerConfig, TransformerConfig
from engine.model.layers import Attend, Causal, Layers, Transformer, embedding, rotary_embedding

Choose: TypeAlias = Callable[[int, Tensor], Tensor]  # (codebook 1..15, logits [B, V]) -> ids [B]


class FrameCache:
    """Keys and values of one frame, whose rows are all at the same position."""

    def __init__(self, config: TransformerConfig, batch: int, positions: int, like: Tensor) -> None:
        size = (2, config.layers, batch, config.kv_heads, positions, config.head_dim)
        self.keys, self.values = like.new_empty(size)
        self.at = 0

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        stop = self.at + q.shape[2]
        self.keys[layer, :, :, self.at : stop] = k
        self.values[layer, :, :, self.at : stop] = v
        keys, values = self.keys[layer, :, :, :stop], self.values[layer, :, :, :stop]
        causal = bool(q.shape[2] > 1)  # only the first call, with as many queries as keys
        return F.scaled_dot_product_attention(q, keys, values, is_causal=causal, enable_gqa=True)


class PredictorModel(Transformer):
    def __init__(self, config: TalkerConfig) -> None:
        super().__init__(config.predictor)
        self.codec_embedding = Layers(
            embedding(config.predictor_vocab_size, config.transformer.hidden_size)
            for _ in range(config.codebooks - 1)
        )


class Predictor(nn.Module):
    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        talker_width, width = config.transformer.hidden_size, config.predictor.hidden_size
        self.model = PredictorModel(config)
        self.lm_head = Layers(
            nn.Linear(width, config.predictor_vocab_size, bias=False)
            for _ in range(config.codebooks - 1)
        )
        self.small_to_mtp_projection = (
            nn.Linear(talker_width, width) if talker_width != width else nn.Identity()
        )

    @property
    def dtype(self) -> torch.dtype:
        """Of hidden states."""
        return self.model.norm.weight.dtype

    def embed(self, codebook: int, ids: Tensor) -> Tensor:
        """ids [...] of codebook 1..15 -> [..., talker width]."""
        rows: Tensor = self.model.codec_embedding[codebook - 1](ids)
        return rows.to(self.dtype)  # the tables may be of fewer bits than the rest

    def forward(
        self, hidden: Tensor, first: Tensor, codes: Tensor, attend: Attend | None = None
    ) -> Tensor:
        """All heads at once, or the first of them, each given the true codes before it (training).

        hidden [B, W] of the talker, first [B, W] codebook 0's embedding in the talker's table,
        codes [B, n] of the first n codebooks -> logits [B, n - 1, V] of codebooks 1 to n - 1.
        `attend`: other than `Causal`.
        """
        embedded = [self.embed(i, codes[:, i]) for i in range(1, codes.shape[1] - 1)]
        x = self.small_to_mtp_projection(torch.stack((hidden, first, *embedded), 1))  # [B, n, w]
        positions = torch.arange(x.shape[1], device=x.device)[None]
        out = self.model(x, positions, attend or Causal())[:, 1:].unbind(1)
        return torch.stack([head(x) for head, x in zip(self.lm_head, out, strict=False)], 1)

    def sample(self, hidden: Tensor, first: Tensor, choose: Choose) -> tuple[Tensor, Tensor]:
        """One frame: hidden and first [B, W] -> codes [B, 15] and the sum of all 16 embeddings."""
        books, config = len(self.lm_head), self.model.config
        cache = FrameCache(config, hidden.shape[0], books + 1, hidden)
        positions = torch.arange(books + 1, device=hidden.device)[None]
        cos, sin = (
            t.to(hidden.dtype)
            for t in rotary_embedding(positions, config.head_dim, config.rope_theta)
        )
        x, total, codes = torch.stack((hidden, first), 1), first, []
        for book, head in enumerate(self.lm_head, 1):
            here = slice(cache.at, book + 1)
            rotary = cos[:, :, here], sin[:, :, here]
            out = self.model.run(self.small_to_mtp_projection(x), rotary, cache)
            cache.at = book + 1
            codes.append(choose(book, head(out[:, -1])))
            x = self.embed(book, codes[-1])[:, None]
            total = total + x[:, 0]
        return torch.stack(codes, 1), total
