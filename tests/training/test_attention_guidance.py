"""Guided attention: the loss is what a look elsewhere costs, and looking can be learned."""

from __future__ import annotations

import torch

from engine.model.layers import Causal
from engine.model.talker import Talker
from training import model_config
from training.batching.batches import NONE
from training.losses.attention_guidance import LAYERS, Guided, missed


def test_a_look_at_the_right_row_costs_nothing() -> None:
    rows = 100 * torch.eye(8)[None]
    says = torch.tensor([[NONE, 0, 1, 2, 0, 5, NONE, 6]])
    away = rows[0, says.clamp(min=0)]  # [1, 8, 8]
    assert missed(away, rows, says).abs().max() < 1e-3
    assert missed(rows.roll(3, 1), rows, says)[0, 5] > 5
    assert missed(rows, rows, says)[0, [0, 6]].tolist() == [0, 0]


def test_what_comes_later_is_never_looked_at() -> None:
    """A row that sees only itself and one other looks near, whatever its query."""
    q, k = torch.randn(2, 1, 6, 4)
    says = torch.tensor([[0, 0, NONE, NONE, NONE, NONE]])
    assert missed(q, k, says).abs().max() < 1e-5


def test_talking_is_the_same_and_every_layer_tells() -> None:
    torch.manual_seed(0)
    talker = Talker(model_config.talker_config()).eval()
    x, positions = torch.randn(2, 7, model_config.WIDTH), torch.arange(7)[None]
    guided = Guided(torch.randint(0, 3, (2, 7)).clamp(max=torch.arange(7)))
    with torch.no_grad():
        torch.testing.assert_close(talker(x, positions, guided), talker(x, positions, Causal()))
    assert [loss.shape for loss in guided.losses] == [(2, 7)] * len(LAYERS)


def test_a_talker_learns_where_to_look() -> None:
    torch.manual_seed(0)
    talker = Talker(model_config.talker_config())
    steps = torch.optim.Adam(talker.parameters(), lr=2e-3)
    x, positions = torch.randn(4, 12, model_config.WIDTH), torch.arange(12)[None]
    says = torch.where(positions < 6, NONE, positions - 6).expand(4, -1)
    told = []
    for _ in range(25):
        guided = Guided(says)
        talker(x, positions, guided)
        loss = torch.stack(guided.losses).mean()
        steps.zero_grad()
        loss.backward()
        steps.step()
        told.append(loss.item())
    assert told[-1] < 0.3 * told[0]
