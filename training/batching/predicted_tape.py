"""Codes as a talker predicts them, with the waves that they are to become.

The talker reads true frames and predicts the next one of each: codebook 0 stays the true one, so
that content and timing are known, the others are sampled as in inference. Utterances lie end to
end. A decoder that learns from this tape makes up for what the talker gets wrong.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from engine.model.layers import Causal
from engine.model.talker import Talker
from training import model_config
from training import state as states
from training.batching.batches import NONE, Batch, Batcher
from training.batching.embedding import embed
from training.batching.self_rollout import TemperatureSampling
from training.data.speech_format import FRAME
from training.data.speech_pool import SpeechPool

TEMPERATURE = model_config.GENERATION["subtalker_temperature"]
IN_CONTEXT = 4  # one batch in so many has references before its utterances


class PredictedTape:
    """The batcher's dataset is one of this pool, all of it at its own speed."""

    def __init__(self, batcher: Batcher, pool: SpeechPool, rows: int) -> None:
        self._batcher, self._pool, self._rows = batcher, pool, rows
        self._talker = Talker(model_config.talker_config()).to(pool.device)
        self._talker.eval().requires_grad_(False)
        if pool.device.type == "cuda":
            self._talker.to(torch.bfloat16)
        self._read, self._renewed = -1, 0  # nanoseconds of the file that was read; batches so far
        self.codes = torch.zeros(0, model_config.CODEBOOKS, dtype=torch.long, device=pool.device)

    def follow(self, path: Path) -> None:
        """Take over a talker's saved weights if they are newer than those here."""
        saved = path.stat().st_mtime_ns
        if saved != self._read:
            self._talker.load_state_dict(states.load(path)["talker"])
            self._read = saved

    @torch.no_grad()
    def renew(self) -> None:
        """Predict the frames of another batch of utterances, in place of those before."""
        batch = self._batcher.draw_size(self._rows, self._renewed % IN_CONTEXT == 0)
        self._renewed += 1
        there = batch.target[..., 0] != NONE  # [B, T]
        self.codes = self._predict(batch, there)
        number = there.cumsum(1) - 1  # of each frame in its utterance
        sound = self._batcher.dataset.sounds[batch.utterance]  # [B, 3]
        self._starts = (sound[:, :1] + number * FRAME)[there]
        self._first, self._end = (sound[:, i, None].expand_as(there)[there] for i in (1, 2))
        self._phones = batch.phones[there].long()

    def _predict(self, batch: Batch, there: Tensor) -> Tensor:
        """Codes [N, codebooks] of the frames `there` [B, T]."""
        talker, device = self._talker, there.device
        positions = torch.arange(there.shape[1], device=device)[None]
        hidden = talker(embed(talker, batch), positions, Causal())[there]
        first = batch.target[there][:, 0]
        temperature = torch.full((len(first), 1), TEMPERATURE, device=device)
        choose = TemperatureSampling(temperature)
        sampled, _ = talker.code_predictor.sample(hidden, talker.embed_first(first), choose)
        return torch.cat((first[:, None], sampled), 1)

    def draw(self, batch: int, crop: int, heard: int) -> tuple[Tensor, Tensor, Tensor]:
        """Codes [B, codebooks, crop], waves [B, samples] and phones [B, n] of their last `heard`
        frames."""
        device = self.codes.device
        at = torch.randint(len(self.codes) - crop + 1, (batch, 1), device=device)
        rows = at + torch.arange(crop, device=device)
        last = rows[:, -heard:].flatten()
        samples = self._starts[last, None] + torch.arange(FRAME, device=device)
        inside = (samples >= self._first[last, None]) & (samples < self._end[last, None])
        waves = self._pool.cut(self._starts[last], FRAME) * inside
        codes = self.codes[rows].transpose(1, 2)
        return codes, waves.view(batch, -1), self._phones[last].view(batch, -1)
