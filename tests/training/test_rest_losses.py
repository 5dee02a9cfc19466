"""The losses of acoustic codebooks, learned whole at some frames and in part at the others."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.model.talker import Talker
from training import model_config
from training.batching.batches import NONE
from training.train_talker import HEARD, rest_losses

FRAMES, DEEP = 12, 5


def test_they_are_those_of_the_whole_predictor() -> None:
    torch.manual_seed(0)
    talker = Talker(model_config.talker_config()).eval()
    hidden = torch.randn(FRAMES, model_config.WIDTH)
    target = torch.randint(model_config.CODES, (FRAMES, model_config.CODEBOOKS))
    target[3] = NONE  # a row without a frame
    there = target[:, 0] != NONE
    with torch.no_grad():
        some = rest_losses(talker, hidden, target, DEEP)
        logits = talker.predict(hidden, target.clamp(min=0))
    each = F.cross_entropy(logits.transpose(1, 2), target[:, 1:].clamp(min=0), reduction="none")
    torch.testing.assert_close(some[:HEARD], each[there].mean(0)[:HEARD])
    torch.testing.assert_close(some[HEARD:], each[:DEEP][there[:DEEP]].mean(0)[HEARD:])
