"""What an engine's own process imports for a GPU before it is told what to open.

Touches no device: which one it will be is not known yet. Triton reads all of itself for the key of
what it keeps, half a second at a start's first kernel unless that is done here. Where a driver's
file is all there is of a GPU, a CPU speaks, for which Triton would lie in memory in vain.
"""

from __future__ import annotations

import logging

log = logging.getLogger("timbre")


def _import_torch() -> None:
    from engine.worker.worker import TorchWorker  # noqa: F401


def _has_gpu() -> bool:
    import torch

    return torch.cuda.device_count() > 0


def _import_triton() -> None:
    from engine.worker.codec.fused_decoder import FusedDecoder  # noqa: F401
    from engine.worker.kernels.triton import attention, linear  # noqa: F401

    try:
        from triton.runtime.cache import triton_key
    except ImportError:  # other versions of Triton
        return
    triton_key()


_import_torch()
try:
    if _has_gpu():
        _import_triton()
except Exception as error:  # it is not installed, or fails here: who loads a model says so
    log.debug("Triton cannot be imported: %s.", error)
