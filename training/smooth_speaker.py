"""Trains the speaker encoder to map every sentence to its voice's target vector.

A classifier scatters the sentences of unknown voices between known ones, and the midpoint of two
vectors is no voice. Here every voice has a target (`speaker_targets.py`), and the encoder learns to
find it from any sentence, with small changes of speed, a third of them copies through a codec.

    python -m training.smooth_speaker --speech DIR --begin speaker.pt --codec codec.pt \\
        --out smooth.pt --minutes 2
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.speaker import SpeakerEncoder
from training import state as states
from training import train_loop
from training.batching.encoding_batches import resampled
from training.batching.speaker_targets import faster, speaker_targets
from training.codec import Codec
from training.data.speakers import everyone
from training.data.speech_format import FRAME, RATE
from training.data.speech_pool import Pool
from training.train_speaker import (
    Countdown,
    Plain,
    SpeakerTrainee,
    augmented,
    crop,
    frozen,
    options,
    through_codec,
    wait_for,
)

RIDGE = 30.0  # of the least-squares fit
SPEED = 0.06  # largest relative change of speed
COPY = 48  # frames of a copy through the codec
FEWEST = 6  # codebooks of a copy


@torch.no_grad()
def settle(encoder: SpeakerEncoder, plain: Plain, axes: Tensor, sentences: int) -> None:
    """Set the last layer to the least-squares fit to the targets."""
    known, voices = heard(encoder, plain, sentences)
    middle, spread = known.mean(0), known.std(0) + 1e-6
    like = F.pad((known - middle) / spread, (0, 1), value=1.0)
    square = like.T @ like + RIDGE * torch.eye(like.shape[1], device=like.device)
    solved = torch.linalg.solve(square, like.T @ speaker_targets(axes[voices]))
    weight, bias = solved.split((len(middle), 1))
    encoder.fc.weight.copy_((weight / spread[:, None]).T[..., None])
    encoder.fc.bias.copy_(bias[0] - (middle / spread) @ weight)


def heard(encoder: SpeakerEncoder, plain: Plain, sentences: int) -> tuple[Tensor, Tensor]:
    """Inputs of the last layer for some sentences [sentences, 2 C], and their speakers."""
    given: list[Tensor] = []
    listening = encoder.fc.register_forward_pre_hook(lambda _, args: given.append(args[0][..., 0]))
    voices = []
    for _ in range(0, sentences, 32):
        wave, voice = plain.draw(32, 3 * RATE)
        encoder.embed(augmented(wave))
        voices.append(voice)
    listening.remove()
    return torch.cat(given), torch.cat(voices)


def copies(plain: Plain, codec: Codec, count: int) -> tuple[Tensor, Tensor]:
    """Some speech through the codec, and its speakers."""
    drawn = [plain.draw(8, COPY * FRAME) for _ in range(0, count, 8)]
    waves = [through_codec(wave, codec, FEWEST) for wave, _ in drawn]
    return torch.cat(waves), torch.cat([voice for _, voice in drawn])


def mixed(
    speech: tuple[Tensor, Tensor], copied: tuple[Tensor, Tensor], count: int
) -> tuple[Tensor, Tensor]:
    """A batch of speech followed by `count` copies, all of one length."""
    (wave, voice), (waves, voices) = speech, copied
    pick = torch.randint(len(waves), (count,), device=waves.device)
    length = min(wave.shape[1], waves.shape[1])
    start = int(torch.randint(waves.shape[1] - length + 1, ()))
    return (
        torch.cat((wave[:, :length], waves[pick, start : start + length])),
        torch.cat((voice, voices[pick])),
    )


def run(given: argparse.Namespace) -> None:
    device = train_loop.begun(given)
    pool = Pool(given.speech, given.hours, device)
    wait_for(pool, given.wait_hours)
    plain, trainee = Plain(pool), SpeakerTrainee().to(device)
    trainee.load_state_dict(states.load(given.begin)["speaker"])
    axes = torch.tensor([speaker.axes() for speaker in everyone()], device=device)
    copied = copies(plain, frozen(given.codec, device), given.copies)
    settle(trainee.encoder, plain, axes, given.settled)
    learn(trainee.encoder, plain, copied, axes, given)
    states.save({"speaker": trainee.state_dict()}, given.out)


def learn(
    encoder: SpeakerEncoder,
    plain: Plain,
    copied: tuple[Tensor, Tensor],
    axes: Tensor,
    given: argparse.Namespace,
) -> None:
    steps = torch.optim.AdamW(encoder.parameters(), lr=given.rate, weight_decay=0.01)
    countdown, step = Countdown(given.minutes, given.by), 0
    while (over := countdown.over()) < 1:
        steps.param_groups[0]["lr"] = given.rate * train_loop.rate_factor(step, 100, over)
        speech = plain.draw(given.batch * 2 // 3, crop(1.0, 4.0))
        loss = astray(encoder, *mixed(speech, copied, given.batch // 3), axes)
        steps.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 20.0)
        steps.step()
        step += 1
        if step % given.every == 0:
            print(f"{step} {plain.pool.hours:.1f}h off {loss.item():.3f}", flush=True)
            plain.grow()


def astray(encoder: SpeakerEncoder, wave: Tensor, voice: Tensor, axes: Tensor) -> Tensor:
    """The distance of the vectors of waves [B, samples] to the targets of their voices [B]."""
    speed = 1 + SPEED * (2 * torch.rand(()).item() - 1)
    wave = resampled(wave, round(wave.shape[1] / speed))
    off = encoder.embed(augmented(wave)) - speaker_targets(faster(axes[voice], speed))
    return off.square().sum(1).mean()


def main() -> None:
    defaults = dict(rate=6e-4, batch=192, hours=12, every=200, seed=5, minutes=2)
    parser = options(__doc__, True, **defaults)
    parser.add_argument("--copies", type=int, default=2400)
    parser.add_argument("--settled", type=int, default=3200, help="sentences of the first fit")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
