"""A codec's decoder with random weights, whose audio is neither silent nor clamped."""

from __future__ import annotations

import torch

from engine.model.codec import CodecDecoder
from engine.model.configs import CodecConfig


def random_codec(shape: CodecConfig, level: float) -> CodecDecoder:
    """`level`: standard deviation of its samples for random codes."""
    draw = torch.Generator().manual_seed(0)
    made = CodecDecoder(shape).requires_grad_(False).eval()
    for name, value in [*made.named_parameters(), *made.named_buffers()]:
        fan = value[0].numel() ** -0.5 if value.dim() > 1 else 0.2
        even = float("usage" in name or ("norm" in name and "weight" in name))
        value.normal_(0, 1.0 if "embedding" in name else fan, generator=draw).add_(even)
    codes = torch.randint(0, shape.codebook_size, (4, shape.codebooks, 9), generator=draw)
    for _ in range(2):  # the first time it was clamped
        made.decoder[-1].conv.weight.mul_(level / made(codes).std())
    return made
