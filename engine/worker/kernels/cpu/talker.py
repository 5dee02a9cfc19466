"""The talker's layers for one new position of some slots, on numba's kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.talker import Talker
from engine.worker.kernels.cpu.entries import Entry, fixed
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

    def __call__(self, x: Tensor, index: Tensor, position: Tensor) -> Tensor:
        """New inputs [R, width] of these slots [R] at their positions [R] -> hidden [R, width]."""
        self._scratch.x[: len(x)] = array(x)
        rows = array(index), array(position), len(x), 1
        kernel = _run_layers(*self._fixed, *rows, *self._cache, *self._memory)
        self._team.run(kernel, self.threads)
        return torch.from_numpy(self._scratch.normed[0, : len(x)].copy())

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states [R, width] -> codebook 0's logits [R, codes]."""
        logits = torch.empty(len(hidden), self._codes)
        given = *self._head, array(hidden.contiguous()), len(hidden), array(logits)
        self._team.run(_multiply_all(*given, self._scratch.sync), self.threads)
        return logits
