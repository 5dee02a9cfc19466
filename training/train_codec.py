"""Trains the codec for a number of minutes: encoder, codebooks and decoder together.

    python -m training.train_codec --speech DIR --state codec.pt --minutes 5

With `--again` it goes on from the weights of a saved codec, which may be smaller. Codes are settled
here; `training.train_decoder` then goes on with their sound.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training import peers, train_loop
from training import state as states
from training.codec import ALL, UNQUANTISED, Codec
from training.data.speech_format import FRAME, PHONES_A_FRAME
from training.data.speech_pool import Pool
from training.graph_steps import GraphedStep, Metrics, Step
from training.growth import grown
from training.losses.wave_losses import WaveLosses, forget, optimizer

RATE_AT_START, RATE_AT_END = 5e-4, 0.02
WARM_UP = 300  # steps
JUDGED_FROM = 0.05  # of the time: discriminators
CROP = 40  # frames: encoded and decoded from the first on, as an utterance is
FREE_AT_START, FREE_AT_END = 0.25, 0.05  # of the rows are not quantised; fewest with discriminators
COMMITMENT = 0.1  # weight of the quantizer's loss


class Trainer:
    def __init__(
        self, device: torch.device, highest: float = RATE_AT_START, compiled: bool = False
    ) -> None:
        self.device, self.highest = device, highest
        self.codec = Codec().to(device)
        if compiled:
            self.codec.compile_networks()
        self.now = torch.tensor(highest, device=device)  # the learning rate
        self.free = torch.tensor(FREE_AT_START, device=device)
        self.losses = WaveLosses(device, self.now, learn_phones=True, compiled=compiled)
        self.codec_steps = optimizer(self.codec, self.now)
        self.step, self.seconds = 0, 0.0

    def networks(self) -> list[nn.Module]:
        return [self.codec, self.losses.discriminators, self.losses.recognizer]

    def state(self) -> dict[str, object]:
        return {
            "codec": self.codec.state_dict(),
            "codec_steps": self.codec_steps.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "chance": states.chance(self.device),
            **self.losses.state(),
        }

    def resume(self, path: Path, again: bool) -> None:
        """Continue exactly, or start a new schedule from the weights, a smaller codec's too
        (`again`)."""
        state = states.load(path)
        again = again or "codec_steps" not in state
        self.losses.resume(state, again)
        if again:
            self.codec.load_state_dict(grown(self.codec, state["codec"]))
            return
        self.codec.load_state_dict(state["codec"])
        self.codec_steps.load_state_dict(state["codec_steps"])
        self.codec_steps.param_groups[0]["lr"] = self.now
        self.step, self.seconds = state["step"], state["seconds"]
        states.set_chance(state["chance"])

    def rate(self, progress: float) -> None:
        """Cosine decay after a short warm-up; quantise ever more rows."""
        factor = train_loop.rate_factor(self.step, WARM_UP, progress, RATE_AT_END)
        self.now.fill_(self.highest * factor)
        self.free.fill_(FREE_AT_START + (FREE_AT_END - FREE_AT_START) * min(1.0, progress))

    def warm_up(self, advance: Step, batch: int) -> None:
        """Compile and capture the steps ahead of time, without learning from them."""
        before = {name: value.clone() for name, value in self.codec.state_dict().items()}
        real = 0.1 * torch.randn(batch, CROP * FRAME, device=self.device)
        phones = torch.zeros(batch, CROP, PHONES_A_FRAME, dtype=torch.long, device=self.device)
        self.now.zero_()
        for judged in (False, True):
            advance(real, phones, judged=judged)
        self.codec.load_state_dict(before)  # codebooks learn at any rate
        forget(self.codec_steps)
        self.losses.forget()

    def depth(self, batch: int) -> Tensor:
        """Random depths: unquantised rows, rows with all acoustic codebooks, and with some."""
        some = torch.randint(1, ALL + 1, (batch,), device=self.device)
        chance = torch.rand(batch, device=self.device)
        all_ = self.free + 0.8 * (1 - self.free)
        return torch.where(chance < self.free, UNQUANTISED, torch.where(chance < all_, ALL, some))

    def advance(self, real: Tensor, phones: Tensor, judged: bool) -> dict[str, Tensor]:
        """One step on waves [B, samples] with phones [B, frames, 4]."""
        coded = self.codec(real, self.depth(len(real)))
        losses, gradient = self.losses(coded.wave, real, phones.flatten(1), judged)
        losses["commitment"] = coded.commitment
        losses["phones"] = F.cross_entropy(coded.phones.flatten(0, 2), phones.flatten())
        coding = COMMITMENT * losses["commitment"] + losses["phones"]
        self.codec_steps.zero_grad()
        torch.autograd.backward([coded.wave, coding], [gradient, None])
        losses["norm"] = nn.utils.clip_grad_norm_(self.codec.parameters(), 10.0)
        self.codec_steps.step()
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
    if given.rank:  # the same weights, other speech
        torch.manual_seed(given.seed + given.rank + trainer.step)
    pool = Pool(given.speech, given.hours, device)
    while pool.refresh() == 0 or pool.hours < given.wait_hours:
        time.sleep(1)
    # Only now: what watches over the others' messages would disturb a capture.
    others = peers.among(given, device, trainer.networks())

    def step() -> Metrics:
        judged = train_loop.progress(trainer, given) > given.judged_from
        return advance(*pool.crops(given.batch, CROP), judged=judged)

    def tell(losses: Metrics) -> None:
        pool.refresh(3)
        print(train_loop.line(trainer, pool.hours, losses), flush=True)

    train_loop.follow(trainer, given, step, tell, trainer.state, others)
    if others is not None:
        others.leave()


def main() -> None:
    parser = train_loop.options(__doc__, hours=60, seed=1)
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument("--rate", type=float, default=RATE_AT_START, help="of learning, at most")
    parser.add_argument("--judged-from", type=float, default=JUDGED_FROM, help="share of the time")
    parser.add_argument("--compile", action="store_true", help="the networks, by torch.compile")
    peers.add_options(parser)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
