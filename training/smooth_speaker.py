"""Smooth the speaker encoder: every sentence's vector goes to where its voice lies.

A classifier puts voices it has never heard between those it knows, each sentence elsewhere. Here
every voice has one place, which follows from its axes alone (a regression of the mean vectors
over voices near it), and the encoder learns it from any sentence, a third of them copies that
a codec has made. A talker goes on hearing the vectors it knows, with less chance in them.

    python -m training.smooth_speaker --speech DIR --begin speaker.pt --codec codec.pt \\
        --out smooth.pt --minutes 20
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.speaker import SpeakerEncoder
from training import state as states
from training.codec import Codec
from training.pool import Pool
from training.speakers import BASES, TRAINED, everyone
from training.speech import FRAME, RATE
from training.train_speaker import (
    SCALE,
    Plain,
    Trainee,
    crop,
    eased,
    frozen,
    options,
    passed_on,
    worn,
)

LEAST, MOST = 3 * RATE // 2, 5 * RATE  # samples of a sentence that a mean is taken of
SPREAD = 0.5  # on the axes: voices so near to each other share their place
KINDS = 1.5  # how far apart two kinds of voices are beside
CHANCE = 0.9  # of one sentence's vector, beside what voices differ by
COPY = 48  # frames of a copy
FEWEST = 6  # codebooks of it


@torch.no_grad()
def mean_vectors(encoder: SpeakerEncoder, plain: Plain) -> tuple[Tensor, Tensor]:
    """Of each trained voice, and of how many sentences: [voices, width], [voices]."""
    rows = plain.rows[plain.rows[:, 1] >= LEAST]
    rows = rows[rows[:, 2] < TRAINED]
    sums = torch.zeros(TRAINED, encoder.shape.width, device=rows.device)
    for part in rows[rows[:, 1].argsort()].split(32):
        wave = plain.pool.cut(part[:, 0], min(int(part[0, 1]), MOST))
        sums.index_add_(0, part[:, 2], encoder.embed(wave))
    counts = torch.bincount(rows[:, 2], minlength=TRAINED)
    return sums / counts.clamp(min=1)[:, None], counts


def places(means: Tensor, counts: Tensor, axes: Tensor) -> Tensor:
    """Where voices lie, by their axes alone: [voices, width]."""
    where = axes.clone()
    where[:, -len(BASES) :] *= KINDS
    near = (torch.cdist(where, where).square() / (-2 * SPREAD**2)).exp()
    middle = means.mean(0)
    doubt = torch.diag(CHANCE / counts.clamp(min=1e-3))  # of who was never heard, nothing is known
    return middle + near @ torch.linalg.solve(near + doubt, means - middle)


def copies(plain: Plain, codec: Codec, count: int) -> tuple[Tensor, Tensor]:
    """Some speech as the codec passes it on, and whose it is."""
    drawn = [plain.draw(8, COPY * FRAME) for _ in range(0, count, 8)]
    waves = [passed_on(wave, codec, FEWEST) for wave, _ in drawn]
    return torch.cat(waves), torch.cat([voice for _, voice in drawn])


def mixed(
    speech: tuple[Tensor, Tensor], copied: tuple[Tensor, Tensor], count: int
) -> tuple[Tensor, Tensor]:
    """A batch of speech with so many copies behind it, all of one length."""
    (wave, voice), (waves, voices) = speech, copied
    pick = torch.randint(len(waves), (count,), device=waves.device)
    length = min(wave.shape[1], waves.shape[1])
    start = int(torch.randint(waves.shape[1] - length + 1, ()))
    return (
        torch.cat((wave[:, :length], waves[pick, start : start + length])),
        torch.cat((voice, voices[pick])),
    )


def losses(vector: Tensor, voice: Tensor, lies: Tensor) -> dict[str, Tensor]:
    cosine = F.normalize(vector, dim=-1) @ F.normalize(lies, dim=-1).T
    return {
        "off": (vector - lies[voice]).square().sum(1).mean(),
        "who": F.cross_entropy(SCALE * cosine, voice),
        "right": (cosine.argmax(-1) == voice).float().mean(),
    }


def filled(folder: Path, hours: float, device: torch.device) -> Plain:
    """All the speech that is there."""
    pool = Pool(folder, hours, device)
    while pool.refresh():
        pass
    return Plain(pool)


def run(given: argparse.Namespace) -> None:
    device = torch.device(given.device)
    torch.manual_seed(given.seed)
    plain, trainee = filled(given.speech, given.hours, device), Trainee().to(device)
    trainee.load_state_dict(states.load(given.begin)["speaker"])
    axes = torch.tensor([speaker.axes() for speaker in everyone()[:TRAINED]], device=device)
    lies = places(*mean_vectors(trainee.encoder, plain), axes)
    copied = copies(plain, frozen(given.codec, device), given.copies)
    learn(trainee.encoder, plain, copied, lies, given)
    states.save({"speaker": trainee.state_dict()}, given.out)


def learn(
    encoder: SpeakerEncoder,
    plain: Plain,
    copied: tuple[Tensor, Tensor],
    lies: Tensor,
    given: argparse.Namespace,
) -> None:
    steps = torch.optim.AdamW(encoder.parameters(), lr=given.rate, weight_decay=0.01)
    begun, step = time.monotonic(), 0
    while (over := (time.monotonic() - begun) / (60 * given.minutes)) < 1:
        steps.param_groups[0]["lr"] = given.rate * eased(step, 100, over)
        speech = plain.draw(given.batch * 2 // 3, crop(1.0, 4.0))
        wave, voice = mixed(speech, copied, given.batch // 3)
        told = losses(encoder.embed(worn(wave)), voice, lies)
        steps.zero_grad()
        (told["off"] + 0.3 * told["who"]).backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 20.0)
        steps.step()
        step += 1
        if step % given.every == 0:
            line = " ".join(f"{name} {value.item():.3f}" for name, value in told.items())
            print(f"{step} {line}", flush=True)


def main() -> None:
    parser = options(__doc__, True, rate=6e-4, batch=48, hours=9, every=50, seed=5)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--copies", type=int, default=900)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
