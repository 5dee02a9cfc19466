"""Compile-time constants of the predictor's and the talker's kernels, and the predictor's tables
besides its layers' weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.model.configs import TransformerConfig
from engine.model.layers import rotary_embedding
from engine.model.predictor import Predictor
from engine.worker.kernels.cuda import weight_packing


def predictor_constants(predictor: Predictor) -> dict[str, int | float]:
    config = predictor.model.config
    return transformer_constants(config) | dict(
        WIDE=predictor.model.codec_embedding[0].embedding_dim,
        POSITIONS=len(predictor.lm_head) + 1,
        CODES=predictor.lm_head[0].out_features,
        KV_STRIDE=config.head_dim,
    )


def transformer_constants(config: TransformerConfig) -> dict[str, int | float]:
    return dict(
        WIDTH=config.hidden_size, INNER=config.intermediate_size,
        HEADS=config.heads, KV_HEADS=config.kv_heads,
        HEAD_DIM=config.head_dim, HEAD_DIM_ROOT=math.sqrt(config.head_dim), EPS=config.norm_eps,
        POSTED=0,
    )  # fmt: skip


def predictor_tables(predictor: Predictor) -> dict[str, Tensor]:
    """Norms of queries and keys [layers, 2, d]; rotary cos and sin [positions, 2, d]; embeddings
    as the predictor's inputs [books, V, width]; addresses of the talker's embeddings [books]."""
    network, config = predictor.model, predictor.model.config
    like = network.norm.weight
    embeddings = [table.weight for table in network.codec_embedding]
    positions = torch.arange(len(embeddings) + 1, device=like.device)[None]
    cos_sin = rotary_embedding(positions, config.head_dim, config.rope_theta)
    rotary = torch.stack([part[0, 0].to(like.dtype).float() for part in cos_sin], 1)
    inputs = [predictor.small_to_mtp_projection(each) for each in embeddings]
    return dict(
        norms=weight_packing.stack_norms(list(network.layers)),
        rotary=rotary.contiguous(),
        inputs=torch.stack(inputs).nan_to_num(),  # keys must not be NaN
        embeddings=torch.tensor([each.data_ptr() for each in embeddings], device=like.device),
    )
