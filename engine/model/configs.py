"""The numbers a checkpoint's config.json gives for its networks. No torch here.

Only what shapes the networks: special ids, speakers and languages belong to
engine.checkpoints.checkpoint. Every field is read from the file; nothing is assumed from the name.
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
class EncoderShape:
    """The codec's encoder: Mimi's, with the codebooks in use."""

    block: BlockShape
    filters: int
    rates: tuple[int, ...]  # of the convolutions, first to last: ×4 ×5 ×6 ×8
    stride: int  # of the step after the transformer
    kernel: int
    last_kernel: int
    residual_kernel: int
    residual_layers: int
    dilation_growth: int
    compress: int
    codebook_size: int
    codebook_dim: int
    semantic: int  # codebooks
    codebooks: int

    @property
    def hop(self) -> int:
        """Samples a frame."""
        total = self.stride
        for rate in self.rates:
            total *= rate
        return total

    @classmethod
    def read(cls, raw: dict[str, Any]) -> EncoderShape:
        """From the whole of speech_tokenizer/config.json; Mimi's defaults fill the gaps."""
        encoder = MIMI_DEFAULTS | raw["encoder_config"]
        rates = tuple(reversed(encoder["upsampling_ratios"]))
        stride = raw["encode_downsample_rate"]
        for rate in rates:
            stride //= rate
        encoder["rms_norm_eps"] = encoder["norm_eps"]
        return cls(
            # No window, whatever the file says: the reference attends to the whole past.
            block=BlockShape.read(encoder, qk_norm=False, layer_scale=True),
            filters=encoder["num_filters"],
            rates=rates,
            stride=stride,
            kernel=encoder["kernel_size"],
            last_kernel=encoder["last_kernel_size"],
            residual_kernel=encoder["residual_kernel_size"],
            residual_layers=encoder["num_residual_layers"],
            dilation_growth=encoder["dilation_growth_rate"],
            compress=encoder["compress"],
            codebook_size=encoder["codebook_size"],
            codebook_dim=encoder["vector_quantization_hidden_dimension"],
            semantic=encoder["num_semantic_quantizers"],
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
