"""The network by which studio.word_times tells kinds of sounds apart.

Learned from the teacher's speech, of which every 20 ms is known what phone it is
(training.teachers.synthesize). It is small: 64 hidden units, minutes on one core.

    python -m training.word_times --speech DIR --out studio/word_times/sound_kinds.npz
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from studio.word_times.features import features
from studio.word_times.letter_sounds import KINDS
from training.data.phones import PHONES

PHONES_OF: Final = {
    "pause": "pau",
    "vowel": "aa ae ah ao aw ax ay eh er ey ih iy ow oy uh uw",
    "glide": "l r w y",
    "nasal": "m n ng",
    "hiss": "s z sh zh ch jh",
    "breath": "f v th dh hh",
    "stop": "p t k",
    "voiced": "b d g",
}
HIDDEN, BATCH, RATE, DECAY = 64, 512, 2e-3, 0.02
NOISES: Final = (0.0, 2.0, 30.0)  # each sentence once with noise of so many steps of 16 bits


def kind_of_phones() -> NDArray[np.int64]:
    """[phones] -> kind."""
    kinds = {
        phone: KINDS.index(kind) for kind, phones in PHONES_OF.items() for phone in phones.split()
    }
    return np.array([kinds[phone] for phone in PHONES])


def sentences(folder: Path) -> Iterator[tuple[NDArray[np.int16], NDArray[np.uint8]]]:
    """Samples, and a phone every 20 ms, of all shards."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as shard:
            edges = shard["offsets"].tolist()
            samples, phones, step = shard["samples"], shard["phones"], 480
            for first, last in pairwise(edges):
                yield samples[first:last], phones[first // step : last // step]


def examples(folder: Path, random: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    values, kinds, kind_of = [], [], kind_of_phones()
    for samples, phones in sentences(folder):
        wanted = kind_of[np.repeat(phones, 2)]  # features come every 10 ms
        for noise in NOISES:
            heard = samples + noise * random.standard_normal(len(samples))
            found = features(heard.clip(-32768, 32767).astype(np.int16))
            count = min(len(found), len(wanted))
            values.append(found[:count])
            kinds.append(wanted[:count])
    return torch.from_numpy(np.concatenate(values)), torch.from_numpy(np.concatenate(kinds))


def train(values: torch.Tensor, kinds: torch.Tensor, steps: int) -> dict[str, Any]:
    """The weights as alignment.py reads them."""
    torch.manual_seed(0)
    first, second = nn.Linear(values.shape[1], HIDDEN), nn.Linear(HIDDEN, len(KINDS))
    network = nn.Sequential(nn.Dropout(0.1), first, nn.ReLU(), nn.Dropout(0.2), second)
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    for _ in range(steps):
        rows = torch.randint(len(values), (BATCH,))
        noisy = values[rows] + 0.1 * torch.randn(BATCH, values.shape[1])
        loss = nn.functional.cross_entropy(network(noisy), kinds[rows], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    weights = {"w1": first.weight.T, "b1": first.bias, "w2": second.weight.T, "b2": second.bias}
    prior = np.bincount(kinds.numpy(), minlength=len(KINDS)) / len(kinds)
    halved = {name: value.detach().numpy().astype(np.float16) for name, value in weights.items()}
    return {**halved, "prior": prior.astype(np.float32)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speech", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1500)
    args = parser.parse_args()
    values, kinds = examples(args.speech, np.random.default_rng(0))
    np.savez(args.out, **train(values, kinds, args.steps))
    print(f"{len(values):,} frames")


if __name__ == "__main__":
    main()
