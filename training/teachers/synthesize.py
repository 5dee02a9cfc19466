"""Speech to learn from, spoken by Kokoro, in shards.

A shard is one .npz: samples end to end with their offsets, phone and text position every 20 ms, and
speakers (numbers of `speakers.all_speakers()`), styles and texts as JSON. Shard k is a function of
the seed and k alone, but for the network's noise. Several processes can share one GPU, each with
shards of its own.

    python -m training.teachers.synthesize --teacher kokoro.pt --said said.json.gz --out DIR
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from training.data.speakers import NAMED, STYLES, TRAINED, all_speakers
from training.data.speech_format import LONGEST, RATE, Utterance
from training.teachers import phonemes
from training.teachers.phonemes import PhonemizedText
from training.teachers.speak import Job, LabelledSpeech, Teacher, asks_yes_or_no

UTTERANCES = 480  # a shard: enough for full batches of equal lengths
SHORTEST = 0.3  # seconds
NAMED_SHARE = 0.45  # of the utterances
# Of the utterances of named voices, and of others: only presets take instructions.
STYLED_OF_NAMED, STYLED = 0.25, 0.05
RISING = 2  # times as often as other texts, of which few rise


def with_more_questions(texts: Sequence[PhonemizedText]) -> list[PhonemizedText]:
    """The texts, with yes/no questions as often as they are to be drawn."""
    rising = [each for each in texts if asks_yes_or_no(each.text)]
    return [*texts, *rising * (RISING - 1)]


def draw_utterance(
    texts: Sequence[PhonemizedText], random: Random, named_share: float = NAMED_SHARE
) -> tuple[Utterance, PhonemizedText]:
    each, named = random.choice(texts), random.random() < named_share
    speaker = random.randrange(len(NAMED)) if named else random.randrange(len(NAMED), TRAINED)
    styled = random.random() < (STYLED_OF_NAMED if named else STYLED)
    style = random.randrange(1, len(STYLES)) if styled else 0
    return Utterance(each.text, speaker, style), each


def draw_jobs(
    texts: Sequence[PhonemizedText],
    seed: int,
    shard: int,
    count: int,
    named_share: float = NAMED_SHARE,
) -> list[tuple[Utterance, Job]]:
    random, speakers = Random(f"{seed}/{shard}"), all_speakers()
    found = []
    for _ in range(count):
        what, each = draw_utterance(texts, random, named_share)
        found.append((what, Job(each, speakers[what.speaker], STYLES[what.style])))
    return found


def shard_arrays(labelled: Sequence[tuple[Utterance, LabelledSpeech]]) -> dict[str, Any]:
    """The arrays of a shard's file."""
    messages = [message for _, message in labelled]
    samples = np.concatenate([message.wave for message in messages])
    return {
        "samples": np.round(samples * 32767).astype(np.int16),
        "phones": np.concatenate([message.phones for message in messages]),
        "places": np.concatenate([message.places for message in messages]),
        "offsets": np.cumsum([0, *(len(message.wave) for message in messages)]),
        "meta": np.array(json.dumps([asdict(what) for what, _ in labelled])),
    }


def make_shard(
    teacher: Teacher, texts: Sequence[PhonemizedText], shard: int, args: argparse.Namespace
) -> Any:
    chosen = draw_jobs(texts, args.seed, shard, args.utterances, args.named)
    spoken = dict(teacher.speak([job for _, job in chosen]))
    labelled = [(what, spoken[number]) for number, (what, _) in enumerate(chosen)]
    fit = [each for each in labelled if SHORTEST < len(each[1].wave) / RATE < LONGEST]
    return shard_arrays(fit)


def make_shards(
    teacher: Teacher, texts: Sequence[PhonemizedText], folder: Path, args: argparse.Namespace
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for shard in range(args.first, args.first + args.shards):
        path = folder / f"{shard:05d}.npz"
        if path.exists():
            continue
        if args.until and time.time() > args.until:
            break
        begun, part = time.monotonic(), path.with_suffix(".part.npz")
        data = make_shard(teacher, texts, shard, args)
        np.savez(part, **data)
        os.replace(part, path)
        seconds, took = len(data["samples"]) / RATE, time.monotonic() - begun
        print(f"shard {shard}: {seconds:.0f} s in {took:.1f} s, {seconds / took:.0f}x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--said", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--utterances", type=int, default=UTTERANCES)
    parser.add_argument("--named", type=float, default=NAMED_SHARE, help="share of named voices")
    parser.add_argument("--until", type=float, help="begin no shard after this time, since 1970")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(args.seed + args.first)
    teacher = Teacher(args.teacher, torch.device(args.device))
    make_shards(teacher, with_more_questions(phonemes.load(args.said)), args.out, args)


if __name__ == "__main__":
    main()
