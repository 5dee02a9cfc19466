"""Builds a checkpoint's networks from its config and loads their weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from engine.checkpoints.config_file import read_codec_config, read_model_config
from engine.checkpoints.files import CODEC_FOLDER
from engine.errors import CheckpointError, InvalidSetting
from engine.model.codec import CodecDecoder
from engine.model.configs import (
    CodecConfig,
    EncoderConfig,
    SpeakerConfig,
    TalkerConfig,
    TransformerConfig,
)
from engine.model.encoder import CodecEncoder
from engine.model.quantized_linear import QuantizedLinear
from engine.model.speaker import SpeakerEncoder
from engine.model.talker import Talker
from engine.types import CODEBOOKS, FRAME_SAMPLES
from engine.worker.loading.packed_talker import take_arrays
from engine.worker.loading.weight_loader import check, empty_network, load, load_rest

BITS = {"full": None, "8bit": 8, "4bit": 4}
QUANTIZED_FROM = 100_000_000  # weights of all layers: fewer are as quick in full
MAX_SIZE, MAX_COUNT = 1 << 20, 512  # of a width, of anything that there are modules of
_COUNTED = (
    "layers",
    "codebooks",
    "residual_layers",
    "semantic_codebooks",
    "kernel_size",
    "res2net_scale",
    "sliding_window",  # of which every stream keeps keys and values
)
_Config = TypeVar("_Config")
_Network = TypeVar("_Network", bound=nn.Module)


def check_weights(folder: Path) -> None:
    """Raise CheckpointError where the weights do not fit the config. No weights are read."""
    talker = _build(folder, TalkerConfig.from_dict, Talker, torch.float32, "talker_config")
    check(folder, {"talker.": talker}, unused=("speaker_encoder.*",))
    inner = folder / CODEC_FOLDER
    codec = _build(inner, CodecConfig.from_dict, CodecDecoder, torch.float32, "decoder_config")
    check(inner, {"decoder.": codec}, unused=("encoder.*",))


def load_talker(
    folder: Path, device: torch.device, dtype: torch.dtype, weights: str = "full"
) -> Talker:
    """The talker and its predictor; `weights`, on CPUs, says in how many bits."""
    talker = _build(folder, TalkerConfig.from_dict, Talker, dtype, "talker_config")
    bits = weight_bits(talker, device, weights)
    if bits is not None:
        _quantize(talker, bits)
    load(folder, {"talker.": talker}, device, unused=("speaker_encoder.*",))
    if device.type == "cpu" and bits is None:
        transpose(talker)
    return talker


def empty_talker(folder: Path, weights: str) -> tuple[Talker, int | None]:
    """For a CPU: a talker without memory whose layers have so many bits, and how many."""
    talker = _build(folder, TalkerConfig.from_dict, Talker, torch.float32, "talker_config")
    bits = weight_bits(talker, torch.device("cpu"), weights)
    if bits is not None:
        _quantize(talker, bits)
    return talker, bits


def load_packed_talker(folder: Path, talker: Talker, arrays: Mapping[str, Tensor]) -> None:
    """Fill an empty talker with its packed weights, and the rest from its checkpoint."""
    take = partial(take_arrays, talker, arrays)
    load_rest(folder, {"talker.": talker}, take, unused=("speaker_encoder.*",))


def empty_codec(folder: Path) -> CodecDecoder:
    """A decoder without memory."""
    folder = folder / CODEC_FOLDER
    return _build(folder, CodecConfig.from_dict, CodecDecoder, torch.float32, "decoder_config")


def weight_bits(talker: Talker, device: torch.device, weights: str) -> int | None:
    """8, 4, or None: as they are."""
    if weights == "auto":
        layers = (*talker.model.layers.parameters(), *talker.code_predictor.model.parameters())
        large = sum(weight.numel() for weight in layers) >= QUANTIZED_FROM
        return 8 if large and device.type == "cpu" else None
    bits = BITS[weights]
    if bits is not None and device.type != "cpu":
        raise InvalidSetting("Weights of {bits} bits are for CPUs. Leave them at auto.", bits=bits)
    return bits


def layer_bits(talker: Talker) -> int | None:
    """In how many bits a talker that is loaded has its layers; None: they are full."""
    bits = [
        each.bits for each in talker.model.layers.modules() if isinstance(each, QuantizedLinear)
    ]
    return bits[0] if bits else None


def _quantize(talker: Talker, bits: int) -> None:
    """The blocks in so many bits, other layers in 8, and the tables of the text and of the
    predictor's codebooks in bfloat16.

    No layer stays full: its sums differ in the last place by how many rows it is given, and a
    rounding to bfloat16 behind it can make that a difference of other codes.
    """
    blocks = {*talker.model.layers.modules(), *talker.code_predictor.model.layers.modules()}
    for parent in list(talker.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and QuantizedLinear.takes(child):
                setattr(parent, name, QuantizedLinear(child, bits if child in blocks else 8))
    talker.model.text_embedding.to(torch.bfloat16)
    talker.code_predictor.model.codec_embedding.to(torch.bfloat16)


def transpose(network: nn.Module) -> None:
    """Store linear weights input by input: on CPUs a third faster for a row or two."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            module.weight = nn.Parameter(module.weight.t().contiguous().t(), requires_grad=False)


def load_speaker(folder: Path, device: torch.device) -> SpeakerEncoder:
    key = "speaker_encoder_config"
    speaker = _build(folder, SpeakerConfig.from_dict, SpeakerEncoder, torch.float32, key)
    load(folder, {"speaker_encoder.": speaker}, device, unused=("talker.*",))
    return speaker


def load_codec(folder: Path, device: torch.device, dtype: torch.dtype) -> CodecDecoder:
    folder = folder / CODEC_FOLDER
    codec = _build(folder, CodecConfig.from_dict, CodecDecoder, dtype, "decoder_config")
    load(folder, {"decoder.": codec}, device, unused=("encoder.*",))
    codec.fold()
    return codec


def load_encoder(folder: Path, device: torch.device) -> CodecEncoder:
    folder = folder / CODEC_FOLDER
    encoder = _build(folder, EncoderConfig.from_dict, CodecEncoder, torch.float32)
    load(folder, {"encoder.": encoder}, device, unused=("decoder.*",))
    return encoder


def _build(
    folder: Path,
    read: Callable[[dict[str, Any]], _Config],
    make: Callable[[_Config], _Network],
    dtype: torch.dtype,
    key: str | None = None,
) -> _Network:
    """The network that a config describes, without memory."""
    raw = (read_codec_config if folder.name == CODEC_FOLDER else read_model_config)(folder)
    try:
        config = read(raw if key is None else raw[key])
        _check(config)
        return empty_network(lambda: make(config), dtype)
    except Exception as error:  # senseless numbers fail anywhere
        raise CheckpointError(
            "{folder} describes no network that can be built "
            "({name}: {error}). Download the checkpoint again.",
            folder=folder / "config.json",
            name=type(error).__name__,
            error=error,
        ) from error


def _check(config: Any) -> None:
    """Raise ValueError for sizes that cannot be built in finite time and memory, or not be run."""
    for name, number in _numbers(config):
        most = MAX_COUNT if name in _COUNTED else MAX_SIZE
        fits = 0 < number < math.inf if isinstance(number, float) else 0 <= number <= most
        if not fits:
            raise ValueError(f"{name} is {number}")
    for part in (getattr(config, field.name) for field in fields(config)):
        if isinstance(part, TransformerConfig) and (
            part.heads % part.kv_heads or part.head_dim % 2
        ):
            raise ValueError(f"{part.heads} heads of {part.head_dim} over {part.kv_heads}")
    if isinstance(config, CodecConfig | EncoderConfig):
        frame = config.codebooks, config.hop
        if frame != (CODEBOOKS, FRAME_SAMPLES):  # speech would be counted in other frames
            raise ValueError("{} codes and {} samples in a frame".format(*frame))


def _numbers(config: object) -> Iterator[tuple[str, int | float]]:
    """Every number in a config, by name."""
    assert is_dataclass(config)
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            yield from _numbers(value)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int | float):
                yield field.name, number
