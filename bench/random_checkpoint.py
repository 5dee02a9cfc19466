"""`python -m bench.random_checkpoint OUT --size 1.7B`: random weights in the published layout.

The shapes are those of the published checkpoints (or smaller), so speed and memory can be measured
without the real weights. The end-of-speech row is zero, so the model speaks until its frame limit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

import torch
import typer
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import nn

from bench.random_config import SIZES, codec_config, config, tokenizer
from engine.model.codec import CodecDecoder
from engine.model.configs import CodecConfig, EncoderConfig, SpeakerConfig, TalkerConfig
from engine.model.encoder import CodecEncoder
from engine.model.speaker import SpeakerEncoder
from engine.model.talker import Talker
from engine.worker.loading.weight_loader import export

Network = TypeVar("Network", bound=nn.Module)

GENERATION = {
    "do_sample": True,
    "temperature": 0.9,
    "top_k": 50,
    "top_p": 1.0,
    "repetition_penalty": 1.05,
    "subtalker_dosample": True,
    "subtalker_temperature": 0.9,
    "subtalker_top_k": 50,
    "subtalker_top_p": 1.0,
    "max_new_tokens": 8192,
}
EXTRACTOR = {
    "feature_extractor_type": "EncodecFeatureExtractor",
    "feature_size": 1,
    "sampling_rate": 24_000,
    "padding_side": "right",
    "padding_value": 0.0,
}


def scatter(network: Network, generator: torch.Generator) -> Network:
    """Random weights that keep signals in range."""
    for name, value in [*network.named_parameters(), *network.named_buffers()]:
        if "embedding_sum" in name or "embed_sum" in name:
            value.normal_(generator=generator)
        elif value.dim() > 1:
            value.normal_(0, value[0].numel() ** -0.5, generator=generator)
    return network


def save_tokenizer(folder: Path, made: Tokenizer) -> None:
    """Write it as one file, and as the files that published folders hold, which others read."""
    made.save(str(folder / "tokenizer.json"))
    model = json.loads(made.to_str())["model"]
    added = {
        str(i): {"content": token.content, "special": token.special}
        for i, token in made.get_added_tokens_decoder().items()
    }
    write_json(folder / "vocab.json", model["vocab"])
    write_json(folder / "tokenizer_config.json", {"added_tokens_decoder": added})
    lines = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"])]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def save(path: Path, parts: dict[str, nn.Module], dtype: torch.dtype) -> None:
    """Write networks by prefix to one file."""
    tensors = {
        name: tensor.to(dtype) if tensor.is_floating_point() else tensor
        for name, tensor in export(parts).items()
    }
    save_file(tensors, path, metadata={"format": "pt"})


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1))


@torch.no_grad()
def main(
    out: Path,
    size: Annotated[str, typer.Option(help=", ".join(SIZES))] = "1.7B",
    kind: Annotated[str, typer.Option(help="custom_voice, base or voice_design")] = "custom_voice",
    seed: int = 0,
    device: Annotated[
        str, typer.Option(help="where numbers are drawn; a GPU draws others")
    ] = "cpu",
) -> None:
    """Write a checkpoint folder."""
    torch.set_default_device(device)
    generator = torch.Generator(device).manual_seed(seed)
    raw, codec = config(size, kind), codec_config(size)
    (out / "speech_tokenizer").mkdir(parents=True, exist_ok=True)
    save_tokenizer(out, tokenizer(size))
    write_json(out / "config.json", raw)
    write_json(out / "generation_config.json", GENERATION)
    write_json(out / "speech_tokenizer" / "config.json", codec)
    write_json(out / "speech_tokenizer" / "preprocessor_config.json", EXTRACTOR)

    talker = scatter(Talker(TalkerConfig.from_dict(raw["talker_config"])), generator)
    talker.codec_head.weight[raw["talker_config"]["codec_eos_token_id"]] = 0
    parts: dict[str, nn.Module] = {"talker.": talker}
    if kind == "base":
        shape = SpeakerConfig.from_dict(raw["speaker_encoder_config"])
        parts["speaker_encoder."] = scatter(SpeakerEncoder(shape), generator)
    save(out / "model.safetensors", parts, torch.bfloat16)

    decoder = scatter(CodecDecoder(CodecConfig.from_dict(codec["decoder_config"])), generator)
    encoder = scatter(CodecEncoder(EncoderConfig.from_dict(codec)), generator)
    parts = {"decoder.": decoder, "encoder.": encoder}
    save(out / "speech_tokenizer" / "model.safetensors", parts, torch.float32)


if __name__ == "__main__":
    typer.run(main)
