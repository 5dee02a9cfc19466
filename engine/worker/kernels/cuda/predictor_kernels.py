"""The predictor's part of a frame on a GPU, by kernels of our own: codebooks 1-15.

Few rows go through one launch, twice as many through one of two crews, each on half of the card;
many go through the library's products. All make the same draws, from logits that differ by
rounding; what does not is not used.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import torch

from engine.model.predictor import Predictor
from engine.worker.kernels.cuda.constants import tables
from engine.worker.kernels.cuda.launch_config import MOST_ROWS, fit
from engine.worker.kernels.cuda.predictor_persistent import PersistentPredictor
from engine.worker.kernels.cuda.predictor_tiled import TiledPredictor
from engine.worker.kernels.cuda.verify import Form, agrees

log = logging.getLogger("timbre")

CREWS = 2


class PredictorKernels:
    """`form` is None where only the plain one serves."""

    def __init__(self, predictor: Predictor) -> None:
        known = tables(predictor)
        # kernels go by where these lie: they must not go away
        self._embeddings = [table.weight.detach() for table in predictor.model.codec_embedding]
        device = torch.cuda.get_device_properties(predictor.model.norm.weight.device)
        codes, shared = predictor.lm_head[0].out_features, device.shared_memory_per_block_optin

        def few(crews: int) -> PersistentPredictor | None:
            if device.major < 9:
                return None
            found = fit(
                predictor.model.config, device.multi_processor_count // crews, shared, codes
            )
            return found and PersistentPredictor(predictor, known, found, crews)

        self.few = _proven(predictor, lambda: few(1), (3, MOST_ROWS))
        self.crews = _proven(predictor, lambda: few(CREWS), (MOST_ROWS, CREWS * MOST_ROWS - 3))
        self.many = _proven(predictor, lambda: TiledPredictor(predictor, known), (3, 2 * MOST_ROWS))

    def form(self, rows: int) -> Form | None:
        """The quickest of those that serve."""
        if self.few and rows <= MOST_ROWS:
            return self.few
        return self.crews if self.crews and rows <= CREWS * MOST_ROWS else self.many


def _proven(
    predictor: Predictor, make: Callable[[], Form | None], rows: Iterable[int]
) -> Form | None:
    """What is made, if it draws what the plain form draws on this device."""
    try:
        form = make()
        if form is None or all(agrees(predictor, form, count) for count in rows):
            return form
        log.warning("A kernel of the predictor errs on this GPU and is not used. Please report it.")
    except RuntimeError as error:
        log.warning("A kernel of the predictor cannot be used here: %s", error)
    return None


def fused(predictor: Predictor) -> PredictorKernels | None:
    """None where no kernel knows the device or the shapes."""
    weight, config = predictor.model.norm.weight, predictor.model.config
    if weight.device.type != "cuda" or weight.dtype != torch.bfloat16:
        return None
    known = (
        config.head_dim == 128
        and config.heads <= 2 * config.kv_heads
        and not config.hidden_size % 512
    )
    codes, books = predictor.lm_head[0].out_features, len(predictor.lm_head)
    if not known or config.intermediate_size % 2 or codes % 512 or books > 15:
        return None
    recent = torch.cuda.get_device_capability(weight.device) >= (8, 0)
    # launches go to the current device
    here = weight.device.index in (None, torch.cuda.current_device())
    return PredictorKernels(predictor) if recent and here else None
