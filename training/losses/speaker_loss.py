"""A speaker loss for the codec: generated speech must keep its voice.

Vectors come from the speaker encoder that will be exported, frozen. The vector of generated speech
should equal that of the real speech, and be nearer to it than to the rest of the batch.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training import state as states
from training.train_speaker import SCALE, Trainee, worn


class Ear(nn.Module):
    def __init__(self, path: Path, device: torch.device) -> None:
        super().__init__()
        trainee = Trainee()
        trainee.load_state_dict(states.load(path)["speaker"])
        self.encoder = trainee.encoder.to(device).eval().requires_grad_(False)

    def voice(self, wave: Tensor) -> Tensor:
        """Unit vectors of waves [B, samples]; a little noise hides inaudible detail."""
        return F.normalize(self.encoder.embed(worn(wave)), dim=-1)

    def forward(self, made: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """The distance of each voice to its own, and the contrastive loss within the batch."""
        with torch.no_grad():
            wanted = self.voice(real)
        told = self.voice(made)
        return strange(told, wanted), mistaken(told, wanted)


def strange(made: Tensor, real: Tensor) -> Tensor:
    """One minus the cosine of unit vectors [B, d]."""
    return 1 - (made * real).sum(-1).mean()


def mistaken(made: Tensor, real: Tensor) -> Tensor:
    """Contrastive loss: similarities within the batch against those of the real speech."""
    wanted = (SCALE * real @ real.T).softmax(-1)
    return F.cross_entropy(SCALE * made @ real.T, wanted)
