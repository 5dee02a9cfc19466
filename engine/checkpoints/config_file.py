"""config.json as the reference package reads it: a key that is missing or null has its default.

The defaults are those of the package's configuration classes (qwen-tts 0.1.1). Values are not
checked here; the code that reads them does that.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from engine.checkpoints.files import CODEC_FOLDER, open_regular, read_json

CONFIG: dict[str, Any] = {
    "im_start_token_id": 151644,
    "im_end_token_id": 151645,
    "tts_pad_token_id": 151671,
    "tts_bos_token_id": 151672,
    "tts_eos_token_id": 151673,
}
TALKER: dict[str, Any] = {
    "vocab_size": 3072,
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 20,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000,
    "num_code_groups": 32,
    "text_hidden_size": 2048,
    "codec_pad_id": 4196,
    "codec_bos_id": 4197,
    "codec_eos_token_id": 4198,
    "codec_think_id": 4202,
    "codec_nothink_id": 4203,
    "codec_think_bos_id": 4204,
    "codec_think_eos_id": 4205,
}
PREDICTOR: dict[str, Any] = {
    "vocab_size": 2048,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 5,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000,
}
CODEC: dict[str, Any] = {
    "encoder_valid_num_quantizers": 16,
    "encode_downsample_rate": 1920,
    "encoder_config": {},
}
DECODER: dict[str, Any] = {
    "codebook_size": 2048,
    "hidden_size": 1024,
    "latent_dim": 1024,
    "rope_theta": 10000,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "sliding_window": 72,
    "intermediate_size": 3072,
    "rms_norm_eps": 1e-5,
    "num_hidden_layers": 8,
    "num_quantizers": 16,
    "upsample_rates": [8, 5, 4, 3],
    "upsampling_ratios": [2, 2],
    "decoder_dim": 1536,
}


def read_model_config(folder: Path) -> dict[str, Any]:
    """config.json of a checkpoint."""
    config = _filled(read_json(folder / "config.json"), CONFIG)
    if isinstance(config.get("talker_config"), dict):
        talker = config["talker_config"] = _filled(config["talker_config"], TALKER)
        predictor = talker.get("code_predictor_config") or {}
        if isinstance(predictor, dict):
            talker["code_predictor_config"] = _filled(predictor, PREDICTOR)
    return config


def read_codec_config(folder: Path) -> dict[str, Any]:
    """config.json of a checkpoint's speech tokenizer; `folder` is the tokenizer's."""
    config = _filled(read_json(folder / "config.json"), CODEC)
    for key, defaults in (("decoder_config", DECODER), ("encoder_config", {})):
        if isinstance(config.get(key), dict):
            config[key] = _filled(config[key], defaults)
    return config


def codec_digest(folder: Path) -> str:
    """A hash that identifies a codec: its decoder's sizes and its weights."""
    config = read_codec_config(folder / CODEC_FOLDER).get("decoder_config")
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for path in sorted((folder / CODEC_FOLDER).glob("*.safetensors")):
        with open_regular(path) as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


def _filled(raw: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Fill in defaults; transformers 5 writes rope_theta into rope_parameters."""
    rope = raw.get("rope_parameters")
    lifted = {"rope_theta": rope.get("rope_theta")} if isinstance(rope, dict) else {}
    present = {key: value for key, value in raw.items() if value is not None}
    return {**defaults, **{key: each for key, each in lifted.items() if each}, **present}
