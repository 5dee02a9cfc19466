"""Trains the codec for a number of minutes: encoder, codebooks and decoder together.

    python -m training.train_codec --speech DIR --state codec.pt --minutes 5

With `--restart` it goes on from the weights of a saved codec. Codes are settled here;
`training.train_decoder` then goes on with their sound.

With `--people` half of every batch are recorded people, or the teacher moved in pitch and vocal
tract, through rooms, noise and microphones. With `--keep CODEC` the teacher's speech stays about
where that codec had it before quantisation, and the first codebooks stay as they are, so that a
talker of its codes need not begin again. With `--settle SHARE` the codes are settled after that
share of the time, and saved for talkers that wait for them; then the decoder alone goes on.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training import peers, train_loop
from training import state as states
from training.codec import ALL_CODEBOOKS, UNQUANTISED, Codec
from training.data.speech_format import FRAME, IGNORED, PHONES_A_FRAME
from training.data.speech_pool import SpeechPool
from training.data.surroundings import moved, surrounded
from training.graph_steps import Metrics, Step
from training.losses.wave_losses import WaveLosses
from training.optimizers import Optimizers, make_optimizer, rate_factor

HIGHEST_RATE = 5e-4
ADVERSARIAL_FROM = 0.05  # of the time: discriminators
CROP = 40  # frames: encoded and decoded from the first on, as an utterance is
# Shares of the rows that are not quantised; fewest with discriminators.
UNQUANTISED_AT_START, UNQUANTISED_AT_END = 0.25, 0.05
COMMITMENT = 0.1  # weight of the quantizer's loss
KEPT = 300.0  # weight of what the kept rows' latents are off, beside their quantisation's error
KEPT_BOOKS = 7  # the codebooks that do not learn beside a codec that is kept
KEPT_SHARE, PEOPLE_SHARE = 0.42, 0.4  # of a mixed batch: the teacher as it is, people; else moved
SETTLED = 0.005  # of the time, until all processes have the codes that are settled


class Trainer(train_loop.Trainer):
    OPTIMIZER = "codec_optimizer"
    WARM_UP = 300
    END = 0.02

    def __init__(
        self,
        device: torch.device,
        highest: float = HIGHEST_RATE,
        compiled: bool = False,
        keep: Path | None = None,
        settle: float = 1.0,
    ) -> None:
        super().__init__(device, highest)
        self.settle, self.encoder_rate = settle, torch.tensor(highest, device=device)
        self.codec = Codec().to(device)
        self.kept: Codec | None = None
        if keep:
            self.kept = Codec().to(device).eval().requires_grad_(False)
            self.kept.load_state_dict(states.load(keep)["codec"])
            self.codec.fixed = KEPT_BOOKS
        if compiled:
            self.codec.compile_networks()
        self.unquantised = torch.tensor(UNQUANTISED_AT_START, device=device)
        self.losses = WaveLosses(device, self.learning_rate, learn_phones=True, compiled=compiled)
        codes = [*self.codec.encoder.parameters(), *self.codec.phone_head.parameters()]
        self.optimizer: Optimizers = Optimizers(
            make_optimizer(self.codec.decoder, self.learning_rate),
            make_optimizer(codes, self.encoder_rate),
        )

    def networks(self) -> list[nn.Module]:
        return [self.codec, self.losses.discriminators, self.losses.recognizer]

    def weights(self) -> dict[str, Any]:
        return {"codec": self.codec.state_dict(), **self.losses.state()}

    def load_weights(self, state: dict[str, Any], restart: bool) -> None:
        self.losses.resume(state, restart)
        self.codec.load_state_dict(state["codec"])

    def resume(self, path: Path, restart: bool) -> None:
        super().resume(path, restart)
        self.optimizer.param_groups[1]["lr"] = self.encoder_rate

    def set_learning_rate(self, progress: float) -> None:
        """Also settle the codes, and quantise ever more rows."""
        super().set_learning_rate(progress)
        over, learning = min(1.0, progress / self.settle), progress < self.settle
        rate = self.highest * rate_factor(self.step, self.WARM_UP, over, self.END)
        self.encoder_rate.fill_(rate * learning)
        self.codec.learning.fill_(learning)
        fall = (UNQUANTISED_AT_START - UNQUANTISED_AT_END) * min(1.0, progress)
        self.unquantised.fill_(UNQUANTISED_AT_START - fall)

    def warm_up(self, advance: Step, batch: int) -> None:
        """Compile and capture the steps ahead of time, without learning from them."""
        before = {name: value.clone() for name, value in self.codec.state_dict().items()}
        real = 0.1 * torch.randn(batch, CROP * FRAME, device=self.device)
        phones = torch.zeros(batch, CROP, PHONES_A_FRAME, dtype=torch.long, device=self.device)
        self.learning_rate.zero_()
        self.encoder_rate.zero_()
        for adversarial in (False, True):
            advance(real, phones, adversarial=adversarial)
        self.codec.load_state_dict(before)  # codebooks learn at any rate
        self.optimizer.reset()
        self.losses.reset()

    def depth(self, batch: int) -> Tensor:
        """Random depths: unquantised rows, rows with all acoustic codebooks, and with some."""
        some = torch.randint(1, ALL_CODEBOOKS + 1, (batch,), device=self.device)
        chance = torch.rand(batch, device=self.device)
        whole = self.unquantised + 0.8 * (1 - self.unquantised)
        depth = torch.where(chance < whole, ALL_CODEBOOKS, some)
        return torch.where(chance < self.unquantised, UNQUANTISED, depth)

    def advance(self, real: Tensor, phones: Tensor, adversarial: bool) -> dict[str, Tensor]:
        """One step on waves [B, samples] with phones [B, frames, 4]."""
        coded = self.codec(real, self.depth(len(real)))
        losses, gradient = self.losses(coded.wave, real, phones.flatten(1), adversarial)
        losses["commitment"] = coded.commitment
        losses["phones"] = F.cross_entropy(coded.phones.flatten(0, 2), phones.flatten())
        coding = COMMITMENT * losses["commitment"] + losses["phones"]
        if self.kept is not None:
            rows = kept_rows(len(real))
            with torch.no_grad():
                before = self.kept.targets(self.kept.encoder.latents(real[:rows]))
            off = (coded.targets[:rows] - before).square().mean()
            losses["kept"] = off / before.var()
            coding = coding + KEPT * losses["kept"]
        self.optimizer.zero_grad()
        torch.autograd.backward([coded.wave, coding], [gradient, None])
        losses["norm"] = self.descend(self.codec, 10.0)
        return {name: value.detach() for name, value in losses.items()}


def kept_rows(batch: int) -> int:
    """The first rows of a batch, which are the teacher's speech as it is."""
    return max(1, round(KEPT_SHARE * batch))


def open_people(args: argparse.Namespace, device: torch.device) -> SpeechPool | None:
    """All recordings of people, waited for, if there are to be any."""
    if not args.people:
        return None
    train_loop.wait_for(args.people / "done", until=args.until)
    people = SpeechPool(args.people, args.people_hours, device, args.until)
    while people.refresh():
        pass
    return people


def mixed(pool: SpeechPool, people: SpeechPool, batch: int) -> tuple[Tensor, Tensor]:
    """The teacher as it is, the teacher moved to other voices, and people: waves and phones."""
    kept = kept_rows(batch)
    met = max(1, round(PEOPLE_SHARE * batch))
    wave, phones = pool.crops(batch - met, CROP)
    theirs, unknown = people.crops(met, CROP)
    others = moved(torch.cat((wave[kept:], theirs)))
    phones = torch.cat((phones[:kept], torch.full_like(phones[kept:], IGNORED), unknown))
    return torch.cat((wave[:kept], surrounded(others))), phones


def run(args: argparse.Namespace) -> None:
    torch.backends.cudnn.benchmark = True
    device = train_loop.set_up(args)
    trainer = Trainer(device, args.rate, args.compile, args.keep, args.settle)
    advance = train_loop.make_step(trainer, args, args.batch)
    if args.state.exists():
        trainer.resume(args.state, args.restart)
    if args.rank:  # the same weights, other speech
        torch.manual_seed(args.seed + args.rank + trainer.step)
    pool = SpeechPool(args.speech, args.hours, device, args.until)
    pool.wait(args.wait_hours)
    people = open_people(args, device)
    # Only now: what watches over the others' messages would disturb a capture.
    others = peers.join(args, device, trainer.networks())

    def step() -> Metrics:
        over = train_loop.progress(trainer, args)
        adversarial = over > args.adversarial_from
        if args.settled and not args.rank and over >= args.settle + SETTLED:
            states.save({"codec": trainer.codec.state_dict()}, args.settled)
            args.settled = None
        batch = mixed(pool, people, args.batch) if people else pool.crops(args.batch, CROP)
        return advance(*batch, adversarial=adversarial)

    def log(losses: Metrics) -> None:
        pool.refresh(3)
        print(train_loop.log_line(trainer, pool.hours, losses), flush=True)

    train_loop.train(trainer, args, step, log, others)
    if others is not None:
        others.leave()


def add_people_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--people", type=Path, help="shards of recorded people, waited for")
    parser.add_argument("--people-hours", type=float, default=12, help="of them, at most")


def main() -> None:
    parser = train_loop.trainer_parser(__doc__, rate=HIGHEST_RATE, hours=60, seed=1)
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument(
        "--adversarial-from", type=float, default=ADVERSARIAL_FROM, help="share of the time"
    )
    parser.add_argument("--keep", type=Path, help="a codec whose codes of the teacher stay")
    parser.add_argument("--settle", type=float, default=1.0, help="share of the time, for codes")
    parser.add_argument("--settled", type=Path, help="where they are saved then")
    add_people_options(parser)
    peers.add_options(parser)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
