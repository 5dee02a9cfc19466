"""Where a model's files are: a local folder as it is, or a repository of the Hugging Face hub.

No torch here, and no look into the files: only their place.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from engine.errors import CheckpointError
from engine.messages import Message

WANTED = ("*.json", "*.txt", "*.safetensors", "speech_tokenizer/*")
UNWANTED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.gguf", "*.onnx")
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


def resolve(model: str, revision: str | None = None, offline: bool | None = None) -> Path:
    """The folder of a model named by a path or a hub id; downloads what is not here yet.

    `offline` None does as HF_HUB_OFFLINE says. Raises CheckpointError.
    """
    path = os.path.expanduser(model)  # os.path takes any text; pathlib raises at some
    if os.path.isdir(path):
        return _checked(Path(path))
    if os.path.exists(path):
        raise CheckpointError(
            "{model} is a file. Name the folder of a checkpoint instead.", model=model
        )
    if not HUB_ID.fullmatch(model):
        raise CheckpointError(
            "{model!r} is neither a folder nor a hub id such as Qwen/Qwen3-TTS-12Hz-0.6B-Base.",
            model=model,
        )
    return _checked(_download(model, revision, offline))


def _checked(folder: Path) -> Path:
    if not (folder / "config.json").is_file():
        raise CheckpointError("{folder} has no config.json: it is no checkpoint.", folder=folder)
    return folder


def _download(model: str, revision: str | None, offline: bool | None) -> Path:
    import huggingface_hub
    from huggingface_hub import errors

    local = huggingface_hub.constants.HF_HUB_OFFLINE if offline is None else offline
    try:
        return Path(
            huggingface_hub.snapshot_download(
                model,
                revision=revision,
                allow_patterns=list(WANTED),
                ignore_patterns=list(UNWANTED),
                local_files_only=local,
            )
        )
    except errors.GatedRepoError as error:
        raise CheckpointError(
            "{model} asks for its licence to be accepted on the hub.", model=model
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise CheckpointError(
            "{model} is neither a folder here nor a model on the hub. Check the name.", model=model
        ) from error
    except (errors.LocalEntryNotFoundError, OSError, ValueError) as error:
        raise CheckpointError(_unreachable(model, local)) from error


def _unreachable(model: str, offline: bool) -> Message:
    if offline:
        return Message(
            "{model} is not on this machine. Unset HF_HUB_OFFLINE to download it.", model=model
        )
    return Message(
        "{model} cannot be downloaded. Check the network, or name a local folder.", model=model
    )
