"""Networks of the trained layout, with fewer and narrower layers: training them takes no time."""

from __future__ import annotations

from dataclasses import replace

from engine.model.configs import TalkerConfig
from training import model_config

WHOLE = model_config.talker_config()


def small_talker_config() -> TalkerConfig:
    """As wide as speaker embeddings are, with the layers that attention guidance names."""
    from training.losses.attention_guidance import LAYERS  # which loads torch's compiler

    narrow = {"hidden_size": 64, "intermediate_size": 128, "heads": 2, "kv_heads": 1}
    return replace(
        WHOLE,
        transformer=replace(
            WHOLE.transformer, layers=max(LAYERS) + 1, intermediate_size=128, heads=2
        ),
        predictor=replace(WHOLE.predictor, layers=2, head_dim=32, **narrow),
    )
