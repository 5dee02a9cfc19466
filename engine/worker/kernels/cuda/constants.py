"""What kernels of the predictor know of it besides its layers' weights. Knows no kernels."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.model.configs import BlockShape
from engine.model.layers import rotation
from engine.model.predictor import Predictor
from engine.worker.kernels.cuda import weight_packing


def shape_constants(predictor: Predictor) -> dict[str, int | float]:
    """What kernels are compiled for."""
    return block_constants(predictor.model.shape) | dict(
        WIDE=predictor.model.codec_embedding[0].embedding_dim,
        POSITIONS=len(predictor.lm_head) + 1,
        CODES=predictor.lm_head[0].out_features,
        KEPT_STEP=predictor.model.shape.head_dim,
    )


def block_constants(shape: BlockShape) -> dict[str, int | float]:
    """Of any transformer."""
    return dict(
        WIDTH=shape.width, INNER=shape.inner, HEADS=shape.heads, KV_HEADS=shape.kv_heads,
        HEAD_DIM=shape.head_dim, HEAD_DIM_ROOT=math.sqrt(shape.head_dim), EPS=shape.eps,
    )  # fmt: skip


def tables(predictor: Predictor) -> dict[str, Tensor]:
    """Norms of queries and keys [layers, 2, d], turns [positions, 2, d], embeddings as the
    predictor takes them [books, V, width], and where the talker's lie [books]."""
    network, shape = predictor.model, predictor.model.shape
    like = network.norm.weight
    embeddings = [table.weight for table in network.codec_embedding]
    positions = torch.arange(len(embeddings) + 1, device=like.device)[None]
    turn = rotation(positions, shape.head_dim, shape.theta)
    turns = torch.stack([part[0, 0].to(like.dtype).float() for part in turn], 1)
    inputs = [predictor.small_to_mtp_projection(each) for each in embeddings]
    return dict(
        norms=weight_packing.norms(list(network.layers)),  # type: ignore[arg-type]
        turns=turns.contiguous(),
        # a NaN might look like what is absent, and be waited for forever
        inputs=torch.stack(inputs).nan_to_num(),
        embeddings=torch.tensor([each.data_ptr() for each in embeddings], device=like.device),
    )
