"""The config.json of random checkpoints, and a byte tokenizer."""

from __future__ import annotations

from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

# talker width / inner / layers / heads, predictor layers, codec width / decoder width, vocabulary
SIZES: dict[str, dict[str, int]] = {
    "tiny": dict(width=64, inner=160, layers=3, heads=4, dim=32, predictor=48, predictor_inner=96,
                 predictor_layers=2, text=96, codec=32, latent=64, decoder=64, vocab=512),
    "mid": dict(width=384, inner=1024, layers=8, heads=6, dim=64, predictor=256,
                predictor_inner=768, predictor_layers=3,
                text=256, codec=192, latent=256, decoder=256, vocab=2048),
    "0.6B": dict(width=1024, inner=3072, layers=28, heads=16, dim=128, predictor=1024,
                 predictor_inner=3072, predictor_layers=5, text=2048, codec=512, latent=1024,
                 decoder=1536, vocab=151_936),
    "1.7B": dict(width=2048, inner=6144, layers=28, heads=16, dim=128, predictor=1024,
                 predictor_inner=3072, predictor_layers=5, text=2048, codec=512, latent=1024,
                 decoder=1536, vocab=151_936),
}  # fmt: skip
SPEAKERS = {
    "vivian": 3065,
    "serena": 3066,
    "uncle_fu": 3010,
    "ryan": 3061,
    "aiden": 2861,
    "eric": 2875,
}
LANGUAGES = {
    "chinese": 2055,
    "english": 2050,
    "german": 2053,
    "french": 2061,
    "sichuan_dialect": 2062,
}
DIALECTS = dict.fromkeys(SPEAKERS, False) | {"eric": "sichuan_dialect"}
SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tts_pad>",
    "<tts_text_bos>",
    "<tts_text_eod>",
)
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def tokenizer(size: str) -> Tokenizer:
    """Bytes, two words, and the special tokens at the top of the vocabulary."""
    vocab = SIZES[size]["vocab"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges, words = _merges("assistant", "user")
    entries = letters + [word for word in words if word not in letters]
    entries += [f"<unused_{i}>" for i in range(len(entries), vocab - len(SPECIAL))]
    made = Tokenizer(models.BPE({entry: i for i, entry in enumerate(entries)}, merges))
    split = pre_tokenizers.Split(Regex(WORDS), "isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(name, special=True) for name in SPECIAL])
    return made


def _merges(*words: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Merges that build each word letter by letter, and their results."""
    merges = [(word[:i], word[i]) for word in words for i in range(1, len(word))]
    return merges, [left + right for left, right in merges]


def config(size: str, kind: str) -> dict[str, Any]:
    s = SIZES[size]
    special = {name: s["vocab"] - len(SPECIAL) + i for i, name in enumerate(SPECIAL)}
    raw: dict[str, Any] = {
        "architectures": ["Qwen3TTSForConditionalGeneration"],
        "model_type": "qwen3_tts",
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "tts_model_size": "0b6" if size == "0.6B" else "1b7",
        "tts_model_type": kind,
        "im_start_token_id": special["<|im_start|>"],
        "im_end_token_id": special["<|im_end|>"],
        "tts_pad_token_id": special["<tts_pad>"],
        "tts_bos_token_id": special["<tts_text_bos>"],
        "tts_eos_token_id": special["<tts_text_eod>"],
        "talker_config": _talker(s, kind),
    }
    if kind == "base":
        raw["speaker_encoder_config"] = {"enc_dim": s["width"], "sample_rate": 24_000}
    return raw


def _talker(s: dict[str, int], kind: str) -> dict[str, Any]:
    custom = kind == "custom_voice"
    common = dict(hidden_act="silu", rms_norm_eps=1e-6, attention_bias=False, rope_theta=1e6)
    third = s["dim"] // 6
    return common | dict(
        vocab_size=3072, hidden_size=s["width"], intermediate_size=s["inner"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"],
        num_key_value_heads=s["heads"] // 2, head_dim=s["dim"], max_position_embeddings=32_768,
        rope_scaling={"interleaved": True, "rope_type": "default", "type": "default",
                      "mrope_section": [s["dim"] // 2 - 2 * third, third, third]},
        num_code_groups=16, text_hidden_size=s["text"], text_vocab_size=s["vocab"],
        codec_bos_id=2149, codec_eos_token_id=2150, codec_pad_id=2148, codec_think_id=2154,
        codec_nothink_id=2155, codec_think_bos_id=2156, codec_think_eos_id=2157,
        position_id_per_seconds=13, codec_language_id=LANGUAGES,
        spk_id=SPEAKERS if custom else {},
        spk_is_dialect=DIALECTS if custom else {},
        code_predictor_config=common | dict(
            vocab_size=2048, hidden_size=s["predictor"], intermediate_size=s["predictor_inner"],
            num_hidden_layers=s["predictor_layers"], num_attention_heads=s["heads"],
            num_key_value_heads=s["heads"] // 2, head_dim=s["dim"], num_code_groups=16,
            max_position_embeddings=65_536),
    )  # fmt: skip


def codec_config(size: str) -> dict[str, Any]:
    s = SIZES[size]
    big = s["codec"] == 512
    heads = s["codec"] // 32
    encoder = dict(
        model_type="mimi", audio_channels=1, codebook_size=2048, codebook_dim=256 if big else 64,
        vector_quantization_hidden_dimension=256 if big else 64, compress=2, dilation_growth_rate=2,
        head_dim=64 if big else 32, hidden_act="gelu", hidden_size=s["codec"],
        intermediate_size=4 * s["codec"], kernel_size=7, last_kernel_size=3,
        layer_scale_initial_scale=0.01, max_position_embeddings=8000, norm_eps=1e-5,
        num_attention_heads=8 if big else heads, num_key_value_heads=8 if big else heads,
        num_filters=64 if big else 16, num_hidden_layers=8 if big else 2,
        num_quantizers=32 if big else 16, num_residual_layers=1, num_semantic_quantizers=1,
        pad_mode="constant", residual_kernel_size=3, rope_theta=1e4, sampling_rate=24_000,
        sliding_window=250, trim_right_ratio=1.0, upsample_groups=s["codec"],
        upsampling_ratios=[8, 6, 5, 4], use_causal_conv=True, use_conv_shortcut=False,
        use_streaming=False, _frame_rate=12.5,
    )  # fmt: skip
    decoder = dict(
        codebook_size=2048, codebook_dim=512 if big else 128, hidden_size=s["codec"],
        intermediate_size=2 * s["codec"], latent_dim=s["latent"], num_attention_heads=heads,
        num_key_value_heads=heads, head_dim=s["codec"] // heads * 2 if big else 32,
        num_hidden_layers=8 if big else 4, num_quantizers=16, num_semantic_quantizers=1,
        sliding_window=72, decoder_dim=s["decoder"], upsample_rates=[8, 5, 4, 3],
        upsampling_ratios=[2, 2], rms_norm_eps=1e-5, rope_theta=1e4,
        layer_scale_initial_scale=0.01, max_position_embeddings=8000,
    )  # fmt: skip
    return {
        "architectures": ["Qwen3TTSTokenizerV2Model"],
        "model_type": "qwen3_tts_tokenizer_12hz",
        "encoder_config": encoder,
        "decoder_config": decoder,
        "encoder_valid_num_quantizers": 16,
        "input_sample_rate": 24_000,
        "output_sample_rate": 24_000,
        "decode_upsample_rate": 1920,
        "encode_downsample_rate": 1920,
    }
