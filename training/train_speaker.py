"""Trains the speaker encoder to classify the synthetic voices and to predict their axes linearly.

The linear prediction makes the space smooth: the midpoint of two vectors is about half way between
the voices. All vectors get about the norm of the talker's embeddings.

    python -m training.train_speaker --speech DIR --out speaker.pt --minutes 3

With --codec half of the speech passes through a codec, so that a codec does not change its voice.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.speaker import SpeakerEncoder
from training import model_config, train_loop
from training import state as states
from training.codec import ALL, Codec
from training.data.speakers import TRAINED, everyone
from training.data.speech_format import FRAME, RATE
from training.data.speech_pool import Pool

LENGTH = 6.0  # norm of a vector
SCALE, MARGIN = 24.0, 0.15  # of the cosine classifier
FEWEST = 4  # acoustic codebooks of a copy through the codec
AXES = len(everyone()[0].axes())


class SpeakerTrainee(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = SpeakerEncoder(model_config.speaker_config())
        self.who = nn.Parameter(torch.randn(TRAINED, model_config.WIDTH) * 0.05)
        self.axes = nn.Linear(model_config.WIDTH, AXES)

    def forward(self, wave: Tensor, speaker: Tensor, axes: Tensor) -> dict[str, Tensor]:
        vector = self.encoder.embed(wave)
        cosine = F.normalize(vector, dim=-1) @ F.normalize(self.who, dim=-1).T
        own = speaker[:, None] == torch.arange(TRAINED, device=speaker.device)
        return {
            "who": F.cross_entropy(SCALE * (cosine - MARGIN * own), speaker),
            "axes": F.mse_loss(self.axes(vector), axes),
            "length": (vector.norm(dim=-1) - LENGTH).square().mean(),
            "right": (cosine.argmax(-1) == speaker).float().mean(),
        }


def augmented(wave: Tensor) -> Tensor:
    """The same speech at another volume, with a little noise."""
    gain = 10 ** (torch.empty(len(wave), 1, device=wave.device).uniform_(-12, 6) / 20)
    noise = 10 ** torch.empty(len(wave), 1, device=wave.device).uniform_(-5, -2.4)
    return ((wave * gain) + noise * torch.randn_like(wave)).clamp(-1, 1)


class Plain:
    """Utterances without a style, by length."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._list()

    def grow(self) -> None:
        """Add some of the new speech."""
        if self.pool.refresh():
            self._list()

    def _list(self) -> None:
        kept = [spot for spot in self.pool.spots if spot.style == 0]
        table = [(spot.start, spot.stop - spot.start, spot.speaker) for spot in kept]
        self.rows = torch.tensor(table, device=self.pool.device)
        self.longest = max(spot.stop - spot.start for spot in kept)

    def draw(self, batch: int, length: int) -> tuple[Tensor, Tensor]:
        """Crops of utterances, shorter where none is so long, and their speakers."""
        length = min(length, self.longest)
        rows = self.rows[self.rows[:, 1] >= length]
        rows = rows[torch.randint(len(rows), (batch,), device=rows.device)]
        room = (rows[:, 1] - length).float()
        start = rows[:, 0] + (torch.rand(batch, device=rows.device) * room).long()
        return self.pool.cut(start, length), rows[:, 2]


@torch.no_grad()
def through_codec(wave: Tensor, codec: Codec, fewest: int = FEWEST) -> Tensor:
    """Waves [B, samples] through a codec, each with a random number of codebooks."""
    depth = torch.randint(fewest, ALL + 1, (len(wave),), device=wave.device)
    return codec(wave, depth).wave


def copied(wave: Tensor, codec: Codec) -> Tensor:
    """Waves [B, samples], every other one through the codec."""
    return torch.stack((through_codec(wave[::2], codec), wave[1::2]), 1).flatten(0, 1)


def frozen(path: Path, device: torch.device) -> Codec:
    """The codec of a state, frozen."""
    codec = Codec().to(device).eval()
    codec.load_state_dict(states.load(path)["codec"])
    return codec


def copier(path: Path | None, device: torch.device) -> Callable[[Tensor], Tensor]:
    """A function that passes half of a batch through this state's codec, if there is one."""
    return partial(copied, codec=frozen(path, device)) if path else lambda wave: wave


def crop(shortest: float, longest: float) -> int:
    """A random length in samples, in whole frames, between two lengths in seconds."""
    seconds = torch.empty(()).uniform_(shortest, longest).item()
    return round(seconds * RATE / FRAME) * FRAME


class Countdown:
    """How much of the minutes is over; they end by a point in time if there is one."""

    def __init__(self, minutes: float, by: float | None) -> None:
        self._begun = time.monotonic()
        self._seconds = 60 * minutes
        if by:
            self._seconds = min(self._seconds, by - time.time())

    def over(self) -> float:
        """0 … 1, and 1 or more at the end."""
        return (time.monotonic() - self._begun) / self._seconds if self._seconds > 0 else 1.0


def wait_for(pool: Pool, hours: float) -> None:
    """Until there is so much speech, and at least some."""
    while pool.hours < hours or not pool.spots:
        if not pool.refresh():
            time.sleep(1)


def run(given: argparse.Namespace) -> None:
    device = train_loop.begun(given)
    pool = Pool(given.speech, given.hours, device)
    wait_for(pool, given.wait_hours)
    plain, trainee = Plain(pool), SpeakerTrainee().to(device)
    copy = copier(given.codec, device)
    if given.begin:
        known = states.load(given.begin)["speaker"]
        trainee.load_state_dict(states.fitting(trainee, known))
    axes = torch.tensor([speaker.axes() for speaker in everyone()], device=device)
    steps = torch.optim.AdamW(trainee.parameters(), lr=given.rate, weight_decay=0.01)
    countdown, step = Countdown(given.minutes, given.by), 0
    while (over := countdown.over()) < 1:
        steps.param_groups[0]["lr"] = given.rate * train_loop.rate_factor(step, 200, over)
        wave, speaker = plain.draw(given.batch, crop(0.9, 4.5))
        losses = trainee(augmented(copy(wave)), speaker, axes[speaker])
        loss = losses["who"] + 2 * losses["axes"] + 0.1 * losses["length"]
        steps.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trainee.parameters(), 5.0)
        steps.step()
        step += 1
        if step % given.every == 0:
            told = " ".join(f"{name} {value.item():.3f}" for name, value in losses.items())
            print(f"{step} {pool.hours:.1f}h {told}", flush=True)
            plain.grow()
    states.save({"speaker": trainee.state_dict()}, given.out)


def options(about: str | None, again: bool, **defaults: float) -> argparse.ArgumentParser:
    """Command line options of speaker encoder training; `again` requires a trained one."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--speech", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--begin", type=Path, required=again, help="weights to begin with")
    parser.add_argument("--codec", type=Path, required=again, help="speech is heard through it")
    parser.add_argument("--rate", type=float, help="of learning, at most")
    for name in ("--batch", "--every", "--seed"):
        parser.add_argument(name, type=int)
    for name in ("--hours", "--minutes", "--wait-hours"):
        parser.add_argument(name, type=float)
    parser.add_argument("--by", type=float, help="end by this time, in seconds since 1970")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.set_defaults(wait_hours=0.0, **defaults)
    return parser


def main() -> None:
    defaults = dict(rate=2e-3, batch=128, hours=12, every=200, seed=2, minutes=3)
    run(options(__doc__, False, **defaults).parse_args())


if __name__ == "__main__":
    main()
