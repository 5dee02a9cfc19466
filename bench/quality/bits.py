"""`python -m bench.quality.bits --model DIR`: what fewer bits of weights change, on CPUs.

The model speaks with full weights; the same inputs then pass through its layers in 8 bits, in 4,
and mixed (the talker's layers in 4, the predictor and all heads in 8). For each of 16 codebooks:
how often the most likely code is the same, and the Kullback-Leibler divergence from full weights in
nats. The inputs are those of full weights at every frame, so no difference adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import torch
import typer
from torch import Tensor

from bench import MINI
from engine import Engine, Preset, SpeechRequest, open_engine
from engine.model.layers import Causal
from engine.model.talker import Talker
from engine.worker.loading.model_loader import load_talker
from engine.worker.worker import TorchWorker

SENTENCES = Path(__file__).parents[2] / "training" / "data" / "heldout.txt"
MOST_FRAMES: Final = 80
LIMIT: Final = 0.02  # nats: what `auto` may change
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Heard:
    """The talker's inputs of one utterance, and its codes."""

    inputs: Tensor  # [T, width]
    codes: Tensor  # [F, 16]; frame 0 follows the last row of the prompt


@dataclass(frozen=True)
class Change:
    """What one form of the weights changes, by codebook."""

    weights: str
    same: tuple[float, ...]  # share of frames with the same most likely code
    nats: tuple[float, ...]

    @property
    def most(self) -> float:
        return max(self.nats)


def talker_of(engine: Engine) -> Talker:
    """The talker of the only model, whose layers run as they are: full weights take no kernel."""
    worker = engine._worker
    assert isinstance(worker, TorchWorker)
    (runner,) = worker._runners.values()
    return runner.talker


def listen(engine: Engine, talker: Talker, text: str, voice: str) -> Heard:
    """Speak and record the inputs of the first layer."""
    rows: list[Tensor] = []
    first = talker.model.layers[0]
    hook = first.register_forward_pre_hook(lambda _, given: rows.append(given[0].detach().clone()))
    try:
        request = SpeechRequest(text, Preset(voice), seed=0, max_frames=MOST_FRAMES)
        codes = np.concatenate([chunk.codes for chunk in engine.submit(request)])
    finally:
        hook.remove()
    return Heard(torch.cat([row.flatten(0, 1) for row in rows]), torch.from_numpy(codes).long())


@torch.inference_mode()
def scores(talker: Talker, heard: Heard) -> Tensor:
    """Log-probabilities of every frame's codes, codebook after codebook: 16 of [F, V]."""
    positions = torch.arange(len(heard.inputs))[None]
    hidden = talker(heard.inputs[None], positions, Causal())[0]
    start = len(heard.inputs) - len(heard.codes)
    before = hidden[max(start - 1, 0) :][: len(heard.codes)]
    rest = talker.predict(before, heard.codes[: len(before)]).float().log_softmax(-1)
    first = talker.logits(before).float().log_softmax(-1)
    size = max(first.shape[-1], rest.shape[-1])
    fill = float("-inf")
    every = [first, *rest.unbind(1)]
    padded = [
        torch.nn.functional.pad(each, (0, size - each.shape[-1]), value=fill) for each in every
    ]
    return torch.stack(padded)


def change(weights: str, full: Sequence[Tensor], other: Sequence[Tensor]) -> Change:
    """Compare log-probabilities [16, F, V] of some utterances."""
    a, b = torch.cat(list(full), 1), torch.cat(list(other), 1)
    same = (a.argmax(-1) == b.argmax(-1)).float().mean(1)
    possible = a.isfinite() & b.isfinite()
    apart = torch.where(possible, a.exp() * (a - b), 0.0).sum(-1).mean(1)
    return Change(weights, tuple(same.tolist()), tuple(apart.tolist()))


def mixed(folder: Path) -> Talker:
    """The talker's layers in 4 bits, the predictor in 8."""
    talker = load_talker(folder, CPU, torch.float32, "4bit")
    talker.code_predictor = load_talker(folder, CPU, torch.float32, "8bit").code_predictor
    return talker


def forms(folder: Path) -> dict[str, Callable[[], Talker]]:
    return {
        "8bit": lambda: load_talker(folder, CPU, torch.float32, "8bit"),
        "mixed": lambda: mixed(folder),
        "4bit": lambda: load_talker(folder, CPU, torch.float32, "4bit"),
    }


def table(changes: Sequence[Change]) -> list[str]:
    """A row for each codebook, then whether each form stays inside the limit."""
    names = " | ".join(f"{each.weights}: same; nats" for each in changes)
    lines = [f"| codebook | {names} |", "| --- " * (1 + len(changes)) + "|"]
    for book in range(len(changes[0].same)):
        cells = " | ".join(
            f"{100 * each.same[book]:.1f} %; {each.nats[book]:.4f}" for each in changes
        )
        lines.append(f"| {book} | {cells} |")
    for each in changes:
        verdict = "inside" if each.most <= LIMIT else "outside"
        lines.append(f"{each.weights}: at most {each.most:.4f} nats, {verdict} {LIMIT}")
    return lines


def main(
    model: Annotated[Path, typer.Option(help="a checkpoint folder")] = MINI,
    sentences: Annotated[int, typer.Option(min=1, help="how many are spoken")] = 20,
    voice: Annotated[str, typer.Option(help="a preset; else the first")] = "",
) -> None:
    """Measure a checkpoint."""
    texts = SENTENCES.read_text().splitlines()[:sentences]
    with open_engine([model], "cpu", weights="full") as engine:
        name = voice or next(iter(engine.capabilities().values())).speakers[0]
        spoken = [listen(engine, talker_of(engine), text, name) for text in texts]
    whole = load_talker(model, CPU, torch.float32)
    full = [scores(whole, each) for each in spoken]
    found = [
        change(weights, full, [scores(form, each) for each in spoken])
        for weights, form in ((name, make()) for name, make in forms(model).items())
    ]
    typer.echo(f"{sum(len(each.codes) for each in spoken)} frames of {model.name}, {name}")
    for line in table(found):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
