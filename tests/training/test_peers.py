"""Processes that train together: the same weights at the end, learned from different speech."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from training import peers, train_loop

COUNT = 2


class Pupil:
    """Learns a number of its own: what its process wants of it."""

    def __init__(self, rank: int) -> None:
        self.network, self.rank = nn.BatchNorm1d(3), rank
        nn.init.constant_(self.network.weight, 0.0)
        self.step, self.seconds = 0, 0.0

    def set_learning_rate(self, progress: float) -> None: ...

    def learn(self) -> dict[str, torch.Tensor]:
        time.sleep(0.002 * self.rank)  # the first process is the faster one
        with torch.no_grad():
            self.network.weight += self.rank + 1.0
            self.network.get_buffer("running_mean").add_(self.rank + 1.0)
        return {}

    def state(self) -> dict[str, object]:
        return {"step": self.step, "network": self.network.state_dict()}


def one_of_them(rank: int, folder: Path, steps: int, minutes: float) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    args = argparse.Namespace(
        peers=COUNT, rank=rank, meeting=folder / "meeting", state=folder / "saved.pt",
        until=None, minutes=minutes, steps=steps, log_every=10**9, save_every=10**9,
    )  # fmt: skip
    pupil = Pupil(rank)
    others = peers.join(args, torch.device("cpu"), [pupil.network])
    assert others is not None
    train_loop.train(pupil, args, pupil.learn, print, others)
    others.leave()
    torch.save(pupil.state(), folder / f"{rank}.pt")


@pytest.mark.skipif(sys.platform != "linux", reason="named network devices")
@pytest.mark.parametrize(("steps", "minutes"), [(3 * peers.EVERY - 2, 60.0), (10**9, 0.01)])
def test_they_end_together_with_equal_weights(tmp_path: Path, steps: int, minutes: float) -> None:
    context = multiprocessing.get_context("spawn")
    them = [
        context.Process(target=one_of_them, args=(rank, tmp_path, steps, minutes))
        for rank in range(COUNT)
    ]
    for each in them:
        each.start()
    for each in them:
        each.join(120)
    assert [each.exitcode for each in them] == [0] * COUNT
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(COUNT))
    done = first["step"]
    assert done == second["step"] > 0
    assert done % peers.EVERY == 0  # nobody stops while another waits
    for name in ("weight", "bias", "running_mean"):
        assert torch.equal(first["network"][name], second["network"][name])
    torch.testing.assert_close(first["network"]["weight"], torch.full((3,), 1.5 * done))
    torch.testing.assert_close(first["network"]["running_mean"], torch.full((3,), 1.0 * done))
    assert torch.load(tmp_path / "saved.pt")["step"] == done  # by the first alone


def test_one_alone_has_no_peers() -> None:
    parser = argparse.ArgumentParser()
    peers.add_options(parser)
    args = parser.parse_args([])
    assert peers.join(args, torch.device("cpu"), []) is None
