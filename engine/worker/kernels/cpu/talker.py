"""The talker's layers for one new position of some slots, on numba's kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.talker import Talker
from engine.worker.kernels.cpu.layers import (
    Scratch,
    array,
    layer_weights,
    multiply_all,
    pack,
    run_layers,
)
from engine.worker.kernels.cpu.threads import ThreadTeam
from engine.worker.state.kv_cache import KeyValueCache


class CpuTalker:
    def __init__(
        self, talker: Talker, cache: KeyValueCache, cos: Tensor, sin: Tensor, team: ThreadTeam
    ) -> None:
        rows, positions = cache.keys.shape[1], cache.keys.shape[3]
        model = talker.model
        self._team, self.threads = team, team.size
        self.weights = layer_weights(model)
        self._fixed = self.weights, array(cos), array(sin)
        weights, scales = pack([talker.codec_head])
        self._head = weights[0], scales[0]
        self._cache = array(cache.keys), array(cache.values)
        self._scratch = Scratch.allocate(model.config, rows, positions, team.size)

    def __call__(self, x: Tensor, index: Tensor, position: Tensor) -> Tensor:
        """New inputs [R, width] of these slots [R] at their positions [R] -> hidden [R, width]."""
        self._scratch.x[: len(x)] = array(x)
        rows = array(index), array(position), len(x), 1

        def kernel(number: int, threads: int) -> None:
            run_layers(number, threads, *self._fixed, *rows, *self._cache, self._scratch)

        self._team.run(kernel, self.threads)
        return torch.from_numpy(self._scratch.normed[0, : len(x)].copy())

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states [R, width] -> codebook 0's logits [R, codes]."""
        logits = torch.empty(len(hidden), len(self._head[0]))
        given = *self._head, array(hidden.contiguous()), len(hidden), array(logits)

        def kernel(number: int, threads: int) -> None:
            multiply_all(number, threads, *given, self._scratch.sync)

        self._team.run(kernel, self.threads)
        return logits
