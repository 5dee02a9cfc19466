"""The numbers a checkpoint's config.json gives for its networks. No torch here.

Only what shapes the networks: special ids, speakers and languages belong to
engine.checkpoint. Every field is read from the file; nothing is assumed from the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BlockShape:
    """One transformer stack: talker, predictor or the codec's."""

    width: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    theta: float
    eps: float
    qk_norm: bool = True
    layer_scale: bool = False
    window: int | None = None  # positions seen, the current one included

    @classmethod
    def read(cls, raw: dict[str, Any], **extra: Any) -> BlockShape:
        return cls(
            width=raw["hidden_size"],
            inner=raw["intermediate_size"],
            layers=raw["num_hidden_layers"],
            heads=raw["num_attention_heads"],
            kv_heads=raw["num_key_value_heads"],
            head_dim=raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"],
            theta=float(raw["rope_theta"]),
            eps=float(raw["rms_norm_eps"]),
            **extra,
        )


@dataclass(frozen=True)
class TalkerShape:
    """Talker and predictor."""

    block: BlockShape
    predictor: BlockShape
    codes: int  # the talker's vocabulary, special ids included
    predictor_codes: int
    codebooks: int
    text_vocab: int
    text_width: int
    max_positions: int

    @classmethod
    def read(cls, raw: dict[str, Any]) -> TalkerShape:
        predictor = raw["code_predictor_config"]
        return cls(
            block=BlockShape.read(raw),
            predictor=BlockShape.read(predictor),
            codes=raw["vocab_size"],
            predictor_codes=predictor["vocab_size"],
            codebooks=raw["num_code_groups"],
            text_vocab=raw["text_vocab_size"],
            text_width=raw["text_hidden_size"],
            max_positions=raw["max_position_embeddings"],
        )


@dataclass(frozen=True)
class CodecShape:
    """The codec's decoder."""

    block: BlockShape
    codebook_size: int
    codebook_dim: int
    codebooks: int
    latent: int
    decoder_dim: int
    upsample: tuple[int, ...]  # before the decoder blocks, ×2 ×2
    rates: tuple[int, ...]  # of the decoder blocks, ×8 ×5 ×4 ×3

    @property
    def hop(self) -> int:
        """Samples a frame."""
        total = 1
        for rate in self.upsample + self.rates:
            total *= rate
        return total

    @classmethod
    def read(cls, raw: dict[str, Any]) -> CodecShape:
        return cls(
            block=BlockShape.read(
                raw, qk_norm=False, layer_scale=True, window=raw["sliding_window"]
            ),
            codebook_size=raw["codebook_size"],
            codebook_dim=raw["codebook_dim"],
            codebooks=raw["num_quantizers"],
            latent=raw["latent_dim"],
            decoder_dim=raw["decoder_dim"],
            upsample=tuple(raw["upsampling_ratios"]),
            rates=tuple(raw["upsample_rates"]),
        )


@dataclass(frozen=True)
class SpeakerShape:
    """The speaker encoder (ECAPA-TDNN)."""

    width: int
    sample_rate: int
    mel_bins: int
    channels: tuple[int, ...]
    kernels: tuple[int, ...]
    dilations: tuple[int, ...]
    attention_channels: int
    res2net_scale: int
    se_channels: int

    @classmethod
    def read(cls, raw: dict[str, Any]) -> SpeakerShape:
        # The published files leave most of these out: these are the package's defaults.
        return cls(
            width=raw.get("enc_dim", 1024),
            sample_rate=raw.get("sample_rate", 24_000),
            mel_bins=raw.get("mel_dim", 128),
            channels=tuple(raw.get("enc_channels", (512, 512, 512, 512, 1536))),
            kernels=tuple(raw.get("enc_kernel_sizes", (5, 3, 3, 3, 1))),
            dilations=tuple(raw.get("enc_dilations", (1, 2, 3, 4, 1))),
            attention_channels=raw.get("enc_attention_channels", 128),
            res2net_scale=raw.get("enc_res2net_scale", 8),
            se_channels=raw.get("enc_se_channels", 128),
        )
