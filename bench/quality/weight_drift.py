"""`python -m bench.quality.weight_drift --model DIR`: the effect of quantized weights on CPUs.

The model speaks with full weights; then the same inputs pass through the layers in 8 and in 4 bits.
Prints how often the most likely code differs, and the divergence of the distributions in nats, for
codebook 0 and for the others. Then one JSON line.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from torch import Tensor

from engine import Engine, Preset, SpeechRequest, open_engine
from engine.model.layers import Causal
from engine.model.talker import Talker
from engine.worker.loading.model_loader import load_talker
from engine.worker.worker import TorchWorker

SENTENCES = Path(__file__).parents[2] / "training" / "data" / "heldout.txt"
MOST_FRAMES = 80


@dataclass(frozen=True)
class Heard:
    """The talker's inputs of one utterance, and its codes."""

    inputs: Tensor  # [T, width]
    codes: Tensor  # [F, 16]; frame 0 follows the last row of the prompt


@dataclass(frozen=True)
class Drift:
    weights: str
    first_differs: float  # share of frames
    first_nats: float  # Kullback-Leibler divergence from full weights
    rest_differs: float
    rest_nats: float


def talker_of(engine: Engine) -> Talker:
    """The engine's talker."""
    worker = engine._worker
    assert isinstance(worker, TorchWorker)
    (runner,) = worker._runners.values()
    talker: Talker = runner.step.talker
    return talker


def listen(engine: Engine, text: str, voice: str) -> Heard:
    """Speak and record the inputs of the first layer."""
    rows: list[Tensor] = []
    first = talker_of(engine).model.layers[0]
    hook = first.register_forward_pre_hook(lambda _, given: rows.append(given[0].detach().clone()))
    try:
        request = SpeechRequest(text, Preset(voice), seed=0, max_frames=MOST_FRAMES)
        codes = np.concatenate([chunk.codes for chunk in engine.submit(request)])
    finally:
        hook.remove()
    return Heard(torch.cat([row.flatten(0, 1) for row in rows]), torch.from_numpy(codes).long())


@torch.inference_mode()
def scores(talker: Talker, heard: Heard) -> tuple[Tensor, Tensor]:
    """Log-probabilities of every frame's codes: [F, V] and [F, 15, V]."""
    positions = torch.arange(len(heard.inputs))[None]
    hidden = talker(heard.inputs[None], positions, Causal())[0]
    start = len(heard.inputs) - len(heard.codes)
    before = hidden[max(start - 1, 0) :][: len(heard.codes)]
    rest = talker.predict(before, heard.codes[: len(before)])
    return talker.logits(before).float().log_softmax(-1), rest.float().log_softmax(-1)


def apart(full: Tensor, other: Tensor) -> tuple[float, float]:
    """How often the most likely code differs, and the divergence in nats."""
    differs = (full.argmax(-1) != other.argmax(-1)).float().mean()
    return float(differs), float((full.exp() * (full - other)).sum(-1).mean())


def main(
    model: Annotated[str, typer.Option(help="a checkpoint folder")],
    sentences: Annotated[int, typer.Option(help="how many are spoken")] = 20,
    voice: Annotated[str, typer.Option(help="a preset; else the first")] = "",
) -> None:
    """Measure a checkpoint."""
    texts = SENTENCES.read_text().splitlines()[:sentences]
    with open_engine([model], "cpu", weights="full") as engine:
        name = voice or next(iter(engine.capabilities().values())).speakers[0]
        spoken = [listen(engine, text, name) for text in texts]
        folder = next(iter(engine.checkpoints().values())).folder
        wanted = [scores(talker_of(engine), each) for each in spoken]
    found = []
    for weights in ("8bit", "4bit"):
        talker = load_talker(folder, torch.device("cpu"), torch.float32, weights)
        told = [scores(talker, each) for each in spoken]
        first = [apart(a[0], b[0]) for a, b in zip(wanted, told, strict=True)]
        rest = [apart(a[1], b[1]) for a, b in zip(wanted, told, strict=True)]
        means = np.mean([(*a, *b) for a, b in zip(first, rest, strict=True)], axis=0)
        found.append(Drift(weights, *(round(float(value), 4) for value in means)))
    for drift in found:
        print(
            f"{drift.weights:5} codebook 0: {100 * drift.first_differs:.1f} % others, "
            f"{drift.first_nats:.4f} nats; the rest: {100 * drift.rest_differs:.1f} % others, "
            f"{drift.rest_nats:.4f} nats"
        )
    frames = sum(len(each.codes) for each in spoken)
    print(json.dumps({"model": model, "frames": frames, "drift": [asdict(each) for each in found]}))


if __name__ == "__main__":
    typer.run(main)
