"""What fewer bits change: codebook by codebook, against full weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from bench import MINI
from bench.quality.bits import LIMIT, Change, change, forms, listen, scores, table, talker_of
from engine import open_engine
from engine.worker.loading.model_loader import load_talker


def chances(*rows: tuple[float, ...]) -> Tensor:
    """Log-probabilities of one frame, a row for each codebook."""
    return torch.tensor(rows).log()[:, None]


def test_each_codebook_has_its_own_figures() -> None:
    full = [chances((0.75, 0.25), (0.5, 0.5))]
    found = change("8bit", full, [chances((0.25, 0.75), (0.5, 0.5))])
    assert found.same == (0.0, 1.0)
    assert found.nats == pytest.approx((0.5 * torch.log(torch.tensor(3.0)).item(), 0.0), abs=1e-6)


def test_codes_that_a_codebook_does_not_have_count_for_nothing() -> None:
    one = chances((0.75, 0.25, 0.0))
    assert change("8bit", [one], [one]).nats == (0.0,)


def test_the_table_says_what_stays_inside_the_limit() -> None:
    good, bad = Change("8bit", (1.0, 0.99), (0.0, LIMIT)), Change("4bit", (0.9, 0.5), (0.01, 0.3))
    *_, inside, outside = table([good, bad])
    assert inside == "8bit: at most 0.0200 nats, inside 0.02"
    assert outside == "4bit: at most 0.3000 nats, outside 0.02"


def test_the_inputs_of_a_frame_are_those_that_its_codes_were_chosen_from() -> None:
    """Sampled codes are likely by the full weights, and fewer bits are further off."""
    with open_engine([MINI], "cpu", weights="full", max_num_seqs=1) as engine:
        voice = next(iter(engine.capabilities().values())).speakers[0]
        heard = listen(engine, talker_of(engine), "Good morning to you all.", voice)
    full = scores(load_talker(MINI, torch.device("cpu"), torch.float32), heard)
    chosen = full.gather(2, heard.codes[: full.shape[1]].T[..., None])
    assert full.shape[:2] == (16, len(heard.codes))
    assert chosen.mean() > -4  # by chance -7.6
    changed = {
        name: change(name, [full], [scores(make(), heard)]) for name, make in forms(MINI).items()
    }
    assert changed["8bit"].most < changed["mixed"].most <= changed["4bit"].most + 1e-6
    assert changed["mixed"].nats[0] == pytest.approx(changed["4bit"].nats[0])
