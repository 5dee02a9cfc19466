"""The talker's layers and logits for one new position of some slots, on numba's kernels."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.talker import Talker
from engine.worker.kernels.cpu.entries import Called, Entry, fixed
from engine.worker.kernels.cpu.layers import (
    Floats,
    Scratch,
    array,
    layer_weights,
    multiply_all,
    pack,
    run_layers,
)
from engine.worker.kernels.cpu.threads import ThreadTeam
from engine.worker.state.kv_cache import KeyValueCache

_run_layers, _multiply_all = Entry(run_layers), Entry(multiply_all)


class CpuTalker:
    def __init__(
        self, talker: Talker, cache: KeyValueCache, cos: Tensor, sin: Tensor, team: ThreadTeam
    ) -> None:
        rows, positions = cache.keys.shape[1], cache.keys.shape[3]
        model = talker.model
        self._team, self.threads = team, team.size
        self.weights = layer_weights(model)
        self._fixed = fixed(self.weights, array(cos), array(sin))
        weights, scales = pack([talker.codec_head])
        self._head, self._codes = (weights[0], scales[0]), talker.codec_head.out_features
        self._cache = fixed(array(cache.keys), array(cache.values))
        self._scratch = Scratch.allocate(model.config, rows, positions, team.size)
        self._memory = fixed(self._scratch)
        self._made: tuple[Tensor, Tensor] | None = None  # the last hidden states and their logits

    def __call__(self, x: Tensor, index: Tensor, position: Tensor) -> Tensor:
        """New inputs [R, width] of these slots [R] at their positions [R] -> hidden [R, width]."""
        self._scratch.x[: len(x)] = array(x)
        rows = array(index), array(position), len(x), 1
        layers = _run_layers(*self._fixed, *rows, *self._cache, *self._memory)
        normed = self._scratch.normed[0, : len(x)]
        head, logits = self._multiply(normed)

        def run(number: int, threads: int) -> None:
            layers(number, threads)
            head(number, threads)

        self._team.run(run, self.threads)  # both at once: waking many threads takes time
        self._made = torch.from_numpy(normed.copy()), logits
        return self._made[0]

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states [R, width] -> codebook 0's logits [R, codes]."""
        if self._made and hidden is self._made[0]:
            return self._made[1]
        head, logits = self._multiply(array(hidden.contiguous()))
        self._team.run(head, self.threads)
        return logits

    def _multiply(self, hidden: Floats) -> tuple[Called, Tensor]:
        """The head's kernel, and where it puts the logits."""
        logits = torch.empty(len(hidden), self._codes)
        given = *self._head, hidden, len(hidden), array(logits)
        return _multiply_all(*given, self._scratch.sync), logits
