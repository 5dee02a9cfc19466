"""Whose voice made speech is heard to be: an ear that a decoder is to please.

The ear is the speaker encoder that will be exported, as it is. Made speech is to lie where the
real speech of the same moment lies, and nearer to it than to the rest of the batch.
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
        """Of waves [B, samples], of length one; a little noise hides what nobody would hear."""
        return F.normalize(self.encoder.embed(worn(wave)), dim=-1)

    def forward(self, made: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """How far each voice is from its own, and how easily it is taken for another's."""
        with torch.no_grad():
            wanted = self.voice(real)
        told = self.voice(made)
        return strange(told, wanted), mistaken(told, wanted)


def strange(made: Tensor, real: Tensor) -> Tensor:
    """One less the cosine of vectors [B, d] of length one."""
    return 1 - (made * real).sum(-1).mean()


def mistaken(made: Tensor, real: Tensor) -> Tensor:
    """Which of the batch each seems to be, against which of them the real one is like."""
    wanted = (SCALE * real @ real.T).softmax(-1)
    return F.cross_entropy(SCALE * made @ real.T, wanted)
