"""The sizes of a checkpoint's networks, as its config.json gives them. No torch here.

Special ids, speakers and languages belong to engine.checkpoints.checkpoint. Every size is read
from the file; none follows from the checkpoint's name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TransformerConfig:
    """One transformer: the talker's, the predictor's or one of the codec's."""

    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rope_theta: float
    norm_eps: float
    qk_norm: bool = True
    layer_scale: bool = False
    sliding_window: int | None = None  # positions, the current one included

    @classmethod
    def from_dict(cls, raw: dict[str, Any], **extra: Any) -> TransformerConfig:
        return cls(
            hidden_size=raw["hidden_size"],
            intermediate_size=raw["intermediate_size"],
            layers=raw["num_hidden_layers"],
            heads=raw["num_attention_heads"],
            kv_heads=raw["num_key_value_heads"],
            head_dim=raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"],
            rope_theta=float(raw["rope_theta"]),
            norm_eps=float(raw["rms_norm_eps"]),
            **extra,
        )


@dataclass(frozen=True)
class TalkerConfig:
    """Talker and predictor."""

    transformer: TransformerConfig
    predictor: TransformerConfig
    vocab_size: int  # of codebook 0, special ids included
    predictor_vocab_size: int
    codebooks: int
    text_vocab_size: int
    text_hidden_size: int
    max_position_embeddings: int

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> TalkerConfig:
        predictor = raw["code_predictor_config"]
        return cls(
            transformer=TransformerConfig.from_dict(raw),
            predictor=TransformerConfig.from_dict(predictor),
            vocab_size=raw["vocab_size"],
            predictor_vocab_size=predictor["vocab_size"],
            codebooks=raw["num_code_groups"],
            text_vocab_size=raw["text_vocab_size"],
            text_hidden_size=raw["text_hidden_size"],
            max_position_embeddings=raw["max_position_embeddings"],
        )


@dataclass(frozen=True)
class CodecConfig:
    """The codec's decoder."""

    transformer: TransformerConfig
    codebook_size: int
    codebook_dim: int
    codebooks: int
    latent_dim: int
    decoder_dim: int
    upsampling_ratios: tuple[int, ...]  # before the decoder blocks, ×2 ×2
    upsample_rates: tuple[int, ...]  # of the decoder blocks, ×8 ×5 ×4 ×3

    @property
    def hop(self) -> int:
        """Samples per frame."""
        return math.prod(self.upsampling_ratios + self.upsample_rates)

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> CodecConfig:
        return cls(
            transformer=TransformerConfig.from_dict(
                raw, qk_norm=False, layer_scale=True, sliding_window=raw["sliding_window"]
            ),
            codebook_size=raw["codebook_size"],
            codebook_dim=raw["codebook_dim"],
            codebooks=raw["num_quantizers"],
            latent_dim=raw["latent_dim"],
            decoder_dim=raw["decoder_dim"],
            upsampling_ratios=tuple(raw["upsampling_ratios"]),
            upsample_rates=tuple(raw["upsample_rates"]),
        )


@dataclass(frozen=True)
class EncoderConfig:
    """The codec's encoder: Mimi's, with the codebooks in use."""

    transformer: TransformerConfig
    num_filters: int
    downsample_rates: tuple[int, ...]  # of the convolutions, first to last: ×4 ×5 ×6 ×8
    downsample_stride: int  # of the convolution behind the transformer
    kernel_size: int
    last_kernel_size: int
    residual_kernel_size: int
    residual_layers: int
    dilation_growth: int
    compress: int
    codebook_size: int
    codebook_dim: int
    semantic_codebooks: int
    codebooks: int

    @property
    def hop(self) -> int:
        """Samples per frame."""
        return self.downsample_stride * math.prod(self.downsample_rates)

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> EncoderConfig:
        """`raw` is the whole of speech_tokenizer/config.json; Mimi's defaults fill the gaps."""
        encoder = MIMI_DEFAULTS | raw["encoder_config"]
        rates = tuple(reversed(encoder["upsampling_ratios"]))
        stride = raw["encode_downsample_rate"]
        for rate in rates:
            stride //= rate
        encoder["rms_norm_eps"] = encoder["norm_eps"]
        return cls(
            # No window, whatever the file says: the reference attends to the whole past.
            transformer=TransformerConfig.from_dict(encoder, qk_norm=False, layer_scale=True),
            num_filters=encoder["num_filters"],
            downsample_rates=rates,
            downsample_stride=stride,
            kernel_size=encoder["kernel_size"],
            last_kernel_size=encoder["last_kernel_size"],
            residual_kernel_size=encoder["residual_kernel_size"],
            residual_layers=encoder["num_residual_layers"],
            dilation_growth=encoder["dilation_growth_rate"],
            compress=encoder["compress"],
            codebook_size=encoder["codebook_size"],
            codebook_dim=encoder["vector_quantization_hidden_dimension"],
            semantic_codebooks=encoder["num_semantic_quantizers"],
            codebooks=raw["encoder_valid_num_quantizers"],
        )


MIMI_DEFAULTS: dict[str, Any] = {
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "rope_theta": 10_000.0,
    "norm_eps": 1e-5,
    "num_filters": 64,
    "upsampling_ratios": (8, 6, 5, 4),
    "kernel_size": 7,
    "last_kernel_size": 3,
    "residual_kernel_size": 3,
    "num_residual_layers": 1,
    "dilation_growth_rate": 2,
    "compress": 2,
    "codebook_size": 2048,
    "vector_quantization_hidden_dimension": 256,
    "num_semantic_quantizers": 1,
}


@dataclass(frozen=True)
class SpeakerConfig:
    """The speaker encoder (ECAPA-TDNN)."""

    embedding_dim: int
    sample_rate: int
    mel_bins: int
    channels: tuple[int, ...]
    kernel_sizes: tuple[int, ...]
    dilations: tuple[int, ...]
    attention_channels: int
    res2net_scale: int
    se_channels: int

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> SpeakerConfig:
        # The published files leave most of these out: these are the package's defaults.
        return cls(
            embedding_dim=raw.get("enc_dim", 1024),
            sample_rate=raw.get("sample_rate", 24_000),
            mel_bins=raw.get("mel_dim", 128),
            channels=tuple(raw.get("enc_channels", (512, 512, 512, 512, 1536))),
            kernel_sizes=tuple(raw.get("enc_kernel_sizes", (5, 3, 3, 3, 1))),
            dilations=tuple(raw.get("enc_dilations", (1, 2, 3, 4, 1))),
            attention_channels=raw.get("enc_attention_channels", 128),
            res2net_scale=raw.get("enc_res2net_scale", 8),
            se_channels=raw.get("enc_se_channels", 128),
        )
