"""Trains the codec's decoder alone on the codes of a trained codec: how codes sound.

    python -m training.train_decoder --speech DIR --codec codec.pt --state decoder.pt --minutes 15

The codes of all speech are computed once, so that a step is the decoder and its losses alone; a
talker can learn the codes meanwhile. The state that is saved is a codec's, with this decoder.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from training import state as states
from training import train_loop
from training.codec import Codec, synthesize
from training.data.speech_format import FRAME, PHONE_STEP, PHONES_A_FRAME
from training.data.speech_pool import Pool
from training.graph_steps import GraphedStep, Metrics, Step
from training.losses.wave_losses import WaveLosses, forget, optimizer

RATE_AT_START, RATE_AT_END = 4e-4, 0.02
WARM_UP = 200  # steps
WINDOW = 128  # frames that are encoded together, from silence on as a recording is
OFFSETS = (0, 480, 960, 1440)  # samples: where frames begin in the speech
CROP = 64  # frames that the decoder's first layers see
HEARD, WARM = 17, 7  # frames that are decoded, and those of them that only give context
FROM_START = 8  # one step in so many decodes the start of a window, without context
ENCODED = 32  # windows encoded at once


class CodeTape:
    """The codes of a pool's speech, in windows, with the samples where each begins."""

    def __init__(self, codec: Codec, pool: Pool) -> None:
        self.codec, self.pool = codec, pool
        books = len(codec.books())
        self.codes = torch.zeros(0, WINDOW, books, dtype=torch.int16, device=pool.device)
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
        first = at if from_start else at + CROP - HEARD + WARM
        begin, frames = self.starts[rows] + first * FRAME, HEARD - WARM
        steps = torch.arange(frames * PHONES_A_FRAME, device=device)
        phones = self.pool.phones[begin[:, None] // PHONE_STEP + steps]
        return codes.transpose(1, 2).long(), self.pool.cut(begin, frames * FRAME), phones.long()


class Trainer:
    def __init__(
        self, device: torch.device, highest: float = RATE_AT_START, compiled: bool = False
    ) -> None:
        self.device, self.highest = device, highest
        self.codec = Codec().to(device)
        self.codec.eval().requires_grad_(False).decoder.requires_grad_(True)
        self.now = torch.tensor(highest, device=device)  # the learning rate
        self.losses = WaveLosses(device, self.now, learn_phones=False, compiled=compiled)
        self.decoder_steps = optimizer(self.codec.decoder, self.now)
        self.synthesize = torch.compile(synthesize) if compiled else synthesize
        self.step, self.seconds = 0, 0.0

    def begin(self, path: Path) -> None:
        """Take over a trained codec and the networks that learned beside it."""
        state = states.load(path)
        self.codec.load_state_dict(state["codec"])
        self.codec.share_tables()
        self.losses.resume(state, again=True)

    def state(self) -> dict[str, object]:
        return {
            "codec": self.codec.state_dict(),
            "decoder_steps": self.decoder_steps.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "chance": states.chance(self.device),
            **self.losses.state(),
        }

    def resume(self, path: Path, again: bool) -> None:
        """Continue exactly, or start a new schedule from the weights alone (`again`)."""
        state = states.load(path)
        again = again or "decoder_steps" not in state
        self.codec.load_state_dict(state["codec"])
        self.losses.resume(state, again)
        if again:
            return
        self.decoder_steps.load_state_dict(state["decoder_steps"])
        self.decoder_steps.param_groups[0]["lr"] = self.now
        self.step, self.seconds = state["step"], state["seconds"]
        states.set_chance(state["chance"])

    def rate(self, progress: float) -> None:
        """Cosine decay after a short warm-up."""
        factor = train_loop.rate_factor(self.step, WARM_UP, progress, RATE_AT_END)
        self.now.fill_(self.highest * factor)

    def warm_up(self, advance: Step, batch: int) -> None:
        """Compile and capture the steps ahead of time, without learning from them."""
        frames = HEARD - WARM
        real = torch.zeros(batch, frames * FRAME, device=self.device)
        phones = torch.zeros(batch, frames * PHONES_A_FRAME, dtype=torch.long, device=self.device)
        codes = torch.zeros(batch, len(self.codec.books()), CROP, dtype=torch.long)
        self.now.zero_()
        for from_start in (False, True):
            advance(codes.to(self.device), real, phones, from_start=from_start)
        forget(self.decoder_steps)
        self.losses.forget()

    def advance(
        self, codes: Tensor, real: Tensor, phones: Tensor, from_start: bool
    ) -> dict[str, Tensor]:
        """One step on codes [B, codebooks, CROP] with the waves and phones of `CodeTape.draw`."""
        heard = torch.arange(HEARD - WARM if from_start else HEARD, device=self.device)
        window = heard if from_start else heard + CROP - HEARD
        latent = self.codec.decoder.quantizer(codes)
        made = self.synthesize(self.codec.decoder, latent, window)
        made = made if from_start else made[:, WARM * FRAME :]
        losses, gradient = self.losses(made, real, phones, judged=True)
        self.decoder_steps.zero_grad()
        made.backward(gradient)
        losses["norm"] = nn.utils.clip_grad_norm_(self.codec.decoder.parameters(), 10.0)
        self.decoder_steps.step()
        return {name: value.detach() for name, value in losses.items()}


def run(given: argparse.Namespace) -> None:
    torch.backends.cudnn.benchmark = True
    device = train_loop.begun(given)
    trainer = Trainer(device, given.rate, given.compile)
    advance = GraphedStep(trainer.advance) if given.record else trainer.advance
    if given.record and train_loop.starts_anew(given):
        trainer.warm_up(advance, given.batch)
        print("warm", flush=True)
    if given.state.exists():
        trainer.resume(given.state, given.again)
    else:
        while not given.codec.exists():
            time.sleep(0.5)
        trainer.begin(given.codec)
    pool = Pool(given.speech, given.hours, device)
    tape = CodeTape(trainer.codec, pool)
    while pool.refresh(100) == 0 or pool.hours < given.wait_hours:
        time.sleep(1)
    tape.grow()

    def step() -> Metrics:
        from_start = trainer.step % FROM_START == 0
        return advance(*tape.draw(given.batch, from_start), from_start=from_start)

    def tell(losses: Metrics) -> None:
        if pool.refresh(3):
            tape.grow()
        print(train_loop.line(trainer, pool.hours, losses), flush=True)

    train_loop.follow(trainer, given, step, tell, trainer.state)


def main() -> None:
    parser = train_loop.options(__doc__, hours=30, seed=2)
    parser.add_argument("--codec", type=Path, help="state of a trained codec, waited for")
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--rate", type=float, default=RATE_AT_START, help="of learning, at most")
    parser.add_argument("--compile", action="store_true", help="the decoder, by torch.compile")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
