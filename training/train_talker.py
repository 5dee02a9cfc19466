"""Train talker and predictor for so many minutes on speech that may still be in the making.

Every way of asking is mixed: presets and clones by vector, clones in context, designs and
styles by instruction; text whole and streamed; English and Auto.

    python -m training.train_talker --speech DIR --codec codec.pt --speaker speaker.pt \\
        --tokenizer DIR --state talker.pt --minutes 15
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn

from engine.model.layers import Causal
from engine.model.talker import Talker
from training import recipe
from training import state as states
from training.batches import NONE, Batch, Batcher, Instructions, TextIds
from training.codec import Codec
from training.library import Library
from training.pool import Pool
from training.recording import Recorded
from training.train_speaker import Trainee

RATE_AT_START = 1.5e-3
WARM_UP = 300
ALONE, IN_CONTEXT = 224, 384  # rows of a batch
WRONG_FIRST, WRONG_REST = 0.02, 0.05  # of the codes fed back: sampling will be wrong too
TOLD_WRONG = 0.02  # of the codes told to the predictor


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
    """Weights to start from: small, and embeddings about as long as a speaker's vector."""
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


def mistaken(codes: Tensor, first: float, rest: float) -> Tensor:
    """Codes [..., 16] with some of them replaced by chance."""
    share = torch.full((codes.shape[-1],), rest, device=codes.device)
    share[0] = first
    wrong = torch.rand(codes.shape, device=codes.device) < share
    return torch.where(wrong, torch.randint_like(codes, recipe.CODES), codes)


def embed(talker: Talker, batch: Batch) -> Tensor:
    """The rows of a batch as the talker's input [B, T, width]."""
    x = talker.embed_text(batch.text.clamp(min=0)) * (batch.text != NONE)[..., None]
    x = x + talker.embed_first(batch.code.clamp(min=0)) * (batch.code != NONE)[..., None]
    x = x + batch.vector[:, None] * batch.speaker[..., None]
    codes = mistaken(batch.fed.clamp(min=0), WRONG_FIRST, WRONG_REST)
    return x + talker.embed_codes(codes) * (batch.fed[..., :1] != NONE)


def mean(values: Tensor, over: Tensor) -> Tensor:
    """The mean of values [...] where `over` [...] is true."""
    return (values * over).sum() / over.sum().clamp(min=1)


def losses(talker: Talker, batch: Batch, frames: int) -> dict[str, Tensor]:
    """Of codebook 0 at every row, and of the others at `frames` rows drawn by chance."""
    x = embed(talker, batch)
    positions = torch.arange(x.shape[1], device=x.device)[None]
    hidden = talker(x, positions, Causal())
    wanted = batch.target[..., 0] != NONE
    end = recipe.IDS["codec_eos_token_id"]
    first = torch.where(batch.ends, end, batch.target[..., 0]).clamp(min=0)
    logits = talker.logits(hidden).float()
    each = F.cross_entropy(logits.flatten(0, 1), first.flatten(), reduction="none").view_as(first)
    score = (torch.rand_like(each) + wanted).flatten()
    some = score.topk(min(frames, score.numel())).indices
    codes = batch.target.flatten(0, 1)[some].clamp(min=0)  # [frames, 16]
    told = mistaken(codes, 0, TOLD_WRONG)
    rest = talker.predict(hidden.flatten(0, 1)[some], told).float()  # [frames, 15, entries]
    lost = F.cross_entropy(rest.flatten(0, 1), codes[:, 1:].flatten(), reduction="none")
    lost, used = lost.view(len(codes), -1), wanted.flatten()[some]
    return {
        "first": mean(each, wanted),
        "end": mean(each, batch.ends),
        "rest": mean(lost.mean(1), used),
        "second": mean(lost[:, 0], used),
        "last": mean(lost[:, -1], used),
    }


class Trainer:
    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.talker = Talker(recipe.talker_shape()).to(device)
        begin(self.talker)
        cuda = device.type == "cuda"
        self.now = torch.tensor(RATE_AT_START, device=device)  # the learning rate
        self.steps = torch.optim.AdamW(
            self.talker.parameters(),
            lr=self.now,
            betas=(0.9, 0.95),
            weight_decay=0.03,
            fused=cuda,
            capturable=cuda,
        )
        self.step, self.seconds = 0, 0.0

    def state(self, means: Tensor) -> dict[str, object]:
        return {
            "talker": self.talker.state_dict(),
            "steps": self.steps.state_dict(),
            "means": means,
            "step": self.step,
            "seconds": self.seconds,
            "chance": states.chance(self.device),
        }

    def resume(self, path: Path) -> None:
        state = states.load(path)
        self.talker.load_state_dict(state["talker"])
        self.steps.load_state_dict(state["steps"])
        self.steps.param_groups[0]["lr"] = self.now
        self.step, self.seconds = state["step"], state["seconds"]
        states.set_chance(state["chance"])

    def rate(self, progress: float) -> None:
        scale = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
        scale *= min(1.0, (self.step + 1) / WARM_UP)
        self.now.fill_(RATE_AT_START * scale)

    def advance(self, *tensors: Tensor, frames: int) -> dict[str, Tensor]:
        bf16 = self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, bf16, cache_enabled=False):
            told = losses(self.talker, Batch(*tensors), frames)
        loss = told["first"] + 0.1 * told["end"] + told["rest"]
        self.steps.zero_grad()
        loss.backward()
        told["norm"] = nn.utils.clip_grad_norm_(self.talker.parameters(), 1.0)
        self.steps.step()
        return {name: value.detach() for name, value in told.items()}


def library(given: argparse.Namespace, tokenizer: Tokenizer, device: torch.device) -> Library:
    codec, speaker = Codec().to(device), Trainee().to(device)
    codec.load_state_dict(states.load(given.codec)["codec"])
    speaker.load_state_dict(states.load(given.speaker)["speaker"])
    codec.share_tables()

    def ids(texts: list[str]) -> list[list[int]]:
        return [list(coded.ids) for coded in tokenizer.encode_batch(texts)]

    return Library(ids, codec.encoder.eval(), speaker.encoder.eval(), device)


def run(given: argparse.Namespace) -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    device = torch.device(given.device)
    torch.manual_seed(given.seed)
    tokenizer = Tokenizer.from_file(str(given.tokenizer / "tokenizer.json"))
    special = text_ids(tokenizer)
    books, pool = library(given, tokenizer, device), Pool(given.speech, given.hours, device)
    batcher = Batcher(books, Instructions(books.ids, special, device), special)
    trainer = Trainer(device)
    if given.state.exists():
        trainer.resume(given.state)
    while pool.hours < given.wait_hours or not len(books):
        pool.refresh()
        if not books.grow(pool):
            time.sleep(1)
    batcher.refresh()
    print(f"{pool.hours:.1f} hours, {len(books)} utterances", flush=True)
    advance = Recorded(trainer.advance) if given.record else trainer.advance
    began = time.monotonic() - trainer.seconds
    limit, saved = given.minutes * 60, time.monotonic()
    while trainer.seconds < limit and trainer.step < given.steps:
        trainer.rate(trainer.seconds / limit)
        in_context = trainer.step % 4 == 3
        size = given.batch // 2 if in_context else given.batch
        batch = batcher.draw(size, in_context, IN_CONTEXT if in_context else ALONE)
        told = advance(*batch.tensors(), frames=given.frames)
        trainer.step += 1
        trainer.seconds = time.monotonic() - began
        if trainer.step % given.every == 0:
            text = " ".join(f"{name} {value.item():.3f}" for name, value in told.items())
            print(f"{trainer.step} {trainer.seconds:.0f}s {pool.hours:.1f}h {text}", flush=True)
            if pool.refresh(4) + books.grow(pool):
                batcher.refresh()
        if time.monotonic() - saved > given.save_every:
            states.save(trainer.state(batcher.means), given.state)
            saved = time.monotonic()
    states.save(trainer.state(batcher.means), given.state)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speech", type=Path, required=True)
    parser.add_argument("--codec", type=Path, required=True)
    parser.add_argument("--speaker", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--record", action="store_true", help="replay steps from CUDA graphs")
    parser.add_argument("--steps", type=int, default=10**9)
    parser.add_argument("--batch", type=int, default=112)
    parser.add_argument("--frames", type=int, default=4096, help="that the predictor learns a step")
    parser.add_argument("--hours", type=float, default=70)
    parser.add_argument("--wait-hours", type=float, default=0)
    parser.add_argument("--every", type=int, default=200)
    parser.add_argument("--save-every", type=float, default=120)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
