"""A GPU's talker is loaded before the codec, so that its kernels are compiled meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from engine.checkpoints.checkpoint import LocalCheckpoint, SpecialIds
from engine.model.talker import Talker
from engine.worker.device import runs_cuda
from engine.worker.loading.model_loader import load_talker
from engine.worker.state.kv_cache import growing_keys
from engine.worker.state.memory_budget import can_grow
from engine.worker.worker_settings import WorkerSettings

if TYPE_CHECKING:
    from engine.worker.kernels.cuda.nvrtc import Source

log = logging.getLogger("timbre")


def load_ahead(
    checkpoint: LocalCheckpoint, device: torch.device, dtype: torch.dtype, settings: WorkerSettings
) -> Talker | None:
    """The talker, whose CUDA kernels other cores compile from now on; None: not with CUDA."""
    if not runs_cuda(device):
        return None
    talker = load_talker(checkpoint.folder, device, dtype, settings.weights)
    positions = settings.positions(checkpoint.max_positions)
    try:
        from engine.worker.kernels.cuda.nvrtc import compile_ahead

        compile_ahead([*_frame_sources(talker, checkpoint.ids), *_layer_sources(talker, positions)])
    except Exception as error:  # where kernels are selected it is said what comes of it
        log.debug("No kernel is compiled ahead: %s.", error)
    return talker


def _frame_sources(talker: Talker, ids: SpecialIds) -> Iterator[Source]:
    """Of the predictor, and of what is around it."""
    from engine.worker.kernels.cuda import glue_kernels, predictor_kernels

    yield from predictor_kernels.sources(talker.code_predictor)
    yield glue_kernels.source(talker, ids)


def _layer_sources(talker: Talker, positions: int) -> Iterator[Source]:
    """Of the talker's layers, for slots that grow."""
    from engine.worker.kernels.cuda import talker_kernels

    config, like = talker.model.config, talker.model.norm.weight
    launch = talker_kernels.find_launch(config, like)
    if launch is not None and can_grow(like.device):
        keys = growing_keys(config, positions, like.dtype)
        yield talker_kernels.source(config, launch, keys)
