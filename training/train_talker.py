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
from typing import Any

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn

from engine.model.configs import TransformerConfig
from engine.model.layers import Block
from engine.model.talker import Talker
from training import model_config, peers, train_loop
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
from training.batching.embedding import corrupt_codes, embed
from training.batching.perturbation import swap_voices
from training.batching.segmentation import SampledSegmentation
from training.batching.self_rollout import SelfRollout, rollout_due
from training.batching.talker_dataset import TalkerDataset, Tokenize
from training.codec import Codec
from training.data.phones import PHONES
from training.data.speech_format import PHONES_A_FRAME
from training.data.speech_pool import SpeechPool
from training.graph_steps import Metrics, Step
from training.losses.attention_guidance import GuidedAttention, UncompiledAttention
from training.losses.regularization import ValidationSet, add_dropout
from training.optimizers import Muon, Optimizers, make_optimizer
from training.tokenizer import token_id
from training.train_speaker import load_encoder

HIGHEST_RATE = 1.5e-3
GUIDANCE = 0.5  # weight of the guided attention loss
VOICE_SWAPS = 0.15  # share of the sequences with frames of another voice (see perturbation.py)
WRONG_CODES = 0.04  # share of random codes in the predictor's input
# What an acoustic codebook counts: the first four are most of what is heard, from the ninth on none
# is (training/experiments/2026-11-26-which-codebooks.md). So the deep ones are learned at fewer
# frames.
HEARD = 8
CODEBOOK_WEIGHTS = (1.0,) * 4 + (0.5,) * 4 + (0.1,) * (model_config.CODEBOOKS - 1 - HEARD)
ACOUSTIC = 3.0  # weight of their mean: words are learned by heart long before sounds are known
DEEP = 8  # of so many frames whose first codebooks are learned, one is learned whole


def text_ids(tokenizer: Tokenizer) -> TextIds:
    def ids(text: str) -> list[int]:
        return list(tokenizer.encode(text).ids)

    return TextIds(
        pad=token_id(tokenizer, "<tts_pad>"),
        bos=token_id(tokenizer, "<tts_text_bos>"),
        eos=token_id(tokenizer, "<tts_text_eod>"),
        role=ids("<|im_start|>assistant\n"),
        user=ids("<|im_start|>user\n"),
        close=ids("<|im_end|>\n"),
    )


def init_weights(talker: Talker) -> None:
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


class TalkerWithPhones(nn.Module):
    """The talker with an auxiliary head that predicts the next frame's phones. The target is the
    same for all codes with the same phones, so the alignment with the text is learned sooner."""

    def __init__(self) -> None:
        super().__init__()
        self.talker = Talker(model_config.talker_config())
        self.phones = nn.Linear(model_config.WIDTH, PHONES_A_FRAME * len(PHONES))
        self.weights: Tensor
        self.register_buffer("weights", torch.tensor(CODEBOOK_WEIGHTS), persistent=False)

    def phone_loss(self, hidden: Tensor, phones: Tensor) -> Tensor:
        """Loss [B, T] of phones [B, T, 4] read from hidden states."""
        logits = self.phones(hidden).float().unflatten(-1, (PHONES_A_FRAME, -1))
        lost = F.cross_entropy(logits.flatten(0, 2), phones.long().flatten(), reduction="none")
        return lost.view_as(phones).mean(-1)


def losses(model: TalkerWithPhones, batch: Batch, frames: int) -> dict[str, Tensor]:
    """Losses of codebook 0 and phones at every row, and of the others at `frames` random rows."""
    talker = model.talker
    x = embed(talker, batch)
    positions = torch.arange(x.shape[1], device=x.device)[None]
    guided = GuidedAttention(batch.spoken_row)
    hidden = talker(x, positions, guided)
    wanted = batch.target[..., 0] != NONE
    end = model_config.IDS["codec_eos_token_id"]
    first = torch.where(batch.ends, end, batch.target[..., 0]).clamp(min=0)
    logits = talker.logits(hidden).float()
    each = F.cross_entropy(logits.flatten(0, 1), first.flatten(), reduction="none").view_as(first)
    score = (torch.rand_like(each) + wanted).flatten()
    some = score.topk(min(frames, score.numel())).indices
    rest = rest_losses(
        talker, hidden.flatten(0, 1)[some], batch.target.flatten(0, 1)[some], frames // DEEP
    )
    return {
        "first": mean(each, wanted),
        "phones": mean(model.phone_loss(hidden, batch.phones), wanted),
        "attention": mean(torch.stack(guided.losses).mean(0), batch.spoken_row != NONE),
        "end": mean(each, batch.ends),
        "rest": rest @ model.weights / model.weights.sum(),
        "second": rest[0],
        "fourth": rest[2],
        "last": rest[-1],
    }


def rest_losses(talker: Talker, hidden: Tensor, target: Tensor, deep: int) -> Tensor:
    """The mean loss of each acoustic codebook [15], of the deep ones at the first `deep` frames:
    hidden [frames, width], target [frames, 16]."""
    used, codes = target[:, 0] != NONE, target.clamp(min=0)
    fed = corrupt_codes(codes, 0, WRONG_CODES) if talker.training else codes

    def lost(frames: int, first: int, last: int) -> Tensor:
        logits = talker.predict(hidden[:frames], fed[:frames, : last + 1], UncompiledAttention())[
            :, first - 1 :
        ].float()
        wanted = codes[:frames, first : last + 1].flatten()
        each = F.cross_entropy(logits.flatten(0, 1), wanted, reduction="none").view(frames, -1)
        return torch.stack([mean(book, used[:frames]) for book in each.unbind(1)])

    heard = lost(len(hidden), 1, HEARD)
    return torch.cat((heard, lost(min(deep, len(hidden)), HEARD + 1, codes.shape[1] - 1)))


def compile_blocks(talker: Talker) -> None:
    """Compile what a transformer's block does around its attention, once for all layers. Compiling
    the whole step takes eight minutes instead of two, and makes it no faster."""
    torch._dynamo.config.recompile_limit = 32  # with and without dropout, gradients, guidance
    for module in talker.modules():
        if isinstance(module, Block):
            module.compile(dynamic=True)


def make_optimizers(model: TalkerWithPhones, rate: Tensor) -> Optimizers:
    """Muon for the matrices of transformer layers, AdamW for all else."""
    matrices, others = [], []
    for name, weight in model.named_parameters():
        if ".layers." not in name or weight.ndim != 2:
            others.append(weight)
            continue
        config = model.talker.config
        block = config.predictor if "code_predictor" in name else config.transformer
        matrices.append((weight, matrix_rows(name, len(weight), block)))
    return Optimizers(Muon(matrices, rate), make_optimizer(others, rate, (0.9, 0.95), 0.03))


def matrix_rows(name: str, rows: int, config: TransformerConfig) -> list[int]:
    """How many rows each matrix of a fused weight has."""
    if "gate_up_proj" in name:
        return [rows // 2] * 2
    if "qkv_proj" in name:
        return [
            heads * config.head_dim for heads in (config.heads, config.kv_heads, config.kv_heads)
        ]
    return [rows]


def sequence_lengths() -> set[int]:
    """Rows of a sequence, in all sizes of batches."""
    return {length for size in SIZES for length in (size.alone, size.in_context)}


class Trainer(train_loop.Trainer):
    OPTIMIZER = "talker_optimizer"
    WARM_UP = 300
    END = 0.02

    def __init__(
        self,
        device: torch.device,
        dropout: float = 0.0,
        highest: float = HIGHEST_RATE,
        guidance: float = GUIDANCE,
        voice_swaps: float = 0.0,
        compiled: bool = False,
    ) -> None:
        super().__init__(device, highest)
        self.guidance, self.voice_swaps = guidance, voice_swaps
        self.model = TalkerWithPhones().to(device)
        self.talker = self.model.talker
        init_weights(self.talker)
        add_dropout(self.talker, dropout)
        if compiled:
            compile_blocks(self.talker)
        self.optimizer: Optimizers = make_optimizers(self.model, self.learning_rate)

    def weights(self) -> dict[str, Any]:
        return {"talker": self.talker.state_dict(), "phones": self.model.phones.state_dict()}

    def load_weights(self, state: dict[str, Any], restart: bool) -> None:
        self.talker.load_state_dict(state["talker"])
        self.model.phones.load_state_dict(state["phones"])

    def warm_up(self, advance: Step, rows: int, frames: int) -> None:
        """Compile and capture steps of all sizes ahead of time, without learning from them."""
        self.learning_rate.zero_()
        for length in sequence_lengths():
            advance(*blank(rows // length, length, self.device).tensors(), frames=frames)
        self.optimizer.reset()

    def advance(self, *tensors: Tensor, frames: int) -> dict[str, Tensor]:
        bf16 = self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, bf16, cache_enabled=False):
            batch = Batch(*tensors)
            batch = replace(batch, fed=swap_voices(batch, self.voice_swaps))
            found = losses(self.model, batch, frames)
        loss = found["first"] + found["phones"] + ACOUSTIC * found["rest"]
        loss = loss + self.guidance * found["attention"] + 0.1 * found["end"]
        self.optimizer.zero_grad()
        loss.backward()
        found["norm"] = self.descend(self.model, 1.0)
        return {name: value.detach() for name, value in found.items()}


def open_dataset(args: argparse.Namespace, ids: Tokenize, device: torch.device) -> TalkerDataset:
    codec, speaker = Codec().to(device), None
    codec.load_state_dict(states.load(args.codec)["codec"])
    codec.copy_codebooks()
    if args.speaker:
        speaker = load_encoder(args.speaker).to(device).eval()
    return TalkerDataset(ids, codec.encoder.eval(), speaker, device)


def fill_dataset(dataset: TalkerDataset, pool: SpeechPool, hours: float) -> None:
    """Wait until there are `hours` of speech, and add it."""
    while pool.lacks(hours) or not len(dataset):
        pool.refresh()
        if not dataset.grow(pool):
            time.sleep(1)
    print(f"{pool.hours:.1f} hours, {len(dataset)} utterances", flush=True)


def whole_texts(tokenizer: Tokenizer) -> Tokenize:
    """Encodes texts as the engine does when it speaks them."""
    return lambda texts, /: tokenizer.encode_batch(texts)


def open_batcher(args: argparse.Namespace, tokenizer: Tokenizer, device: torch.device) -> Batcher:
    """A batcher of a dataset that is still empty."""
    dataset = open_dataset(args, SampledSegmentation(tokenizer), device)
    special = text_ids(tokenizer)
    return Batcher(dataset, Instructions(whole_texts(tokenizer), special, device), special)


def validation_set(folder: Path, tokenizer: Tokenizer, batcher: Batcher) -> ValidationSet:
    """Speech in a folder, which the batcher's dataset has not, with texts as they are encoded when
    something is spoken."""
    known = batcher.dataset
    unseen = TalkerDataset(whole_texts(tokenizer), known.encoder, known.speaker, known.device)
    held_out = Batcher(unseen, batcher.instructions, batcher.special)
    return ValidationSet(held_out, folder, known.device)


def batch_source(
    args: argparse.Namespace, trainer: Trainer, batcher: Batcher, rollouts: SelfRollout | None
) -> Callable[[], Batch]:
    """A function that draws the next batch: one in four in context, some with a rollout."""

    def draw(in_context: bool) -> Batch:
        return batcher.draw_size(args.rows, in_context)

    def next_batch() -> Batch:
        if rollouts and rollout_due(trainer.step):
            return rollouts.draw(draw)
        return draw(trainer.step % 4 == 3)

    return next_batch


def open_rollouts(args: argparse.Namespace, trainer: Trainer) -> SelfRollout | None:
    """Rollouts, all of whose sizes are captured."""
    if not args.self_rollout:
        return None
    rollouts = SelfRollout(trainer.talker)
    if args.cuda_graphs:
        for length in sequence_lengths():
            rollouts.rollout(blank(args.rows // length, length, trainer.device))
    return rollouts


def run(args: argparse.Namespace) -> None:
    device = train_loop.set_up(args)
    trainer = Trainer(
        device, args.dropout, args.rate, args.guidance, args.voice_swaps, args.compile
    )
    advance = train_loop.make_step(trainer, args, args.rows, args.frames)
    rollouts = open_rollouts(args, trainer)
    train_loop.wait_for(args.codec, args.speaker, until=args.until)
    tokenizer = Tokenizer.from_file(str(args.tokenizer / "tokenizer.json"))
    batcher = open_batcher(args, tokenizer, device)
    dataset, pool = batcher.dataset, SpeechPool(args.speech, args.hours, device, args.until)
    validation = validation_set(args.validation, tokenizer, batcher) if args.validation else None
    if args.state.exists():
        trainer.resume(args.state, args.restart)
    if args.rank:  # the same weights, other batches
        torch.manual_seed(args.seed + args.rank + trainer.step)
    fill_dataset(dataset, pool, args.wait_hours)
    batcher.refresh()
    next_batch = batch_source(args, trainer, batcher, rollouts)
    awaited = args.next_codec
    # Only now: what watches over the others' messages would disturb a capture.
    others = peers.join(args, device, [trainer.model])

    def step() -> Metrics:
        return advance(*next_batch().tensors(), frames=args.frames)

    def change_codes() -> None:
        """Go on with the codes and vectors of the codec and encoder that were settled meanwhile."""
        nonlocal batcher, dataset, validation, next_batch, awaited
        awaited = None
        settled = {"codec": args.next_codec, "speaker": args.next_speaker or args.speaker}
        after = argparse.Namespace(**vars(args) | settled)
        batcher = open_batcher(after, tokenizer, device)
        dataset = batcher.dataset
        while dataset.grow(pool):
            pass
        batcher.refresh()
        validation = validation_set(args.validation, tokenizer, batcher) if validation else None
        next_batch = batch_source(args, trainer, batcher, rollouts)
        print(f"other codes: {len(dataset)} utterances", flush=True)

    def log(metrics: Metrics) -> None:
        if awaited and awaited.exists():
            change_codes()
        print(train_loop.log_line(trainer, pool.hours, metrics), flush=True)
        if validation and not args.rank:
            print(validation.evaluate(trainer.model, losses, args.frames), flush=True)
        if pool.refresh(8) + dataset.grow(pool) + dataset.reencode(pool, args.reencode):
            batcher.refresh()

    train_loop.train(trainer, args, step, log, others)
    if others is not None:
        others.leave()


def main() -> None:
    parser = train_loop.trainer_parser(__doc__, rate=HIGHEST_RATE, hours=70, seed=3)
    parser.add_argument("--codec", type=Path, required=True, help="a state, waited for")
    parser.add_argument("--speaker", type=Path, help="a state, waited for; or voices are targets")
    parser.add_argument(
        "--next-codec",
        type=Path,
        help="a codec that is still learned: its codes"
        " take the place of the others when it is there",
    )
    parser.add_argument("--next-speaker", type=Path, help="likewise, there before that")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=24_576, help="of text and frames a step")
    parser.add_argument("--frames", type=int, default=4096, help="that the predictor learns a step")
    parser.add_argument("--validation", type=Path, help="speech that is never learned from")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--guidance", type=float, default=GUIDANCE)
    parser.add_argument("--voice-swaps", type=float, default=VOICE_SWAPS, help="share of sequences")
    parser.add_argument("--self-rollout", action="store_true", help="learn from sampled frames too")
    parser.add_argument("--reencode", type=int, default=1500, help="utterances encoded anew")
    peers.add_options(parser)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
