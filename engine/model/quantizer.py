"""The codec's code tables: codes -> latents.

The first codebook is semantic, the others acoustic; each half sums its codebooks and projects the
sum. The encoder turns latents into codes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.convs import Foldable
from engine.model.layers import Layers


class Codebook(nn.Module):
    """A table stored as running sums and counts, as it was trained."""

    cluster_usage: Tensor
    embedding_sum: Tensor

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.register_buffer("cluster_usage", torch.ones(size))
        self.register_buffer("embedding_sum", torch.zeros(size, width))

    def table(self) -> Tensor:
        return self.embedding_sum / self.cluster_usage.clamp(min=1e-5)[:, None]


class CodebookLayer(nn.Module):
    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self._codebook = Codebook(size, width)


class CodebookLayers(nn.Module):
    def __init__(self, count: int, size: int, width: int) -> None:
        super().__init__()
        self.layers = Layers(CodebookLayer(size, width) for _ in range(count))


class QuantizerHalf(nn.Module):
    """The codebooks of one half and the projection of their sum."""

    def __init__(self, count: int, size: int, width: int) -> None:
        super().__init__()
        # input_proj is published with the decoder, but only training uses it
        self.input_proj = nn.Conv1d(width, width // 2, 1, bias=False)
        self.output_proj = nn.Conv1d(width // 2, width, 1, bias=False)
        self.vq = CodebookLayers(count, size, width // 2)

    def tables(self) -> Tensor:
        """Every entry after the projection: [count, size, width]."""
        entries = torch.stack([layer._codebook.table() for layer in self.vq.layers])
        return entries @ self.output_proj.weight[..., 0].T


class SplitQuantizer(Foldable):
    """Codes [B, codebooks, T] -> latents [B, width, T]."""

    def __init__(self, codebooks: int, size: int, width: int) -> None:
        super().__init__()
        self.size = size
        self.rvq_first = QuantizerHalf(1, size, width)
        self.rvq_rest = QuantizerHalf(codebooks - 1, size, width)

    def compute(self) -> Tensor:
        """All projected tables: [codebooks * size, width]."""
        return torch.cat((self.rvq_first.tables(), self.rvq_rest.tables())).flatten(0, 1)

    def forward(self, codes: Tensor) -> Tensor:
        batch, codebooks, length = codes.shape
        first = torch.arange(codebooks, device=codes.device) * self.size
        rows = (codes.transpose(1, 2) + first).reshape(-1, codebooks)
        latents = F.embedding_bag(rows, self.value(), mode="sum")  # [B * T, width]
        return latents.view(batch, length, -1).transpose(1, 2)
