"""Trains the codec for a number of minutes, from scratch or from a saved state.

python -m training.train_codec --speech DIR --state codec.pt --minutes 15

With --decoder-only the codes stay what they are, so that a talker can learn them meanwhile. Half
of the speech is then heard in two halves, as a clone follows a reference that was heard apart.
With --codes and --width a larger codec goes on from a smaller one's weights (`--again`).
With --speaker a voice counts as well: what is made is heard by that speaker encoder.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training import model_config, train_loop
from training import state as states
from training.codec import ALL, UNQUANTISED, Codec, SpectralLoss, grown
from training.data.speech_pool import Pool
from training.data.synthesize_corpus import FRAME
from training.graph_steps import Recorded, Told
from training.losses.discriminators import Judges, fooling_loss, judge_loss
from training.losses.phone_recognizer import Listener, heard, missed
from training.losses.speaker_loss import Ear

RATE_AT_START = 5e-4
WARM_UP = 300  # steps
JUDGED_FROM = 0.72  # of the time
CROP = 64  # frames
FREE_AT_START, FREE_AT_END = 0.25, 0.05  # of the rows are not quantised; fewest with discriminators
HEARD = 21  # frames of a crop that are decoded
HEARD_OF_VOICES = 41  # the same with a speaker loss, which needs longer audio
WARM = 5  # of them are left out of losses, since the convolutions lack context there
BEGINS = 8  # one step in this many uses the starts of utterances, where there is no context
# Weights of the codec's losses; recognizer and discriminators have their own.
COUNTS = {
    "spectral": 15.0,
    "commitment": 0.1,
    "phones": 1.0,
    "heard": 1.0,
    "missed": 4.0,
    "strange": 2.0,
    "mistaken": 0.2,
    "score": 1.0,
    "features": 1.0,
}


@dataclass(frozen=True)
class Shown:
    """Decoded frames: real and generated waves [B, samples], phones [B, n]."""

    real: Tensor
    made: Tensor
    said: Tensor


class Trainer:
    def __init__(
        self,
        device: torch.device,
        decoder_only: bool = False,
        ear: Ear | None = None,
        highest: float = RATE_AT_START,
        codec: Codec | None = None,
    ) -> None:
        self.device, self.decoder_only, self.ear, self.highest = device, decoder_only, ear, highest
        self.codec, self.judges = (codec or Codec()).to(device), Judges().to(device)
        if decoder_only:
            self.codec.eval().requires_grad_(False).decoder.requires_grad_(True)
        self.spectral, self.listener = SpectralLoss(device), Listener().to(device)
        cuda = device.type == "cuda"
        self.now = torch.tensor(highest, device=device)  # the learning rate
        self.free = torch.tensor(FREE_AT_START, device=device)
        self.codec_steps, self.judge_steps, self.listener_steps = (
            torch.optim.AdamW(
                network.parameters(),
                lr=self.now,
                betas=(0.8, 0.99),
                fused=cuda,
                capturable=cuda,
            )
            for network in (self.codec, self.judges, self.listener)
        )
        self.step, self.seconds = 0, 0.0

    def state(self) -> dict[str, object]:
        return {
            "codec": self.codec.state_dict(),
            "judges": self.judges.state_dict(),
            "listener": self.listener.state_dict(),
            "codec_steps": self.codec_steps.state_dict(),
            "judge_steps": self.judge_steps.state_dict(),
            "listener_steps": self.listener_steps.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "chance": states.chance(self.device),
        }

    def resume(self, path: Path, again: bool) -> None:
        """Continue exactly, or start a new schedule from the weights alone (`again`)."""
        state = states.load(path)
        self.codec.load_state_dict(grown(self.codec, state["codec"]))
        for name in ("judges", "listener"):
            if name in state:
                getattr(self, name).load_state_dict(state[name])
        if again or "codec_steps" not in state:
            return
        for name in ("codec_steps", "judge_steps", "listener_steps"):
            getattr(self, name).load_state_dict(state[name])
            getattr(self, name).param_groups[0]["lr"] = self.now
        self.step, self.seconds = state["step"], state["seconds"]
        states.set_chance(state["chance"])

    def rate(self, progress: float) -> None:
        """Cosine decay to a twentieth after a short warm-up; quantise ever more rows."""
        low = 0.05
        scale = low + (1 - low) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
        scale *= min(1.0, (self.step + 1) / WARM_UP)
        self.now.fill_(self.highest * scale)
        free = min(1.0, progress / JUDGED_FROM)
        self.free.fill_(FREE_AT_START + (FREE_AT_END - FREE_AT_START) * free)

    def depth(self, batch: int) -> Tensor:
        """Random depths: unquantised rows, rows with all acoustic codebooks, and with some."""
        if self.decoder_only:
            return torch.full((batch,), ALL, device=self.device)
        some = torch.randint(1, ALL + 1, (batch,), device=self.device)
        chance = torch.rand(batch, device=self.device)
        all_ = self.free + 0.8 * (1 - self.free)
        return torch.where(chance < self.free, UNQUANTISED, torch.where(chance < all_, ALL, some))

    def window(self, frames: int, begins: bool) -> Tensor:
        """Which frames are decoded: a random span of the crop, or its start."""
        heard = HEARD_OF_VOICES if self.ear else HEARD
        if begins:
            return torch.arange(heard - WARM, device=self.device)
        start = torch.randint(frames - heard + 1, (1,), device=self.device)
        return start + torch.arange(heard, device=self.device)

    def advance(
        self, real: Tensor, phones: Tensor, judged: bool, begins: bool = False
    ) -> dict[str, Tensor]:
        shown, losses = self.make(real, phones, begins)
        losses |= self.compare(shown)
        if judged:
            losses |= self.criticise(shown)
        loss = torch.stack([COUNTS[name] * losses[name] for name in COUNTS if name in losses]).sum()
        self.codec_steps.zero_grad()
        loss.backward()
        losses["norm"] = nn.utils.clip_grad_norm_(self.codec.parameters(), 10.0)
        self.codec_steps.step()
        return {name: value.detach() for name, value in losses.items()}

    def make(self, real: Tensor, phones: Tensor, begins: bool) -> tuple[Shown, dict[str, Tensor]]:
        """Real and generated audio of some frames of the crops, and the coding losses."""
        window, warm = self.window(phones.shape[1], begins), 0 if begins else WARM
        apart = len(real) // 2 if self.decoder_only else 0
        coded = self.codec(real, self.depth(len(real)), window, apart)
        at = window[warm:]
        shown = Shown(
            real=real.unflatten(1, (-1, FRAME))[:, at].flatten(1),
            made=coded.wave[:, warm * FRAME :],
            said=phones[:, at].flatten(1),
        )
        spoken = F.cross_entropy(coded.phones.flatten(0, 2), phones.flatten())
        return shown, {"commitment": coded.commitment, "phones": spoken}

    def compare(self, shown: Shown) -> dict[str, Tensor]:
        """Losses between generated and real audio: spectrum, phones and voice."""
        losses = {"spectral": self.spectral(shown.made, shown.real), "listens": self.listen(shown)}
        losses["heard"], losses["missed"] = self.understand(shown)
        if self.ear:
            losses["strange"], losses["mistaken"] = self.ear(shown.made, shown.real)
        return losses

    def criticise(self, shown: Shown) -> dict[str, Tensor]:
        """Train the discriminators, then return the adversarial losses."""
        losses = {"judges": self.judge(shown)}
        losses["score"], losses["features"] = self.fool(shown)
        return losses

    def listen(self, shown: Shown) -> Tensor:
        """Train the phone recognizer on real speech."""
        loss = heard(self.listener(shown.real)[-1], shown.said)
        self.listener_steps.zero_grad()
        loss.backward()
        self.listener_steps.step()
        return loss

    def understand(self, shown: Shown) -> tuple[Tensor, Tensor]:
        """The recognizer's phone loss on generated speech, and its feature distance."""
        self.listener.requires_grad_(False)
        with torch.no_grad():
            truth = self.listener(shown.real)
        told = self.listener(shown.made)
        self.listener.requires_grad_(True)
        return heard(told[-1], shown.said), missed(truth, told)

    def judge(self, shown: Shown) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False):
            loss = judge_loss(self.judges(shown.real), self.judges(shown.made.detach()))
        self.judge_steps.zero_grad()
        loss.backward()
        self.judge_steps.step()
        return loss

    def fool(self, shown: Shown) -> tuple[Tensor, Tensor]:
        self.judges.requires_grad_(False)
        with torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False):
            with torch.no_grad():
                truth = self.judges(shown.real)
            result = fooling_loss(truth, self.judges(shown.made))
        self.judges.requires_grad_(True)
        return result


def run(given: argparse.Namespace) -> None:
    torch.backends.cudnn.benchmark = True
    device = train_loop.begun(given)
    ear = Ear(given.speaker, device) if given.speaker else None
    codec = Codec(given.codes, given.width)
    trainer = Trainer(device, given.decoder_only, ear, given.rate, codec)
    pool = Pool(given.speech, given.hours, device)
    if given.state.exists():
        trainer.resume(given.state, given.again)
    while pool.refresh() == 0 or pool.hours < given.wait_hours:
        time.sleep(1)
    advance = Recorded(trainer.advance) if given.record else trainer.advance

    def step() -> Told:
        judged = train_loop.progress(trainer, given) > given.judged_from
        begins = given.decoder_only and trainer.step % BEGINS == 0
        return advance(*pool.crops(given.batch, CROP), judged=judged, begins=begins)

    def tell(losses: Told) -> None:
        pool.refresh(3)
        print(train_loop.line(trainer, pool.hours, losses), flush=True)

    train_loop.follow(trainer, given, step, tell, trainer.state)


def main() -> None:
    parser = train_loop.options(__doc__, hours=60, seed=1)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--decoder-only", action="store_true")
    parser.add_argument("--speaker", type=Path, help="state of a speaker encoder: voices count")
    parser.add_argument("--rate", type=float, default=RATE_AT_START, help="of learning, at most")
    parser.add_argument("--codes", type=int, default=model_config.CODES, help="of a codebook")
    parser.add_argument("--width", type=int, default=model_config.DECODER_DIM, help="of sound")
    parser.add_argument("--judged-from", type=float, default=JUDGED_FROM, help="share of the time")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
