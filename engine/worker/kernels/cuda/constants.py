"""What kernels of the predictor know of it besides its layers' weights. Knows no kernels."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.model.configs import TransformerConfig
from engine.model.layers import rotary_embedding
from engine.model.predictor import Predictor
from engine.worker.kernels.cuda import weight_packing


def shape_constants(predictor: Predictor) -> dict[str, int | float]:
    """What kernels are compiled for."""
    return block_constants(predictor.model.config) | dict(
        WIDE=predictor.model.codec_embedding[0].embedding_dim,
        POSITIONS=len(predictor.lm_head) + 1,
        CODES=predictor.lm_head[0].out_features,
        KEPT_STEP=predictor.model.config.head_dim,
    )


def block_constants(config: TransformerConfig) -> dict[str, int | float]:
    """Of any transformer."""
    return dict(
        WIDTH=config.hidden_size, INNER=config.intermediate_size,
        HEADS=config.heads, KV_HEADS=config.kv_heads,
        HEAD_DIM=config.head_dim, HEAD_DIM_ROOT=math.sqrt(config.head_dim), EPS=config.norm_eps,
    )  # fmt: skip


def tables(predictor: Predictor) -> dict[str, Tensor]:
    """Norms of queries and keys [layers, 2, d], turns [positions, 2, d], embeddings as the
    predictor takes them [books, V, width], and where the talker's lie [books]."""
    network, config = predictor.model, predictor.model.config
    like = network.norm.weight
    embeddings = [table.weight for table in network.codec_embedding]
    positions = torch.arange(len(embeddings) + 1, device=like.device)[None]
    turn = rotary_embedding(positions, config.head_dim, config.rope_theta)
    turns = torch.stack([part[0, 0].to(like.dtype).float() for part in turn], 1)
    inputs = [predictor.small_to_mtp_projection(each) for each in embeddings]
    return dict(
        norms=weight_packing.norms(list(network.layers)),  # type: ignore[arg-type]
        turns=turns.contiguous(),
        # a NaN might look like what is absent, and be waited for forever
        inputs=torch.stack(inputs).nan_to_num(),
        embeddings=torch.tensor([each.data_ptr() for each in embeddings], device=like.device),
    )
