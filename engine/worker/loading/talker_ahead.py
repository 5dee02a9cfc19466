"""A GPU's talker is loaded before the codec, so that its kernels are compiled meanwhile."""

from __future__ import annotations

import logging

import torch

from engine.checkpoints.checkpoint import LocalCheckpoint, SpecialIds
from engine.model.talker import Talker
from engine.worker.device import runs_cuda
from engine.worker.loading.model_loader import load_talker

log = logging.getLogger("timbre")


def load_ahead(
    checkpoint: LocalCheckpoint, device: torch.device, dtype: torch.dtype, weights: str
) -> Talker | None:
    """The talker, whose CUDA kernels other cores compile from now on; None: not with CUDA."""
    if not runs_cuda(device):
        return None
    talker = load_talker(checkpoint.folder, device, dtype, weights)
    try:
        _compile_ahead(talker, checkpoint.ids)
    except Exception as error:  # where kernels are selected it is said what comes of it
        log.debug("No kernel is compiled ahead: %s.", error)
    return talker


def _compile_ahead(talker: Talker, ids: SpecialIds) -> None:
    """All but the kernel of the talker's layers, which needs the strides of slots that are not
    there yet."""
    from engine.worker.kernels.cuda import glue_kernels, nvrtc, predictor_kernels

    predictor = predictor_kernels.sources(talker.code_predictor)
    nvrtc.compile_ahead([*predictor, glue_kernels.source(talker, ids)])
