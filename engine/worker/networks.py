"""The networks of a checkpoint folder, built as its config says and filled with its weights.

Each comes ready for inference on one device. What they are used for is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from engine.checkpoint_files import read_json
from engine.errors import CheckpointError
from engine.model.codec import CodecDecoder
from engine.model.encoder import CodecEncoder
from engine.model.shapes import CodecShape, EncoderShape, SpeakerShape, TalkerShape
from engine.model.speaker import SpeakerEncoder
from engine.model.talker import Talker
from engine.worker.weights import blank, load

Network = TypeVar("Network", bound=nn.Module)
Device = torch.device | str

CODEC = "speech_tokenizer"  # the codec's folder in a checkpoint


def load_talker(folder: Path, device: Device, dtype: torch.dtype) -> Talker:
    def make() -> Talker:
        return Talker(TalkerShape.read(read_json(folder / "config.json")["talker_config"]))

    talker = _built(folder, make, dtype)
    load(folder, {"talker.": talker}, device, unused=("speaker_encoder.*",))
    return talker


def load_speaker(folder: Path, device: Device, dtype: torch.dtype) -> SpeakerEncoder:
    """The speaker encoder of a checkpoint that has one."""

    def make() -> SpeakerEncoder:
        raw = read_json(folder / "config.json")["speaker_encoder_config"]
        return SpeakerEncoder(SpeakerShape.read(raw))

    speaker = _built(folder, make, dtype)
    load(folder, {"speaker_encoder.": speaker}, device, unused=("talker.*",))
    return speaker


def load_decoder(folder: Path, device: Device, dtype: torch.dtype) -> CodecDecoder:
    """The codec's decoder, with what follows from its weights made once."""

    def make() -> CodecDecoder:
        raw = read_json(folder / CODEC / "config.json")["decoder_config"]
        return CodecDecoder(CodecShape.read(raw))

    decoder = _built(folder, make, dtype)
    load(folder / CODEC, {"decoder.": decoder}, device, unused=("encoder.*",))
    decoder.fold()
    return decoder


def load_encoder(folder: Path, device: Device, dtype: torch.dtype) -> CodecEncoder:
    def make() -> CodecEncoder:
        return CodecEncoder(EncoderShape.read(read_json(folder / CODEC / "config.json")))

    encoder = _built(folder, make, dtype)
    load(folder / CODEC, {"encoder.": encoder}, device, unused=("decoder.*",))
    return encoder


def _built(folder: Path, make: Callable[[], Network], dtype: torch.dtype) -> Network:
    try:
        return blank(make, dtype)
    except KeyError as error:
        raise CheckpointError(
            f"The config of {folder} lacks {error}. Download it again."
        ) from error
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise CheckpointError(
            f"{folder}: the config describes no network ({error}). Download it again."
        ) from error
