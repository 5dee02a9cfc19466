"""The networks of a checkpoint folder, built to its config and filled from its weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

from engine.checkpoint_files import read_json
from engine.errors import CheckpointError
from engine.model.codec import CodecDecoder
from engine.model.encoder import CodecEncoder
from engine.model.shapes import CodecShape, EncoderShape, SpeakerShape, TalkerShape
from engine.model.speaker import SpeakerEncoder
from engine.model.talker import Talker
from engine.worker.weights import blank, load

CODEC_FOLDER = "speech_tokenizer"
_Shape = TypeVar("_Shape")


def load_talker(folder: Path, device: torch.device, dtype: torch.dtype) -> Talker:
    """The talker and its predictor."""
    shape = _shape(folder, TalkerShape.read, "talker_config")
    talker = blank(lambda: Talker(shape), dtype)
    load(folder, {"talker.": talker}, device, unused=("speaker_encoder.*",))
    return talker


def load_speaker(folder: Path, device: torch.device) -> SpeakerEncoder:
    shape = _shape(folder, SpeakerShape.read, "speaker_encoder_config")
    speaker = blank(lambda: SpeakerEncoder(shape), torch.float32)
    load(folder, {"speaker_encoder.": speaker}, device, unused=("talker.*",))
    return speaker


def load_codec(folder: Path, device: torch.device, dtype: torch.dtype) -> CodecDecoder:
    shape = _shape(folder / CODEC_FOLDER, CodecShape.read, "decoder_config")
    codec = blank(lambda: CodecDecoder(shape), dtype)
    load(folder / CODEC_FOLDER, {"decoder.": codec}, device, unused=("encoder.*",))
    codec.fold()
    return codec


def load_encoder(folder: Path, device: torch.device) -> CodecEncoder:
    shape = _shape(folder / CODEC_FOLDER, EncoderShape.read)
    encoder = blank(lambda: CodecEncoder(shape), torch.float32)
    load(folder / CODEC_FOLDER, {"encoder.": encoder}, device, unused=("decoder.*",))
    return encoder


def _shape(folder: Path, read: Callable[[dict[str, Any]], _Shape], key: str = "") -> _Shape:
    """What a config says of a network. Raises CheckpointError where it makes no sense."""
    raw = read_json(folder / "config.json")
    try:
        return read(raw[key] if key else raw)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        where = f"{folder / 'config.json'}{f': {key}' if key else ''}"
        raise CheckpointError(
            f"{where} does not describe a network ({type(error).__name__}: {error}). "
            "Download the checkpoint again."
        ) from error
