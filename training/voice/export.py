"""Writes an adapted model as a checkpoint in the published layout, with the voice as a preset.

Everything that was not trained stays as it is in the model's files: the codec, the tokenizer, the
speaker encoder. The voice's vector becomes a row of the codec embedding, so the reference package
and others speak it by name.
"""

from __future__ import annotations

import copy
import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from engine import (
    CheckpointError,
    InvalidVoice,
    atomic_replace,
    explain_write_errors,
    write_atomic,
)
from engine.checkpoints.config_file import TALKER
from engine.checkpoints.files import read_json
from engine.worker.loading.model_loader import load_talker
from engine.worker.loading.weight_loader import export
from training.voice.adapter import Adapter

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def export_merged(model: Path, adapter: Adapter, name: str, out: Path) -> None:
    """Write `model` with the adapter merged and the voice as the preset `name` to a new folder."""
    if out.exists():
        raise CheckpointError("{path} is there already. Choose another folder.", path=out)
    config = copy.deepcopy(read_json(model / "config.json"))
    check_room(out.parent, sum(file.stat().st_size for file in model.rglob("*") if file.is_file()))
    row = add_preset(config, name)
    shutil.copytree(model, out, ignore=shutil.ignore_patterns("*.safetensors", INDEX))
    codec = out / "speech_tokenizer"
    for weights in (model / "speech_tokenizer").glob("*.safetensors*"):
        shutil.copy(weights, codec / weights.name)
    talker = load_talker(model, torch.device("cpu"), torch.float32)
    adapter.merge(talker)
    with torch.no_grad():
        talker.model.codec_embedding.weight[row] = adapter.vector.cpu()
    trained = export({"talker.": talker})
    tensors = {}
    for key, stored in stored_tensors(model).items():
        tensors[key] = trained.get(key, stored).to(stored.dtype).contiguous()
    with atomic_replace(out / SINGLE) as part:
        save_file(tensors, part, {"format": "pt"})
    write_atomic(out / "config.json", json.dumps(config, indent=1).encode())


def check_room(folder: Path, size: int) -> None:
    """Raises NotSaved before all work: safetensors tells a full disk as a fault of its own."""
    with explain_write_errors(folder / "model"):
        if shutil.disk_usage(folder).free < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def add_preset(config: dict[str, Any], name: str) -> int:
    """Register a preset speaker in a config. Returns its row of the codec embedding."""
    known = name.strip().lower()
    talker = config["talker_config"]
    speakers = dict(talker.get("spk_id") or {})
    if not known or known in {speaker.lower() for speaker in speakers}:
        raise InvalidVoice("Give the voice a name that no preset has: '{name}'.", name=name)
    row = free_row(config, speakers)
    talker["spk_id"] = {**speakers, known: row}
    talker["spk_is_dialect"] = {**(talker.get("spk_is_dialect") or {}), known: False}
    able = config.get("tts_capabilities") or [config.get("tts_model_type")]
    config["tts_capabilities"] = list(dict.fromkeys(["custom_voice", *filter(None, able)]))
    config["tts_model_type"] = "custom_voice"  # what the reference package speaks presets with
    return row


def free_row(config: dict[str, Any], speakers: dict[str, int]) -> int:
    """The last row of the codec embedding that no speaker, language or control code has."""
    whole = {**TALKER, **config["talker_config"]}
    taken = set(speakers.values()) | set((whole.get("codec_language_id") or {}).values())
    taken |= {
        value for key, value in whole.items() if key.startswith("codec_") and type(value) is int
    }
    return next(row for row in range(whole["vocab_size"] - 1, -1, -1) if row not in taken)


def stored_tensors(model: Path) -> dict[str, Tensor]:
    """The checkpoint's tensors as they are in its files."""
    names = [SINGLE]
    if not (model / SINGLE).is_file():
        names = sorted(set(read_json(model / INDEX)["weight_map"].values()))
    found: dict[str, Tensor] = {}
    for name in names:
        with safe_open(model / name, "pt") as file:
            found |= {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    return found
