"""Guided attention: the loss is what a look elsewhere costs, and looking can be learned."""

from __future__ import annotations

import torch

from engine.model.layers import Causal
from engine.model.talker import Talker
from training import model_config
from training.batching.batches import NONE
from training.losses.attention_guidance import LAYERS, GuidedAttention, guidance_loss


def test_attention_to_the_right_row_costs_nothing() -> None:
    rows = 100 * torch.eye(8)[None]
    spoken_row = torch.tensor([[NONE, 0, 1, 2, 0, 5, NONE, 6]])
    away = rows[0, spoken_row.clamp(min=0)]  # [1, 8, 8]
    assert guidance_loss(away, rows, spoken_row).abs().max() < 1e-3
    assert guidance_loss(rows.roll(3, 1), rows, spoken_row)[0, 5] > 5
    assert guidance_loss(rows, rows, spoken_row)[0, [0, 6]].tolist() == [0, 0]


def test_later_rows_are_never_attended() -> None:
    """A row that sees only itself and one other looks near, whatever its query."""
    q, k = torch.randn(2, 1, 6, 4)
    spoken_row = torch.tensor([[0, 0, NONE, NONE, NONE, NONE]])
    assert guidance_loss(q, k, spoken_row).abs().max() < 1e-5


def test_guidance_leaves_the_output_and_has_a_loss_a_layer() -> None:
    torch.manual_seed(0)
    talker = Talker(model_config.talker_config()).eval()
    x, positions = torch.randn(2, 7, model_config.WIDTH), torch.arange(7)[None]
    guided = GuidedAttention(torch.randint(0, 3, (2, 7)).clamp(max=torch.arange(7)))
    with torch.no_grad():
        torch.testing.assert_close(talker(x, positions, guided), talker(x, positions, Causal()))
    assert [loss.shape for loss in guided.losses] == [(2, 7)] * len(LAYERS)


def test_a_talker_learns_where_to_attend() -> None:
    torch.manual_seed(0)
    talker = Talker(model_config.talker_config())
    steps = torch.optim.Adam(talker.parameters(), lr=2e-3)
    x, positions = torch.randn(4, 12, model_config.WIDTH), torch.arange(12)[None]
    spoken_row = torch.where(positions < 6, NONE, positions - 6).expand(4, -1)
    reports = []
    for _ in range(25):
        guided = GuidedAttention(spoken_row)
        talker(x, positions, guided)
        loss = torch.stack(guided.losses).mean()
        steps.zero_grad()
        loss.backward()
        steps.step()
        reports.append(loss.item())
    assert reports[-1] < 0.3 * reports[0]
