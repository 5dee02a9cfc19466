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
from training.codec import ALL_CODEBOOKS, Codec
from training.data.speakers import TRAINED, all_speakers
from training.data.speech_format import FRAME, RATE
from training.data.speech_pool import SpeechPool
from training.graph_steps import Metrics, values
from training.optimizers import rate_factor

LENGTH = 6.0  # norm of a vector
SCALE, MARGIN = 24.0, 0.15  # of the cosine classifier
MIN_CODEBOOKS = 4  # acoustic codebooks of a copy through the codec
AXES = len(all_speakers()[0].axes())


class SpeakerClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = SpeakerEncoder(model_config.speaker_config())
        self.who = nn.Parameter(torch.randn(TRAINED, model_config.WIDTH) * 0.05)
        self.axes = nn.Linear(model_config.WIDTH, AXES)

    def forward(self, wave: Tensor, speaker: Tensor, axes: Tensor) -> dict[str, Tensor]:
        vector = self.encoder.embed(wave)
        cosine = F.normalize(vector, dim=-1) @ F.normalize(self.who, dim=-1).T
        is_speaker = speaker[:, None] == torch.arange(TRAINED, device=speaker.device)
        return {
            "who": F.cross_entropy(SCALE * (cosine - MARGIN * is_speaker), speaker),
            "axes": F.mse_loss(self.axes(vector), axes),
            "length": (vector.norm(dim=-1) - LENGTH).square().mean(),
            "right": (cosine.argmax(-1) == speaker).float().mean(),
        }


ENCODER = "encoder."  # its weights in a state's "speaker"; what tells voices apart is beside it


def load_encoder(path: Path) -> SpeakerEncoder:
    """The encoder of a state."""
    known = states.load(path)["speaker"]
    encoder = SpeakerEncoder(model_config.speaker_config())
    encoder.load_state_dict(
        {n.removeprefix(ENCODER): v for n, v in known.items() if n.startswith(ENCODER)}
    )
    return encoder


def save_encoder(encoder: SpeakerEncoder, path: Path) -> None:
    """A state of the encoder alone."""
    states.save({"speaker": {ENCODER + n: v for n, v in encoder.state_dict().items()}}, path)


def augment(wave: Tensor) -> Tensor:
    """The same speech at another volume, with a little noise."""
    gain = 10 ** (torch.empty(len(wave), 1, device=wave.device).uniform_(-12, 6) / 20)
    noise = 10 ** torch.empty(len(wave), 1, device=wave.device).uniform_(-5, -2.4)
    return ((wave * gain) + noise * torch.randn_like(wave)).clamp(-1, 1)


class NeutralUtterances:
    """Utterances without a style, by length."""

    def __init__(self, pool: SpeechPool) -> None:
        self.pool = pool
        self._list()

    def grow(self) -> None:
        """Add some of the new speech."""
        if self.pool.refresh():
            self._list()

    def _list(self) -> None:
        kept = [segment for segment in self.pool.segments if segment.style == 0]
        table = [(segment.start, segment.stop - segment.start, segment.speaker) for segment in kept]
        self.rows = torch.tensor(table, device=self.pool.device)
        self.longest = max(segment.stop - segment.start for segment in kept)

    def draw(self, batch: int, length: int) -> tuple[Tensor, Tensor]:
        """Crops of utterances, shorter where none is so long, and their speakers."""
        length = min(length, self.longest)
        rows = self.rows[self.rows[:, 1] >= length]
        rows = rows[torch.randint(len(rows), (batch,), device=rows.device)]
        room = (rows[:, 1] - length).float()
        start = rows[:, 0] + (torch.rand(batch, device=rows.device) * room).long()
        return self.pool.cut(start, length), rows[:, 2]


@torch.no_grad()
def through_codec(wave: Tensor, codec: Codec, fewest: int = MIN_CODEBOOKS) -> Tensor:
    """Waves [B, samples] through a codec, each with a random number of codebooks."""
    depth = torch.randint(fewest, ALL_CODEBOOKS + 1, (len(wave),), device=wave.device)
    return codec(wave, depth).wave


def half_through_codec(wave: Tensor, codec: Codec) -> Tensor:
    """Waves [B, samples], every other one through the codec."""
    return torch.stack((through_codec(wave[::2], codec), wave[1::2]), 1).flatten(0, 1)


def load_frozen_codec(path: Path, device: torch.device) -> Codec:
    """The codec of a state, frozen."""
    codec = Codec().to(device).eval()
    codec.load_state_dict(states.load(path)["codec"])
    return codec


def codec_augmentation(path: Path | None, device: torch.device) -> Callable[[Tensor], Tensor]:
    """A function that passes half of a batch through this state's codec, if there is one."""
    if path is None:
        return lambda wave: wave
    return partial(half_through_codec, codec=load_frozen_codec(path, device))


def random_length(shortest: float, longest: float) -> int:
    """A random length in samples, in whole frames, between two lengths in seconds."""
    seconds = torch.empty(()).uniform_(shortest, longest).item()
    return round(seconds * RATE / FRAME) * FRAME


class Deadline:
    """How much of the minutes is over; they end by a point in time if there is one."""

    def __init__(self, minutes: float, until: float | None) -> None:
        self._begun = time.monotonic()
        self._seconds = 60 * minutes
        if until:
            self._seconds = min(self._seconds, until - time.time())

    def progress(self) -> float:
        """0 … 1, and 1 or more at the end."""
        return (time.monotonic() - self._begun) / self._seconds if self._seconds > 0 else 1.0


def fit(
    network: nn.Module,
    utterances: NeutralUtterances,
    args: argparse.Namespace,
    warm_up: int,
    largest_norm: float,
    losses: Callable[[], Metrics],
) -> None:
    """Follow the gradients of the "total" of `losses` until the time is over."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=args.rate, weight_decay=0.01)
    deadline, step = Deadline(args.minutes, args.until), 0
    while (over := deadline.progress()) < 1:
        optimizer.param_groups[0]["lr"] = args.rate * rate_factor(step, warm_up, over)
        found = losses()
        optimizer.zero_grad()
        found["total"].backward()
        nn.utils.clip_grad_norm_(network.parameters(), largest_norm)
        optimizer.step()
        step += 1
        if step % args.log_every == 0:
            print(f"{step} {utterances.pool.hours:.1f}h {values(found)}", flush=True)
            utterances.grow()


def run(args: argparse.Namespace) -> None:
    device = train_loop.set_up(args)
    pool = SpeechPool(args.speech, args.hours, device, args.until)
    pool.wait(args.wait_hours)
    utterances, classifier = NeutralUtterances(pool), SpeakerClassifier().to(device)
    augment_by_codec = codec_augmentation(args.codec, device)
    if args.init:
        known = states.load(args.init)["speaker"]
        classifier.load_state_dict(states.matching_weights(classifier, known))
    axes = torch.tensor([speaker.axes() for speaker in all_speakers()], device=device)

    def losses() -> Metrics:
        wave, speaker = utterances.draw(args.batch, random_length(0.9, 4.5))
        found = classifier(augment(augment_by_codec(wave)), speaker, axes[speaker])
        found["total"] = found["who"] + 2 * found["axes"] + 0.1 * found["length"]
        return found

    fit(classifier, utterances, args, 200, 5.0, losses)
    states.save({"speaker": classifier.state_dict()}, args.out)


def speaker_parser(about: str | None, trained: bool, **defaults: float) -> argparse.ArgumentParser:
    """Command line options; `trained` requires a speaker encoder and a codec."""
    parser = train_loop.base_parser(about, **defaults)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--init", type=Path, required=trained, help="weights to begin with")
    parser.add_argument("--codec", type=Path, required=trained, help="speech is heard through it")
    parser.add_argument("--batch", type=int)
    parser.set_defaults(**defaults)
    return parser


def main() -> None:
    defaults = dict(rate=2e-3, batch=128, hours=12, seed=2, minutes=3)
    run(speaker_parser(__doc__, False, **defaults).parse_args())


if __name__ == "__main__":
    main()
