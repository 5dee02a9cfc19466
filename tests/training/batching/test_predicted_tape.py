"""Predicted codes lie beside the waves and phones of their own frames."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.model.talker import Talker
from tests.training.batching.test_batches import TEXT_IDS, fake_ids
from training import model_config, state
from training.batching.batches import Batcher, Instructions
from training.batching.predicted_tape import PredictedTape
from training.batching.talker_dataset import FRAMES, TalkerDataset
from training.codec import Codec
from training.data.speech_format import FRAME, PHONE_STEP, PHONES_A_FRAME
from training.data.speech_pool import SpeechPool

CPU = torch.device("cpu")
LENGTHS = (15, 11, 19)  # frames of the utterances
CROP, HEARD = 12, 5


def make_pool(folder: Path) -> SpeechPool:
    random, samples = np.random.default_rng(0), sum(LENGTHS) * FRAME
    meta = [{"text": "abcd", "speaker": 0, "style": 0}] * len(LENGTHS)
    np.savez(
        folder / "00000.npz",
        samples=(3000 * random.standard_normal(samples)).astype(np.int16),
        phones=random.integers(1, 40, samples // PHONE_STEP).astype(np.uint8),
        places=np.zeros(samples // PHONE_STEP, np.uint16),
        offsets=np.cumsum((0, *LENGTHS)) * FRAME,
        meta=np.array(json.dumps(meta)),
    )
    pool = SpeechPool(folder, 0.01, CPU)
    assert pool.refresh() == 1
    return pool


@pytest.fixture
def tape(tmp_path: Path) -> PredictedTape:
    torch.manual_seed(0)
    pool = make_pool(tmp_path)
    dataset = TalkerDataset(fake_ids, Codec().encoder.eval(), None, CPU)
    dataset.grow(pool)
    batcher = Batcher(dataset, Instructions(fake_ids, TEXT_IDS, CPU), TEXT_IDS)
    batcher.refresh()
    return PredictedTape(batcher, pool, 6 * 96)


def test_what_is_drawn_is_of_the_same_frames(tape: PredictedTape) -> None:
    """A frame's wave is a stretch of the pool, and its phones are those of that stretch."""
    tape.renew()
    whole = tape._pool.samples.float() / 32767
    codes, waves, phones = tape.draw(8, CROP, HEARD)
    assert codes.shape == (8, model_config.CODEBOOKS, CROP)
    assert waves.shape == (8, HEARD * FRAME)
    assert phones.shape == (8, HEARD * PHONES_A_FRAME)
    for wave, told in zip(waves.view(-1, FRAME), phones.view(-1, PHONES_A_FRAME), strict=True):
        heard = wave.nonzero()[:, 0]
        begin, end = int(heard[0]), int(heard[-1]) + 1  # the rest is silence around an utterance
        (place,) = (
            (whole.unfold(0, 4, 1) == wave[begin : begin + 4]).all(1).nonzero()[:, 0].tolist()
        )
        assert torch.equal(whole[place : place + end - begin], wave[begin:end])
        middle = (begin // PHONE_STEP + end // PHONE_STEP) // 2
        sample = place - begin + middle * PHONE_STEP + PHONE_STEP // 2
        near = tape._pool.phones[[(sample + by) // PHONE_STEP for by in (-PHONE_STEP, 0)]]
        assert int(told[middle]) in near.tolist()


def test_content_is_true_and_sound_is_predicted(tape: PredictedTape) -> None:
    tape.renew()
    dataset = tape._batcher.dataset
    begins = (tape._starts[1:] - tape._starts[:-1] != FRAME).nonzero()[:, 0] + 1
    cuts = [0, *begins.tolist(), len(tape.codes)]
    by_start = {int(sound[0]): row for row, sound in enumerate(dataset.sounds)}
    predicted = total = 0
    for first, stop in pairwise(cuts):
        row = dataset.table[by_start[int(tape._starts[first])]]
        true = dataset.codes[row[2] : row[2] + stop - first].long()
        assert stop - first == int(row[FRAMES])
        assert torch.equal(tape.codes[first:stop, 0], true[:, 0])
        predicted += int((tape.codes[first:stop, 1:] != true[:, 1:]).sum())
        total += true[:, 1:].numel()
    assert predicted > 0.9 * total  # an untrained talker guesses


def test_it_follows_the_talker_that_learns(tape: PredictedTape, tmp_path: Path) -> None:
    path = tmp_path / "talker.pt"
    for number in range(2):
        torch.manual_seed(number + 5)
        talker = Talker(model_config.talker_config())
        state.save({"talker": talker.state_dict()}, path)
        os.utime(path, (number, number))
        tape.follow(path)
        pairs = zip(tape._talker.parameters(), talker.parameters(), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)
