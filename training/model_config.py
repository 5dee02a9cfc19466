"""The sizes of Timbre Mini: its config files, and the shapes that the engine reads from them.

Everything here is written to presets/mini/config.json and speech_tokenizer/config.json in the
published layout. No training settings, no torch.
"""

from __future__ import annotations

from typing import Any

from engine.model.configs import SpeakerConfig, TalkerConfig
from training.data.speakers import NAMED
from training.tokenizer import SIZE, SPECIAL

CODES = 256  # entries of each codebook
DECODER_DIM = 512  # channels of the codec's decoder where it has most of them
WIDTH = 320  # of the talker, and of a speaker embedding
CODEBOOKS = 16
SPECIAL_CODES = 1024  # ids above CODES: never sampled, except end of speech
ENGLISH = CODES + 2
FIRST_SPEAKER = CODES + 300
MAX_LETTERS = 180  # of one run: training sentences have at most 10.5 s
IDS = {
    "codec_pad_id": CODES + 100,
    "codec_bos_id": CODES + 101,
    "codec_eos_token_id": CODES + 102,
    "codec_think_id": CODES + 106,
    "codec_nothink_id": CODES + 107,
    "codec_think_bos_id": CODES + 108,
    "codec_think_eos_id": CODES + 109,
}
GENERATION = {
    "do_sample": True,
    "repetition_penalty": 1.0,
    "temperature": 0.5,
    "top_p": 0.95,
    "top_k": 50,
    "subtalker_dosample": True,
    "subtalker_temperature": 0.9,
    "subtalker_top_p": 0.95,
    "subtalker_top_k": 50,
    "max_new_tokens": 750,
}
# Presets, the most natural first, as they are listed.
LISTED = (
    "vera",
    "robert",
    "karl",
    "angus",
    "fergus",
    "june",
    "felix",
    "clara",
    "otto",
    "noah",
    "iris",
    "milo",
)
# Instructions that were taught, each with the words that ask for it.
INSTRUCTIONS = {
    "Speak slowly.": ("slow slowly slower unhurried no-hurry time leisurely calm calmly relaxed"),
    "Speak fast.": (
        "fast faster quick quickly rapid rapidly rush rushed hurry hurried hurriedly speed"
    ),
    "Very cheerful.": (
        "cheerful cheerfully happy happily excited excitement excitedly lively joy joyful "
        "joyfully delighted enthusiastic enthusiasm enthusiastically energetic energy "
        "expressive smile smiling bright dramatic dramatically"
    ),
    "In a monotone.": (
        "monotone monotonous flat bored boring robot robotic dull even level deadpan "
        "emotionless no-emotion no-expression no-feeling tone"
    ),
    "description": (
        "man woman male female girl boy lady gentleman youth person narrator speaker young "
        "old older elderly mature adult low high deep pitch pitched dark bright warm full "
        "mellow soft thin clear sharp light slow slowly unhurried calm fast quick quickly "
        "hurried hurry no-hurry pace steadily takes time medium ordinary normal neutral "
        "speaking talks story narration reads imagine hear"
    ),
}

_BLOCK: dict[str, Any] = {
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "rope_theta": 1_000_000.0,
}


def predictor() -> dict[str, Any]:
    return {
        **_BLOCK,
        "vocab_size": CODES,
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 6,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "max_position_embeddings": 256,
        "num_code_groups": CODEBOOKS,
    }


def talker() -> dict[str, Any]:
    rows = [voice.name for voice in NAMED]  # of the preset vectors
    return {
        **_BLOCK,
        **IDS,
        "vocab_size": CODES + SPECIAL_CODES,
        "hidden_size": WIDTH,
        "intermediate_size": 896,
        "num_hidden_layers": 12,
        "num_attention_heads": 5,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "attention_dropout": 0,
        "max_position_embeddings": 4096,
        "use_sliding_window": False,
        "sliding_window": None,
        "rope_scaling": {
            "interleaved": True,
            "mrope_section": [12, 10, 10],
            "rope_type": "default",
            "type": "default",
        },
        "num_code_groups": CODEBOOKS,
        "text_hidden_size": 256,
        "text_vocab_size": SIZE + len(SPECIAL),
        "position_id_per_seconds": 13,
        "codec_language_id": {"english": ENGLISH},
        "spk_id": {name: FIRST_SPEAKER + rows.index(name) for name in LISTED},
        "spk_is_dialect": dict.fromkeys(LISTED, False),
        "code_predictor_config": predictor(),
    }


def speaker_encoder() -> dict[str, Any]:
    return {
        "enc_dim": WIDTH,
        "sample_rate": 24_000,
        "enc_channels": [96, 96, 96, 96, 288],
        "enc_attention_channels": 64,
        "enc_res2net_scale": 4,
        "enc_se_channels": 32,
    }


def model(assistant_token: int) -> dict[str, Any]:
    """config.json; special text ids follow the tokenizer's pieces in the order of SPECIAL."""
    text = {name: SIZE + index for index, name in enumerate(SPECIAL)}
    return {
        "architectures": ["Qwen3TTSForConditionalGeneration"],
        "model_type": "qwen3_tts",
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "tts_model_size": "mini",
        "tts_model_type": "custom_voice",
        "tts_capabilities": ["custom_voice", "base", "voice_design"],
        "tts_max_letters": MAX_LETTERS,
        "tts_text_form": "spoken",  # what is written is spelt out for it
        "tts_instructions": INSTRUCTIONS,
        "assistant_token_id": assistant_token,
        "im_start_token_id": text["<|im_start|>"],
        "im_end_token_id": text["<|im_end|>"],
        "tts_pad_token_id": text["<tts_pad>"],
        "tts_bos_token_id": text["<tts_text_bos>"],
        "tts_eos_token_id": text["<tts_text_eod>"],
        "talker_config": talker(),
        "speaker_encoder_config": speaker_encoder(),
    }


def codec_encoder() -> dict[str, Any]:
    return {
        "model_type": "mimi",
        "audio_channels": 1,
        "codebook_dim": 64,
        "codebook_size": CODES,
        "compress": 2,
        "dilation_growth_rate": 2,
        "head_dim": 32,
        "hidden_act": "gelu",
        "hidden_size": 128,
        "intermediate_size": 256,
        "kernel_size": 7,
        "last_kernel_size": 3,
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
        "norm_eps": 1e-5,
        "num_attention_heads": 4,
        "num_filters": 24,
        "num_hidden_layers": 2,
        "num_key_value_heads": 4,
        "num_quantizers": CODEBOOKS,
        "num_residual_layers": 1,
        "num_semantic_quantizers": 1,
        "pad_mode": "constant",
        "residual_kernel_size": 3,
        "rope_theta": 10000.0,
        "sampling_rate": 24_000,
        "sliding_window": 250,
        "trim_right_ratio": 1.0,
        "upsample_groups": 128,
        "upsampling_ratios": [8, 6, 5, 4],
        "use_causal_conv": True,
        "use_conv_shortcut": False,
        "use_streaming": False,
        "vector_quantization_hidden_dimension": 64,
        "_frame_rate": 12.5,
    }


def codec_decoder() -> dict[str, Any]:
    return {
        "codebook_dim": 128,
        "codebook_size": CODES,
        "hidden_size": 160,
        "intermediate_size": 480,
        "latent_dim": 160,
        "num_attention_heads": 5,
        "num_key_value_heads": 5,
        "head_dim": 32,
        "num_hidden_layers": 6,
        "num_quantizers": CODEBOOKS,
        "num_semantic_quantizers": 1,
        "sliding_window": 72,
        "decoder_dim": DECODER_DIM,
        "upsample_rates": [8, 5, 4, 3],
        "upsampling_ratios": [2, 2],
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000,
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
    }


def codec() -> dict[str, Any]:
    """speech_tokenizer/config.json."""
    return {
        "architectures": ["Qwen3TTSTokenizerV2Model"],
        "model_type": "qwen3_tts_tokenizer_12hz",
        "encoder_config": codec_encoder(),
        "decoder_config": codec_decoder(),
        "encoder_valid_num_quantizers": CODEBOOKS,
        "input_sample_rate": 24_000,
        "output_sample_rate": 24_000,
        "decode_upsample_rate": 1920,
        "encode_downsample_rate": 1920,
    }


PREPROCESSOR = {
    "feature_extractor_type": "EncodecFeatureExtractor",
    "feature_size": 1,
    "padding_side": "right",
    "padding_value": 0.0,
    "return_attention_mask": True,
    "sampling_rate": 24_000,
    "chunk_length_s": None,
    "overlap": None,
}


def talker_config() -> TalkerConfig:
    return TalkerConfig.from_dict(talker())


def speaker_config() -> SpeakerConfig:
    return SpeakerConfig.from_dict(speaker_encoder())
