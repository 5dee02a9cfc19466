"""Trains the codec's decoder alone on the codes of a trained codec: how codes sound.

    python -m training.train_decoder --speech DIR --codec codec.pt --state decoder.pt --minutes 15

The codes of all speech are computed once, so that a step is the decoder and its losses alone; a
talker can learn the codes meanwhile. The state that is saved is a codec's, with this decoder.
With `--people` half of every batch are people and moved voices, as the codec has learned them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from training import peers, train_loop
from training import state as states
from training.codec import Codec, synthesize
from training.data.speech_format import FRAME, IGNORED, PHONE_STEP, PHONES_A_FRAME
from training.data.speech_pool import SpeechPool, known_phones
from training.data.surroundings import moved, surrounded
from training.graph_steps import Metrics, Step
from training.losses.wave_losses import WaveLosses
from training.optimizers import make_optimizer, reset_optimizer
from training.train_codec import add_people_options, open_people

HIGHEST_RATE = 4e-4
WINDOW = 128  # frames that are encoded together, from silence on as a recording is
OFFSETS = (0, 480, 960, 1440)  # samples: where frames begin in the speech
CROP = 64  # frames that the decoder's first layers see
DECODED, CONTEXT = 17, 7  # frames that are decoded, and those of them that only give context
FROM_START = 8  # one step in so many decodes the start of a window, without context
ENCODED = 32  # windows encoded at once
OTHERS, REPLACED = 3_200, 64  # windows of other voices, and how many of them are new at every log
OTHERS_SHARE, PEOPLE_SHARE = 0.5, 0.6  # of a batch; of these windows, people


class CodeTape:
    """The codes of a pool's speech, in windows, with the samples where each begins."""

    def __init__(self, codec: Codec, pool: SpeechPool) -> None:
        self.codec, self.pool = codec, pool
        codebooks = len(codec.codebooks())
        self.codes = torch.zeros(0, WINDOW, codebooks, dtype=torch.int16, device=pool.device)
        self.starts = torch.zeros(0, dtype=torch.long, device=pool.device)
        self._done = 0  # samples

    def grow(self) -> None:
        """Encode the windows of new speech."""
        length = WINDOW * FRAME
        starts = [
            first + offset
            for first in range(self._done, self.pool.filled - length - max(OFFSETS), length)
            for offset in OFFSETS
        ]
        if starts:
            self._done = starts[-1] - OFFSETS[-1] + length
            new = torch.tensor(starts, device=self.pool.device)
            self.codes = torch.cat((self.codes, *map(self._encode, new.split(ENCODED))))
            self.starts = torch.cat((self.starts, new))

    @torch.no_grad()
    def _encode(self, starts: Tensor) -> Tensor:
        return self.codec.encoder.encode(self.pool.cut(starts, WINDOW * FRAME)).short()

    def draw(self, batch: int, from_start: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Codes [B, codebooks, CROP], and the waves [B, samples] and phones [B, n] of the frames
        that losses are about."""
        device = self.pool.device
        rows = torch.randint(len(self.starts), (batch,), device=device)
        highest = 1 if from_start else WINDOW - CROP + 1
        at = torch.randint(highest, (batch,), device=device)
        codes = self.codes[rows[:, None], at[:, None] + torch.arange(CROP, device=device)]
        first = at if from_start else at + CROP - DECODED + CONTEXT
        begin, frames = self.starts[rows] + first * FRAME, DECODED - CONTEXT
        steps = torch.arange(frames * PHONES_A_FRAME, device=device)
        phones = self.pool.phones[begin[:, None] // PHONE_STEP + steps]
        wave = self.pool.cut(begin, frames * FRAME)
        return codes.transpose(1, 2).long(), wave, known_phones(phones)


class OtherVoices:
    """Windows of people and of the teacher moved, with their codes; some are replaced by others."""

    def __init__(self, codec: Codec, pool: SpeechPool, people: SpeechPool, count: int) -> None:
        self.codec, self.pools = codec, (pool, people)
        device = pool.device
        self.waves = torch.zeros(count, WINDOW * FRAME, dtype=torch.int16, device=device)
        self.codes = torch.zeros(
            count, WINDOW, len(codec.codebooks()), dtype=torch.int16, device=device
        )
        for start in range(0, count, ENCODED):
            self._fill(torch.arange(start, min(start + ENCODED, count), device=device))

    def replace(self) -> None:
        for rows in torch.randint(len(self.waves), (REPLACED,)).split(ENCODED):
            self._fill(rows.to(self.waves.device))

    @torch.no_grad()
    def _fill(self, rows: Tensor) -> None:
        pool, people = self.pools
        met = round(PEOPLE_SHARE * len(rows))
        drawn = [
            each.crops(count, WINDOW)[0]
            for each, count in ((pool, len(rows) - met), (people, met))
            if count
        ]
        wave = surrounded(moved(torch.cat(drawn)))
        self.codes[rows] = self.codec.encoder.encode(wave).short()
        self.waves[rows] = (wave * 32767).round().to(torch.int16)

    def draw(self, batch: int, from_start: bool) -> tuple[Tensor, Tensor, Tensor]:
        """As `CodeTape.draw`, without phones."""
        device = self.waves.device
        rows = torch.randint(len(self.waves), (batch, 1), device=device)
        highest = 1 if from_start else WINDOW - CROP + 1
        at = torch.randint(highest, (batch, 1), device=device)
        codes = self.codes[rows, at + torch.arange(CROP, device=device)]
        first = at if from_start else at + CROP - DECODED + CONTEXT
        frames = DECODED - CONTEXT
        samples = first * FRAME + torch.arange(frames * FRAME, device=device)
        phones = torch.full((batch, frames * PHONES_A_FRAME), IGNORED, device=device)
        return codes.transpose(1, 2).long(), self.waves[rows, samples].float() / 32767, phones


class Trainer(train_loop.Trainer):
    OPTIMIZER = "decoder_optimizer"
    WARM_UP = 200
    END = 0.02

    def __init__(
        self, device: torch.device, highest: float = HIGHEST_RATE, compiled: bool = False
    ) -> None:
        super().__init__(device, highest)
        self.codec = Codec().to(device)
        self.codec.eval().requires_grad_(False).decoder.requires_grad_(True)
        self.losses = WaveLosses(device, self.learning_rate, learn_phones=False, compiled=compiled)
        self.optimizer = make_optimizer(self.codec.decoder, self.learning_rate)
        self.synthesize = torch.compile(synthesize) if compiled else synthesize

    def start_from(self, path: Path) -> None:
        """Take over a trained codec and the networks that learned beside it."""
        self.load_weights(states.load(path), restart=True)
        self.codec.copy_codebooks()

    def networks(self) -> list[nn.Module]:
        return [self.codec.decoder, self.losses.discriminators, self.losses.recognizer]

    def weights(self) -> dict[str, Any]:
        return {"codec": self.codec.state_dict(), **self.losses.state()}

    def load_weights(self, state: dict[str, Any], restart: bool) -> None:
        self.codec.load_state_dict(state["codec"])
        self.losses.resume(state, restart)

    def warm_up(self, advance: Step, batch: int) -> None:
        """Compile and capture the steps ahead of time, without learning from them."""
        frames = DECODED - CONTEXT
        real = torch.zeros(batch, frames * FRAME, device=self.device)
        phones = torch.zeros(batch, frames * PHONES_A_FRAME, dtype=torch.long, device=self.device)
        codes = torch.zeros(batch, len(self.codec.codebooks()), CROP, dtype=torch.long)
        self.learning_rate.zero_()
        for from_start in (False, True):
            advance(codes.to(self.device), real, phones, from_start=from_start)
        reset_optimizer(self.optimizer)
        self.losses.reset()

    def advance(
        self, codes: Tensor, real: Tensor, phones: Tensor, from_start: bool
    ) -> dict[str, Tensor]:
        """One step on codes [B, codebooks, CROP] with the waves and phones of `CodeTape.draw`."""
        heard = torch.arange(DECODED - CONTEXT if from_start else DECODED, device=self.device)
        window = heard if from_start else heard + CROP - DECODED
        latent = self.codec.decoder.quantizer(codes)
        made = self.synthesize(self.codec.decoder, latent, window)
        made = made if from_start else made[:, CONTEXT * FRAME :]
        losses, gradient = self.losses(made, real, phones, adversarial=True)
        self.optimizer.zero_grad()
        made.backward(gradient)
        losses["norm"] = self.descend(self.codec.decoder, 10.0)
        return {name: value.detach() for name, value in losses.items()}


def run(args: argparse.Namespace) -> None:
    torch.backends.cudnn.benchmark = True
    device = train_loop.set_up(args)
    trainer = Trainer(device, args.rate, args.compile)
    advance = train_loop.make_step(trainer, args, args.batch)
    if args.state.exists():
        trainer.resume(args.state, args.restart)
    else:
        train_loop.wait_for(args.codec, until=args.until)
        trainer.start_from(args.codec)
    if args.rank:  # the same weights, other speech
        torch.manual_seed(args.seed + args.rank + trainer.step)
    pool = SpeechPool(args.speech, args.hours, device, args.until)
    pool.wait(args.wait_hours, at_once=100)
    tape = CodeTape(trainer.codec, pool)
    tape.grow()
    people = open_people(args, device)
    others = OtherVoices(trainer.codec, pool, people, args.others) if people else None
    joined = peers.join(args, device, trainer.networks())

    def step() -> Metrics:
        from_start = trainer.step % FROM_START == 0
        count = round(OTHERS_SHARE * args.batch) if others else 0
        batch = tape.draw(args.batch - count, from_start)
        if others:
            theirs = others.draw(count, from_start)
            batch = tuple(torch.cat(both) for both in zip(batch, theirs, strict=True))  # type: ignore[assignment]
        return advance(*batch, from_start=from_start)

    def log(losses: Metrics) -> None:
        if pool.refresh(3):
            tape.grow()
        if others:
            others.replace()
        print(train_loop.log_line(trainer, pool.hours, losses), flush=True)

    train_loop.train(trainer, args, step, log, joined)
    if joined is not None:
        joined.leave()


def main() -> None:
    parser = train_loop.trainer_parser(__doc__, rate=HIGHEST_RATE, hours=30, seed=2)
    parser.add_argument("--codec", type=Path, help="state of a trained codec, waited for")
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--others", type=int, default=OTHERS, help="windows of people and moved")
    add_people_options(parser)
    peers.add_options(parser)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
