"""Trains talker and predictor for a number of minutes, on speech that may still be growing.

Batches mix all kinds of requests: presets and clones by vector, clones in context, designs and
styles by instruction; text whole and streamed; English and Auto.

    python -m training.train_talker --speech DIR --codec codec.pt --speaker speaker.pt \\
        --tokenizer DIR --state talker.pt --minutes 15

On codes that are not final yet it can begin without a speaker encoder (a rehearsal).
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn

from engine.model.talker import Talker
from training import model_config, train_loop
from training import state as states
from training.batching.batches import (
    NONE,
    SIZES,
    Batch,
    Batcher,
    Instructions,
    TextIds,
    blank,
)
from training.batching.embedding import embed, mistaken
from training.batching.perturbation import strayed
from training.batching.self_rollout import SelfRollout, due
from training.batching.talker_dataset import TalkerDataset
from training.codec import Codec
from training.data.phones import PHONES
from training.data.speech_format import PHONES_A_FRAME
from training.data.speech_pool import Pool
from training.graph_steps import GraphedStep, Metrics, Step
from training.losses.attention_guidance import Guided
from training.losses.regularization import ValidationSet, thin
from training.losses.wave_losses import forget
from training.train_speaker import SpeakerTrainee

RATE_AT_START, RATE_AT_END = 1.5e-3, 0.02
GUIDANCE = 0.5  # weight of the guided attention loss
WARM_UP = 300
STRAY = 0.15  # share of the sequences with frames of another voice (see perturbation)
TOLD_WRONG = 0.04  # share of random codes in the predictor's input


def text_ids(tokenizer: Tokenizer) -> TextIds:
    def ids(text: str) -> list[int]:
        return list(tokenizer.encode(text).ids)

    return TextIds(
        pad=tokenizer.token_to_id("<tts_pad>"),
        bos=tokenizer.token_to_id("<tts_text_bos>"),
        eos=tokenizer.token_to_id("<tts_text_eod>"),
        role=ids("<|im_start|>assistant\n"),
        user=ids("<|im_start|>user\n"),
        close=ids("<|im_end|>\n"),
    )


def begin(talker: Talker) -> None:
    """Initial weights: small, and embeddings with about the norm of a speaker vector."""
    for module in talker.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.6 / math.sqrt(module.in_features))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.15)
    nn.init.normal_(talker.model.text_embedding.weight, std=0.7)
    for name, weight in talker.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            weight.data *= 0.4


def mean(values: Tensor, over: Tensor) -> Tensor:
    """The mean of values [...] where `over` [...] is true."""
    return (values * over).sum() / over.sum().clamp(min=1)


class TrainedTalker(nn.Module):
    """The talker with an auxiliary head that predicts the next frame's phones. The target is the
    same for all codes with the same phones, so the alignment with the text is learned sooner."""

    def __init__(self) -> None:
        super().__init__()
        self.talker = Talker(model_config.talker_config())
        self.phones = nn.Linear(model_config.WIDTH, PHONES_A_FRAME * len(PHONES))

    def said(self, hidden: Tensor, phones: Tensor) -> Tensor:
        """Loss [B, T] of phones [B, T, 4] read from hidden states."""
        logits = self.phones(hidden).float().unflatten(-1, (PHONES_A_FRAME, -1))
        lost = F.cross_entropy(logits.flatten(0, 2), phones.long().flatten(), reduction="none")
        return lost.view_as(phones).mean(-1)


def losses(pupil: TrainedTalker, batch: Batch, frames: int) -> dict[str, Tensor]:
    """Losses of codebook 0 and phones at every row, and of the others at `frames` random rows."""
    talker = pupil.talker
    x = embed(talker, batch)
    positions = torch.arange(x.shape[1], device=x.device)[None]
    guided = Guided(batch.says)
    hidden = talker(x, positions, guided)
    wanted = batch.target[..., 0] != NONE
    end = model_config.IDS["codec_eos_token_id"]
    first = torch.where(batch.ends, end, batch.target[..., 0]).clamp(min=0)
    logits = talker.logits(hidden).float()
    each = F.cross_entropy(logits.flatten(0, 1), first.flatten(), reduction="none").view_as(first)
    score = (torch.rand_like(each) + wanted).flatten()
    some = score.topk(min(frames, score.numel())).indices
    codes = batch.target.flatten(0, 1)[some].clamp(min=0)  # [frames, 16]
    told = mistaken(codes, 0, TOLD_WRONG) if talker.training else codes
    rest = talker.predict(hidden.flatten(0, 1)[some], told).float()  # [frames, 15, entries]
    lost = F.cross_entropy(rest.flatten(0, 1), codes[:, 1:].flatten(), reduction="none")
    lost, used = lost.view(len(codes), -1), wanted.flatten()[some]
    return {
        "first": mean(each, wanted),
        "phones": mean(pupil.said(hidden, batch.phones), wanted),
        "looks": mean(torch.stack(guided.losses).mean(0), batch.says != NONE),
        "end": mean(each, batch.ends),
        "rest": mean(lost.mean(1), used),
        "second": mean(lost[:, 0], used),
        "last": mean(lost[:, -1], used),
    }


class Trainer:
    def __init__(
        self,
        device: torch.device,
        dropout: float = 0.0,
        highest: float = RATE_AT_START,
        guidance: float = GUIDANCE,
        stray: float = 0.0,
        compiled: bool = False,
    ) -> None:
        self.device, self.highest, self.guidance = device, highest, guidance
        self.stray = stray
        self.losses = torch.compile(losses, dynamic=True) if compiled else losses
        self.pupil = TrainedTalker().to(device)
        self.talker = self.pupil.talker
        begin(self.talker)
        thin(self.talker, dropout)
        cuda = device.type == "cuda"
        self.now = torch.tensor(highest, device=device)  # the learning rate
        self.steps = torch.optim.AdamW(
            self.pupil.parameters(),
            lr=self.now,
            betas=(0.9, 0.95),
            weight_decay=0.03,
            fused=cuda,
            capturable=cuda,
        )
        self.step, self.seconds = 0, 0.0

    def state(self) -> dict[str, object]:
        return {
            "talker": self.talker.state_dict(),
            "phones": self.pupil.phones.state_dict(),
            "steps": self.steps.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "chance": states.chance(self.device),
        }

    def resume(self, path: Path, again: bool) -> None:
        """Continue exactly, or start a new schedule from the weights alone (`again`)."""
        state = states.load(path)
        self.talker.load_state_dict(state["talker"])
        self.pupil.phones.load_state_dict(state["phones"])
        if again or "steps" not in state:
            return
        self.steps.load_state_dict(state["steps"])
        self.steps.param_groups[0]["lr"] = self.now
        self.step, self.seconds = state["step"], state["seconds"]
        states.set_chance(state["chance"])

    def rate(self, progress: float) -> None:
        factor = train_loop.rate_factor(self.step, WARM_UP, progress, RATE_AT_END)
        self.now.fill_(self.highest * factor)

    def warm_up(self, advance: Step, rows: int, frames: int) -> None:
        """Compile and capture steps of all sizes ahead of time, without learning from them."""
        self.now.zero_()
        for length in {length for size in SIZES for length in (size.alone, size.in_context)}:
            advance(*blank(rows // length, length, self.device).tensors(), frames=frames)
        forget(self.steps)

    def advance(self, *tensors: Tensor, frames: int) -> dict[str, Tensor]:
        bf16 = self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, bf16, cache_enabled=False):
            batch = Batch(*tensors)
            batch = replace(batch, fed=strayed(batch, self.stray))
            told = self.losses(self.pupil, batch, frames)
        loss = told["first"] + told["phones"] + told["rest"]
        loss = loss + self.guidance * told["looks"] + 0.1 * told["end"]
        self.steps.zero_grad()
        loss.backward()
        told["norm"] = nn.utils.clip_grad_norm_(self.pupil.parameters(), 1.0)
        self.steps.step()
        return {name: value.detach() for name, value in told.items()}


def library(given: argparse.Namespace, tokenizer: Tokenizer, device: torch.device) -> TalkerDataset:
    codec, speaker = Codec().to(device), None
    codec.load_state_dict(states.load(given.codec)["codec"])
    codec.share_tables()
    if given.speaker:
        trained = SpeakerTrainee().to(device)
        trained.load_state_dict(states.load(given.speaker)["speaker"])
        speaker = trained.encoder.eval()
    return TalkerDataset(tokenizer.encode_batch, codec.encoder.eval(), speaker, device)


def fill(books: TalkerDataset, pool: Pool, hours: float) -> None:
    """Wait until there are `hours` of speech, and add it."""
    while pool.hours < hours or not len(books):
        pool.refresh()
        if not books.grow(pool):
            time.sleep(1)
    print(f"{pool.hours:.1f} hours, {len(books)} utterances", flush=True)


def batchers(
    given: argparse.Namespace, books: TalkerDataset, tokenizer: Tokenizer
) -> tuple[Batcher, ValidationSet | None]:
    """A batcher of the dataset, and the validation set."""
    special = text_ids(tokenizer)
    instructions = Instructions(books.ids, special, books.device)
    unheard = TalkerDataset(books.ids, books.encoder, books.speaker, books.device)
    judges = Batcher(unheard, instructions, special)
    aside = ValidationSet(judges, given.aside, books.device) if given.aside else None
    return Batcher(books, instructions, special), aside


def drawing(given: argparse.Namespace, trainer: Trainer, batcher: Batcher) -> Callable[[], Batch]:
    """A function that draws the next batch: one in four in context, some with a rollout."""
    speaking = SelfRollout(trainer.talker) if given.own else None

    def draw(in_context: bool) -> Batch:
        return batcher.draw_size(given.rows, in_context)

    def following() -> Batch:
        if speaking and due(trainer.step):
            return speaking.draw(draw)
        return draw(trainer.step % 4 == 3)

    return following


def telling(
    given: argparse.Namespace,
    trainer: Trainer,
    batcher: Batcher,
    pool: Pool,
    aside: ValidationSet | None,
) -> Callable[[Metrics], None]:
    """A function that logs the losses and adds new speech."""
    books = batcher.library

    def tell(told: Metrics) -> None:
        print(train_loop.line(trainer, pool.hours, told), flush=True)
        if aside:
            print(aside.judge(trainer.pupil, losses, given.frames), flush=True)
        if pool.refresh(4) + books.grow(pool) + books.vary(pool, given.vary):
            batcher.refresh()

    return tell


def run(given: argparse.Namespace) -> None:
    device = train_loop.begun(given)
    trainer = Trainer(device, given.dropout, given.rate, given.guidance, given.stray, given.compile)
    advance = GraphedStep(trainer.advance) if given.record else trainer.advance
    if given.record and train_loop.starts_anew(given):
        trainer.warm_up(advance, given.rows, given.frames)
        print("warm", flush=True)
    while not all(path.exists() for path in (given.codec, given.speaker) if path):
        time.sleep(0.5)
    tokenizer = Tokenizer.from_file(str(given.tokenizer / "tokenizer.json"))
    books, pool = library(given, tokenizer, device), Pool(given.speech, given.hours, device)
    batcher, aside = batchers(given, books, tokenizer)
    if given.state.exists():
        trainer.resume(given.state, given.again)
    fill(books, pool, given.wait_hours)
    batcher.refresh()
    draw = drawing(given, trainer, batcher)

    def step() -> Metrics:
        return advance(*draw().tensors(), frames=given.frames)

    train_loop.follow(
        trainer, given, step, telling(given, trainer, batcher, pool, aside), trainer.state
    )


def main() -> None:
    parser = train_loop.options(__doc__, hours=70, seed=3)
    parser.add_argument("--codec", type=Path, required=True, help="a state, waited for")
    parser.add_argument("--speaker", type=Path, help="a state, waited for; or voices are targets")
    parser.add_argument("--compile", action="store_true", help="the losses, by torch.compile")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=24_576, help="of text and frames a step")
    parser.add_argument("--frames", type=int, default=4096, help="that the predictor learns a step")
    parser.add_argument("--aside", type=Path, help="speech to judge by, never learned from")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--rate", type=float, default=RATE_AT_START, help="of learning, at most")
    parser.add_argument("--guidance", type=float, default=GUIDANCE)
    parser.add_argument("--stray", type=float, default=STRAY, help="share: another's voice")
    parser.add_argument("--own", action="store_true", help="learn from what it says itself")
    parser.add_argument("--vary", type=int, default=1500, help="utterances encoded anew at times")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
