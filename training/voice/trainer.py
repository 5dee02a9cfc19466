"""Learns a voice's rows, or an adapter, epoch by epoch.

    loss = acoustic codebooks of the recordings
         + FIRST * codebook 0 of the recordings
         + HOLD * divergence of codebook 0 from the untouched model on general texts

Codebook 0 carries the words, and a few minutes of a person teach more of these minutes' words than
of the language; so it is held, and what is learned of it is little. The state is written after each
epoch: weights, Adam's moments and what was judged.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from engine import CheckpointError, write_atomic
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.model.talker import Talker
from training.voice.adapter import Adapter
from training.voice.hold import Held, held
from training.voice.losses import first_loss, forward, predicting, rest_losses
from training.voice.rows import LearnedRows
from training.voice.sequences import LAYOUTS, Batch, Line, LineRows, SequenceMaker, batch_of

WARM_UP = 10  # steps, of short trainings a tenth of all
LAST = 0.1  # of the rate, at the end
BATCH_ROWS = 500  # rows of a batch, empty ones too: so a few minutes are many steps
FRAMES = 160  # of a batch whose acoustic codebooks are learned
HEARD = 4  # acoustic codebooks that count whole; the next four half, the rest a tenth
FIRST, HOLD = 0.1, 3.0
LONGEST_STEP = 1.0  # norm of the gradient
AUTO = 5  # one line in so many is learned without its language


Learner: TypeAlias = LearnedRows | Adapter


@dataclass(frozen=True)
class Losses:
    """Means of an epoch."""

    first: float
    rest: float
    hold: float


class VoiceTrainer:
    """Called within `learner.attached(talker)`; `prepare` alone hears the model as it is."""

    def __init__(
        self,
        checkpoint: LocalCheckpoint,
        talker: Talker,
        learner: Learner,
        epochs: int,
        language: str = "auto",
        seed: int = 0,
        first: float = FIRST,
        hold: float = HOLD,
    ) -> None:
        self.checkpoint, self.talker, self.learner = checkpoint, talker, learner
        self.epochs, self.epoch, self.step = epochs, 0, 0
        self._language, self._seed = language, seed
        self._first, self._hold = first, hold
        self._device = learner.vector.device
        count = len(learner()) - 1  # learned rows
        self._learned = SequenceMaker(checkpoint, talker, count)
        self._plain = SequenceMaker(checkpoint, talker, 0)
        self._optimizer = torch.optim.Adam(learner.parameters(), betas=(0.9, 0.98))
        self._weights = codebook_weights(talker.config.codebooks - 1).to(self._device)
        self._batches: list[Batch] = []
        self._unseen: list[Batch] = []
        self._held: list[Held] = []

    def prepare(
        self, lines: Sequence[Line], unseen: Sequence[Line], general: Sequence[Line]
    ) -> None:
        """Lay out what is learned from, what is only measured, and what is held to."""
        self._batches = [self._batch(self._learned, group) for group in self._groups(lines)]
        self._unseen = [self._batch(self._learned, group) for group in self._groups(unseen)]
        groups = self._groups(general)
        plain, learned = (
            [self._batch(maker, group) for group in groups]
            for maker in (self._plain, self._learned)
        )
        self._held = held(self.talker, plain, learned, self.learner.vector)

    def _groups(self, lines: Sequence[Line]) -> list[list[tuple[int, Line]]]:
        """Numbered lines of about equal length together, as many as fill a batch."""
        lengths = {
            number: len(self._laid(self._learned, number, line))
            for number, line in enumerate(lines)
        }
        groups: list[list[tuple[int, Line]]] = []
        for number in sorted(lengths, key=lengths.__getitem__):
            if not groups or (len(groups[-1]) + 1) * lengths[number] > BATCH_ROWS:
                groups.append([])
            groups[-1].append((number, lines[number]))
        return groups

    def _batch(self, maker: SequenceMaker, group: Sequence[tuple[int, Line]]) -> Batch:
        rows = [self._laid(maker, number, line) for number, line in group]
        return batch_of(rows, self.checkpoint.ids.tts_pad, self._device)

    def _laid(self, maker: SequenceMaker, number: int, line: Line) -> LineRows:
        """In both layouts by turns, a few without their language."""
        language = "auto" if number % AUTO == AUTO - 1 else self._language
        return maker.make(line, language, LAYOUTS[number % len(LAYOUTS)])

    def run_epoch(self, stopping: Callable[[], bool]) -> Iterator[float]:
        """Train one epoch; yields the share that is done. Ends early, without its state, if it is
        to stop."""
        order = list(range(len(self._batches)))
        random.Random(self._seed + self.epoch).shuffle(order)
        torch.manual_seed(self._seed + self.epoch)
        for done, number in enumerate(order, 1):
            if stopping():
                return
            self._advance(self._batches[number])
            yield done / len(order)
        self.epoch += 1

    def _advance(self, batch: Batch) -> None:
        total = max(1, self.epochs * len(self._batches))
        warm = max(1, min(WARM_UP, total // 10))
        decay = LAST + (1 - LAST) * 0.5 * (1 + math.cos(math.pi * min(1, self.step / total)))
        for group in self._optimizer.param_groups:
            group["lr"] = self.learner.RATE * min(1.0, (self.step + 1) / warm) * decay
        self._optimizer.zero_grad()
        first, rest = self._losses(batch, FRAMES)
        (rest + self._first * first).backward()
        if self._held and self._hold:
            held = self._held[self.step % len(self._held)]
            logits = forward(self.talker, held.batch, self.learner()).logits
            (self._hold * held.loss(logits)).backward()
        torch.nn.utils.clip_grad_norm_(self.learner.parameters(), LONGEST_STEP)
        self._optimizer.step()
        self.learner.limit()
        self.step += 1

    def _losses(self, batch: Batch, most: int | None) -> tuple[Tensor, Tensor]:
        made = forward(self.talker, batch, self.learner())
        end = self.checkpoint.ids.codec_eos
        first = first_loss(made.logits, batch, end)[batch.first].mean()
        where = predicting(batch)
        if most is not None:
            where = where[torch.randperm(len(where), device=where.device)[:most]]
        target = batch.target.flatten(0, 1)[where]
        rest = rest_losses(self.talker, made.hidden.flatten(0, 1)[where], target)
        return first, rest @ self._weights

    @torch.no_grad()
    def measure(self) -> Losses:
        """On lines and texts that are not learned from."""
        pairs = [self._losses(batch, None) for batch in self._unseen]
        first, rest = (float(torch.stack(values).mean()) for values in zip(*pairs, strict=True))
        moved = [
            held.loss(forward(self.talker, held.batch, self.learner()).logits)
            for held in self._held
        ]
        return Losses(first, rest, float(torch.stack(moved).mean()) if moved else 0.0)

    def save(self, path: Path, digest: str) -> None:
        """Everything that the next epoch needs."""
        tensors = {f"learned.{name}": value for name, value in self.learner.state_dict().items()}
        for name, weight in self.learner.named_parameters():
            for key, value in self._optimizer.state[weight].items():
                tensors[f"adam.{key}.{name}"] = torch.as_tensor(value)
        tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        metadata = {"epoch": self.epoch, "step": self.step, "epochs": self.epochs, "digest": digest}
        write_atomic(path, bytes(save(tensors, {"state": json.dumps(metadata)})))

    def resume(self, path: Path, digest: str) -> None:
        """Go on from a state. Raises CheckpointError for that of another model."""
        with safe_open(path, "pt") as file:
            metadata = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["digest"] != digest:
            raise exchanged()
        self.epoch, self.step = metadata["epoch"], metadata["step"]
        learned = {name.removeprefix("learned."): value for name, value in tensors.items()
                   if name.startswith("learned.")}  # fmt: skip
        self.learner.load_state_dict(learned)
        for name, weight in self.learner.named_parameters():
            self._optimizer.state[weight] = {
                key: tensors[f"adam.{key}.{name}"].to("cpu" if key == "step" else self._device)
                for key in ("step", "exp_avg", "exp_avg_sq")
            }


def exchanged() -> CheckpointError:
    return CheckpointError(
        "The model was exchanged since this training began. Load the one it began with, or begin "
        "again."
    )


def codebook_weights(books: int) -> Tensor:
    """What each acoustic codebook counts, one in all: the first are most of what is heard."""
    weights = torch.tensor([1.0] * HEARD + [0.5] * HEARD + [0.1] * books)[:books]
    return weights / weights.sum()
