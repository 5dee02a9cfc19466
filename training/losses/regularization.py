"""What keeps the talker from learning its texts by heart.

Dropout, in training only, put around the engine's blocks; and speech set aside, which shows
how well texts are spoken that were never learned. Without both, and with speech read again
and again as it was first encoded, codebook 0 cost 0.7 nats in training and 4.3 elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.layers import Block
from engine.model.talker import Talker
from training.batching.batches import Batch, Batcher
from training.data.speech_pool import Pool

ROWS = 12_288  # of a batch that is set aside
Losses = Callable[[Any, Batch, int], dict[str, Tensor]]


def thin(talker: Talker, share: float) -> None:
    """Drop a share of what every attention and every gated product adds."""

    def drop(module: nn.Module, _: tuple[Tensor, ...], out: Tensor) -> Tensor:
        return F.dropout(out, share, module.training)

    for module in talker.modules():
        if isinstance(module, Block):
            module.self_attn.register_forward_hook(drop)
            module.mlp.register_forward_hook(drop)


class Aside:
    """Batches of speech that is never learned from."""

    def __init__(self, batcher: Batcher, folder: Path, device: torch.device) -> None:
        pool = Pool(folder, 1.0, device)
        while pool.refresh() or batcher.library.grow(pool):
            pass
        batcher.refresh()
        self._batches = [batcher.draw_size(ROWS, in_context) for in_context in (False, True)]

    @torch.no_grad()
    def judge(self, pupil: nn.Module, losses: Losses, frames: int) -> str:
        """Codebook 0 by vector and in context, then phones and the other codebooks."""
        pupil.eval()
        alone, context = (losses(pupil, batch, frames) for batch in self._batches)
        pupil.train()
        told = {"alone": alone["first"], "context": context["first"]}
        told |= {name: alone[name] for name in ("phones", "looks", "rest")}
        return "aside " + " ".join(f"{name} {value.item():.3f}" for name, value in told.items())
