"""A talker's step with compiled blocks is the step without them, and few graphs are compiled."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.utils import counters

from training.batching.batches import blank
from training.train_talker import Trainer


def step(compiled: bool) -> list[dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    trainer = Trainer(torch.device("cpu"), compiled=compiled)
    found = []
    for length in (96, 144):
        batch = blank(2, length, trainer.device)
        batch.target.random_(256)
        batch.spoken_row.copy_(torch.arange(length).clamp(min=1) - 1)
        found.append(trainer.advance(*batch.tensors(), frames=32))
    return found


@pytest.mark.filterwarnings("ignore")  # of the compiler's own modules
@pytest.mark.slow
def test_compiled_blocks_change_nothing() -> None:
    plain = step(False)
    counters.clear()
    for kind, other in zip(plain, step(True), strict=True):
        for name, value in kind.items():
            torch.testing.assert_close(other[name], value, rtol=1e-4, atol=1e-4)
    assert 0 < counters["stats"]["unique_graphs"] < 16  # not one for each layer or length
