"""`python -m bench.gpu.own_voice --size 0.6B`: time and memory of training a voice on a GPU.

Random weights in the published shapes and random codes, ten minutes of them in lines of five
seconds: speed and memory only. Rows first, then an adapter, each for a few batches of an epoch; an
epoch and eight of them are computed from that.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import torch
import typer

from bench import random_checkpoint
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.worker.device import pick_device, pick_dtype
from engine.worker.loading.model_loader import load_talker
from training.voice.adapter import Adapter
from training.voice.rows import LearnedRows
from training.voice.sequences import Line
from training.voice.texts import ENGLISH
from training.voice.trainer import Learner, VoiceTrainer

FRAMES = 62  # of a line, five seconds
EPOCHS = 8
WARM = 2  # steps that are not counted
CODES = 1_000  # below every codebook's size


def lines(checkpoint: LocalCheckpoint, count: int) -> list[Line]:
    random = np.random.default_rng(0)
    return [
        Line(
            checkpoint.text_ids(ENGLISH[number % len(ENGLISH)]),
            random.integers(0, CODES, (FRAMES + number % 9, 16)),
        )
        for number in range(count)
    ]


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(
    name: str, checkpoint: LocalCheckpoint, folder: Path, minutes: float, most: float
) -> None:
    """Train for `most` seconds, and print what an epoch takes."""
    device = pick_device(None)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    talker = load_talker(folder, device, pick_dtype(device))
    width = checkpoint.capabilities.width
    vector = np.random.default_rng(1).standard_normal(width).astype(np.float32)
    padding = torch.zeros(width)  # the weights are random
    rows = LearnedRows(vector, 8, padding)
    learner: Learner = rows if name == "rows" else Adapter(talker, vector)
    learner = learner.to(device)
    trainer = VoiceTrainer(checkpoint, talker, learner, EPOCHS, "english")
    spoken = lines(checkpoint, round(minutes * 12))
    with torch.no_grad():
        trainer.prepare(spoken, spoken[:6], spoken[:24])
    batches, began, done = len(trainer._batches), 0.0, -WARM
    with learner.attached(talker):
        while began == 0 or time.perf_counter() - began < most:
            for _ in trainer.run_epoch(lambda: False):
                synchronize(device)
                done += 1
                if done == 0:
                    began = time.perf_counter()
                if done > 0 and time.perf_counter() - began > most:
                    break
    step = (time.perf_counter() - began) / max(1, done)
    peak = torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else 0.0
    print(
        f"{name}: {step * 1000:.0f} ms a batch, {batches} batches an epoch of {minutes:.0f} "
        f"minutes: {step * batches:.1f} s; {EPOCHS} epochs {step * batches * EPOCHS / 60:.1f} "
        f"minutes without the judges; {peak:.1f} GB at most",
        flush=True,
    )


def main(
    size: Annotated[str, typer.Option(help="0.6B, 1.7B, mid or tiny")] = "0.6B",
    minutes: Annotated[float, typer.Option(help="Of recordings.")] = 10,
    seconds: Annotated[float, typer.Option(help="To measure each way for.")] = 60,
) -> None:
    """Print a line for rows and one for an adapter."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / size
        device = pick_device(None)
        random_checkpoint.main(place, size, "base", 0, str(device))
        torch.set_default_device("cpu")
        checkpoint = LocalCheckpoint(place)
        for way in ("rows", "adapter"):
            measure(way, checkpoint, place, minutes, seconds)


if __name__ == "__main__":
    typer.run(main)
