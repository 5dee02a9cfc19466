"""Finds a model's files: a local folder, or a repository of the Hugging Face hub.

The files are located and downloaded here, not read. No torch.
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from tqdm.auto import tqdm

from engine.errors import CheckpointError
from engine.messages import Message

WANTED = ("*.json", "*.txt", "*.safetensors", "speech_tokenizer/*")
UNWANTED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.gguf", "*.onnx")
# No part of a revision begins with a dot or is empty: the hub's cache makes paths of them.
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@\w[\w.-]*(/\w[\w.-]*)*)?", re.ASCII)


Progress: TypeAlias = Callable[[int, int], None]  # bytes downloaded, bytes in all


def resolve(model: str, offline: bool | None = None, progress: Progress | None = None) -> Path:
    """The folder of a model named by a path or a hub id; downloads what is missing.

    `ID@REVISION` names a branch, tag or commit. `offline` None follows HF_HUB_OFFLINE.
    Without `progress` the hub's own progress bars go to stderr. Raises CheckpointError.
    """
    path = os.path.expanduser(model)  # os.path accepts any text; pathlib raises for some
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
    repository, _, revision = model.partition("@")
    return _checked(_download(repository, revision or None, offline, progress))


def _checked(folder: Path) -> Path:
    if not (folder / "config.json").is_file():
        raise CheckpointError(
            "{folder} is not a model: it has no config.json. Name a folder that has one, or a hub "
            "id.",
            folder=folder,
        )
    return folder


def _download(
    model: str, revision: str | None, offline: bool | None, progress: Progress | None
) -> Path:
    from huggingface_hub import constants, errors, snapshot_download  # submodules load lazily

    local = constants.HF_HUB_OFFLINE if offline is None else offline
    try:
        return Path(
            snapshot_download(
                model,
                revision=revision,
                allow_patterns=list(WANTED),
                ignore_patterns=list(UNWANTED),
                local_files_only=local,
                tqdm_class=_reporting(progress) if progress else None,
            )
        )
    except errors.GatedRepoError as error:
        raise CheckpointError(
            "{model} is gated. Accept its terms on its page of the hub, then set HF_TOKEN.",
            model=model,
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise CheckpointError(
            "{model} is neither a folder here nor a model on the hub. Check the name; "
            "a private model needs HF_TOKEN.",
            model=model,
        ) from error
    except errors.RevisionNotFoundError as error:
        raise CheckpointError(
            "{model} has no revision {revision!r}. Check its branches and tags on the hub.",
            model=model,
            revision=revision,
        ) from error
    except Exception as error:
        if not isinstance(error, OSError | ValueError) and not _of_the_network(error):
            raise
        raise CheckpointError(_unreachable(model, local, error)) from error


def _of_the_network(error: Exception) -> bool:
    """huggingface_hub has used several HTTP clients, whose errors share no base class."""
    return type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "requests")


def _reporting(progress: Progress) -> type[Any]:
    """A tqdm class that reports bytes instead of drawing a bar."""

    class Reporting(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)  # an argument of huggingface_hub's own bars
            super().__init__(*args, **kwargs | {"file": io.StringIO(), "mininterval": 0.1})

        def update(self, n: float | None = 1) -> bool | None:
            drawn: bool | None = super().update(n)
            if self.unit == "B" and self.total:
                progress(int(self.n), int(self.total))
            return drawn

    return Reporting


def _unreachable(model: str, offline: bool, error: Exception) -> Message:
    if offline:
        return Message(
            "{model} is not on this machine. Unset HF_HUB_OFFLINE to download it.", model=model
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Message(
            "There is no space left to download {model}. Free some or set HF_HOME to another disk.",
            model=model,
        )
    return Message(
        "{model} cannot be downloaded. Check the network and try again, or name a local folder.",
        model=model,
    )
