"""The talker: from text and codes, as embeddings, to hidden states and codebook 0.

Knows no prompts and no sampling. Parameter names are those of the checkpoint below `talker`, the
predictor's among them.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.configs import TalkerConfig
from engine.model.layers import Attend, Transformer, embedding
from engine.model.predictor import Predictor


class TalkerModel(Transformer):
    def __init__(self, config: TalkerConfig) -> None:
        super().__init__(config.transformer)
        self.codec_embedding = embedding(config.vocab_size, config.transformer.hidden_size)
        self.text_embedding = embedding(config.text_vocab_size, config.text_hidden_size)


class TextProjection(nn.Module):
    """Text embedding to talker width."""

    def __init__(self, text_width: int, width: int) -> None:
        super().__init__()
        self.linear_fc1 = nn.Linear(text_width, text_width)
        self.linear_fc2 = nn.Linear(text_width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear_fc2(F.silu(self.linear_fc1(x)))


class Talker(nn.Module):
    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.config = config
        self.model = TalkerModel(config)
        self.text_projection = TextProjection(
            config.text_hidden_size, config.transformer.hidden_size
        )
        self.codec_head = nn.Linear(config.transformer.hidden_size, config.vocab_size, bias=False)
        self.code_predictor = Predictor(config)

    def embed_text(self, ids: Tensor) -> Tensor:
        """Text ids [...] -> [..., width]."""
        rows = self.model.text_embedding(ids)  # the table may be of fewer bits than the rest
        return self.text_projection(rows.to(self.model.codec_embedding.weight.dtype))

    def embed_first(self, ids: Tensor) -> Tensor:
        """Codebook 0, special codes and preset speakers: ids [...] -> [..., width]."""
        return self.model.codec_embedding(ids)

    def embed_codes(self, codes: Tensor) -> Tensor:
        """Frames [..., 16] -> the sum of their embeddings [..., width]."""
        total = self.embed_first(codes[..., 0])
        for book in range(1, codes.shape[-1]):
            total = total + self.code_predictor.embed(book, codes[..., book])
        return total

    def forward(self, x: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Embeddings [B, T, width] at positions [B, T] -> hidden states [B, T, width]."""
        return self.model(x, positions, attend)

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states [..., width] -> codebook 0's logits [..., codes]."""
        return self.codec_head(hidden)

    def predict(self, hidden: Tensor, codes: Tensor, attend: Attend | None = None) -> Tensor:
        """Logits [B, n - 1, V] of codebooks 1 to n - 1 given the codes of the first n, mostly all
        16: hidden [B, width], codes [B, n]."""
        return self.code_predictor(hidden, self.embed_first(codes[:, 0]), codes, attend)
