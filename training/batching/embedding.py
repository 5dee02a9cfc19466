"""Embeds the rows of a batch as the talker's input."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.talker import Talker
from training import model_config
from training.batching.batches import NONE, Batch

WRONG_FIRST, WRONG_REST = 0.1, 0.05  # shares of random codes: sampling makes errors too


def embed(talker: Talker, batch: Batch) -> Tensor:
    """The rows of a batch as the talker's input [B, T, width]."""
    codes = batch.fed.clamp(min=0)
    codes = corrupt_codes(codes, WRONG_FIRST, WRONG_REST) if talker.training else codes
    return embed_fixed(talker, batch) + embed_frames(talker, codes, batch.fed)


def embed_fixed(talker: Talker, batch: Batch) -> Tensor:
    """The rows without the frames fed back: [B, T, width]."""
    x = talker.embed_text(batch.text.clamp(min=0)) * (batch.text != NONE)[..., None]
    x = x + talker.embed_first(batch.code.clamp(min=0)) * (batch.code != NONE)[..., None]
    return x + (batch.vector[:, None] * batch.speaker[..., None]).to(x.dtype)


def embed_frames(talker: Talker, codes: Tensor, fed: Tensor) -> Tensor:
    """Embedded codes [..., 16] where `fed` [..., 16] has a frame, else 0: [..., width]."""
    return talker.embed_codes(codes) * (fed[..., :1] != NONE)


def corrupt_codes(codes: Tensor, first: float, rest: float) -> Tensor:
    """Codes [..., 16] with some replaced by random ones."""
    share = torch.where(torch.arange(codes.shape[-1], device=codes.device) == 0, first, rest)
    wrong = torch.rand(codes.shape, device=codes.device) < share
    return torch.where(wrong, torch.randint_like(codes, model_config.CODES), codes)
