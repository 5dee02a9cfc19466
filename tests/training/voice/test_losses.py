"""The losses are those of the frames that the engine speaks, on trained weights: what is off by one
row or by one frame is told here, since a loss that is off still falls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.model.talker import Talker
from engine.plan import Prompt
from engine.types import Clone
from engine.worker.loading.model_loader import load_talker
from studio.cli.app_context import MINI
from tests.engine.worker.driver import GREEDY, running, speak
from tests.support.golden_cases import Case, record
from training.voice.losses import first_loss, forward, hold, predicting, rest_losses
from training.voice.sequences import (
    LAYOUTS,
    Batch,
    Layout,
    Line,
    SequenceMaker,
    batch_of,
    embed,
    voice_of,
)

TRAINED_ON = Path(__file__).parents[2] / "mini"
CASE = Case(TRAINED_ON, "clone", record(TRAINED_ON)["cases"]["clone"])
CPU = torch.device("cpu")
ROWS = 3


class Model(NamedTuple):
    checkpoint: LocalCheckpoint
    talker: Talker


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(LocalCheckpoint(MINI), load_talker(MINI, CPU, torch.float32))


def line(model: Model) -> Line:
    """A sentence as the reference package spoke it with this model, greedily."""
    ids = model.checkpoint.text_ids(CASE.asked["text"])
    return Line(ids, CASE.tensor("codes").numpy())


def laid(model: Model, rows: int, layout: Layout = "streamed", count: int = 1) -> Batch:
    maker = SequenceMaker(model.checkpoint, model.talker, rows)
    whole = maker.make(line(model), "English", layout)
    short = maker.make(Line(line(model).text_ids, line(model).codes[:9]), "English", layout)
    return batch_of([whole, short][:count], model.checkpoint.ids.tts_pad, CPU)


def clone() -> Clone:
    assert isinstance(CASE.voice, Clone)
    return CASE.voice


def voice(rows: int = 0) -> Tensor:
    learned = 0.3 * np.random.default_rng(1).standard_normal((rows, len(clone().vector)))
    mine = replace(clone(), rows=learned.astype(np.float32)) if rows else clone()
    return torch.from_numpy(voice_of(mine))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_those_of_the_engine(model: Model, layout: Layout) -> None:
    """What a worker speaks greedily with learned rows is what the forward finds most likely."""
    mine = replace(
        clone(), rows=voice(ROWS).numpy()[1:], digest=model.checkpoint.capabilities.digest
    )
    ids = model.checkpoint.text_ids("The birch canoe slid.")
    prompt: Prompt = model.checkpoint.prompt(ids, mine, "English", layout, False)
    with running(MINI) as worker:
        spoken = speak(worker, prompt, draw=replace(GREEDY, repetition_penalty=1.0), max_frames=30)
    maker = SequenceMaker(model.checkpoint, model.talker, ROWS)
    batch = batch_of([maker.make(Line(ids, spoken.codes), "English", layout)], 0, CPU)
    with torch.inference_mode():
        made = forward(model.talker, batch, voice(ROWS))
        where = predicting(batch)
        frames = batch.target.flatten(0, 1)[where]
        first = made.logits.flatten(0, 1)[where].argmax(-1)
        rest = model.talker.predict(made.hidden.flatten(0, 1)[where], frames).argmax(-1)
    assert len(prompt) == batch.text.shape[1] - len(spoken.codes)
    # an end is never taken before the third frame, and special codes never at all
    assert torch.equal(first[2:], frames[2:, 0])
    assert torch.equal(rest, frames[:, 1:])


def test_codebook_0_is_the_next_rows_and_no_others(model: Model) -> None:
    batch, end = laid(model, 0), model.checkpoint.ids.codec_eos
    with torch.inference_mode():
        logits = forward(model.talker, batch, voice()).logits
        lost = {}
        for shift in range(-2, 4):  # 1: the frame that the next row feeds back
            moved = batch.target.roll(1 - shift, 1)
            kept = batch.first & (moved[..., 0] >= 0) & (batch.target[..., 0] >= 0)
            other = replace(batch, target=moved, ends=torch.zeros_like(batch.ends))
            lost[shift] = float(first_loss(logits, other, end)[kept].mean())
    assert min(lost, key=lost.__getitem__) == 1
    assert lost[1] < 0.7 * min(value for shift, value in lost.items() if shift != 1)


def test_every_acoustic_codebook_is_of_the_row_before(model: Model) -> None:
    """Hidden state p - 1, for the frame that row p feeds back: the lowest in every codebook, the
    first eight clearly; of the frame before or after it is higher."""
    batch = laid(model, 0)
    with torch.inference_mode():
        hidden = forward(model.talker, batch, voice()).hidden.flatten(0, 1)
        where = predicting(batch)[1:-1]
        target = batch.target.flatten(0, 1)
        lost = {move: rest_losses(model.talker, hidden[where + move], target[where])
                for move in (-1, 0, 1)}  # fmt: skip
        moved = {move: rest_losses(model.talker, hidden[where], target[where + move])
                 for move in (-1, 0, 1)}  # fmt: skip
    assert bool((lost[0] < torch.minimum(lost[-1], lost[1])).all())
    assert bool((moved[0] < torch.minimum(moved[-1], moved[1])).all())
    assert float(lost[0][:8].mean()) < 0.8 * float(lost[1][:8].mean())


def test_shorter_lines_of_a_batch_are_as_alone(model: Model) -> None:
    both, alone = laid(model, ROWS, count=2), laid(model, ROWS)
    end, width = model.checkpoint.ids.codec_eos, alone.text.shape[1]
    with torch.inference_mode():
        one = first_loss(forward(model.talker, alone, voice(ROWS)).logits, alone, end)
        two = first_loss(forward(model.talker, both, voice(ROWS)).logits, both, end)
    torch.testing.assert_close(two[0, :width], one[0], rtol=0, atol=1e-4)
    assert int((two[1] > 0).sum()) == 10  # nine frames and the end


def test_gradients_of_rows_are_finite_differences() -> None:
    """In float64, along random directions: of both losses and the hold together."""
    checkpoint = LocalCheckpoint(MINI)
    model = Model(checkpoint, load_talker(MINI, CPU, torch.float64))
    batch, start = laid(model, ROWS, count=2), voice(ROWS).double()
    where, end = predicting(batch), checkpoint.ids.codec_eos
    with torch.no_grad():
        calm = forward(model.talker, batch, torch.zeros_like(start)).logits
        held = calm[batch.first].log_softmax(-1)

    def loss(rows: Tensor) -> Tensor:
        x = embed(model.talker, batch, rows)
        assert x.dtype == torch.float64
        made = forward(model.talker, batch, rows)
        logits = made.logits
        first = first_loss(logits, batch, end)[batch.first].mean()
        target = batch.target.flatten(0, 1)[where]
        rest = rest_losses(model.talker, made.hidden.flatten(0, 1)[where], target).mean()
        return first + rest + hold(logits[batch.first], held)

    rows = start.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(rows), rows)
    random = torch.Generator().manual_seed(0)
    for _ in range(3):
        way = torch.randn(rows.shape, generator=random, dtype=torch.float64)
        with torch.no_grad():
            there, back = loss(start + 1e-4 * way), loss(start - 1e-4 * way)
        slope = float(there - back) / 2e-4
        assert float((gradient * way).sum()) == pytest.approx(slope, rel=2e-3, abs=1e-5)
    assert float(gradient.abs().max()) > 1e-4
