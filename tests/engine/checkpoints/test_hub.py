"""Where a model's files are found, with the hub itself stubbed."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors

from engine.checkpoints.hub import resolve
from engine.errors import CheckpointError

Snapshot = Callable[..., str]
NAME = "Qwen/Qwen3-TTS-12Hz-0.6B-Base"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, Any]:
    """What the stubbed download was asked for."""
    seen: dict[str, Any] = {}

    def snapshot(model: str, **rest: Any) -> str:
        seen.update(rest, model=model)
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    return seen


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def snapshot(*_: Any, **__: Any) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)


def test_a_folder_is_taken_as_it_is(folder: Path, asked: dict[str, Any]) -> None:
    assert resolve(str(folder)) == folder
    assert not asked


def test_home_is_understood(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    assert resolve(f"~/{folder.name}") == folder


def test_a_local_folder_comes_before_the_hub(
    folder: Path, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    (folder.parent / "Qwen").mkdir(exist_ok=True)
    own = folder.parent / NAME
    own.mkdir(parents=True)
    (own / "config.json").write_text("{}")
    assert resolve(NAME).resolve() == own.resolve()
    assert not asked


def test_a_hub_id_is_downloaded(folder: Path, asked: dict[str, Any]) -> None:
    assert resolve(NAME, revision="v1") == folder
    assert asked["model"] == NAME
    assert asked["revision"] == "v1"


@pytest.mark.parametrize(
    ("file", "needed"),
    [
        ("config.json", True),
        ("model-00001-of-00002.safetensors", True),
        ("merges.txt", True),
        ("speech_tokenizer/model.safetensors", True),
        ("speech_tokenizer/config.json", True),
        ("pytorch_model.bin", False),
        ("speech_tokenizer/model.pt", False),
        ("README.md", False),
        ("sample.wav", False),
    ],
)
def test_only_what_is_needed_is_downloaded(asked: dict[str, Any], file: str, needed: bool) -> None:
    resolve(NAME)
    allowed = any(fnmatch(file, pattern) for pattern in asked["allow_patterns"])
    ignored = any(fnmatch(file, pattern) for pattern in asked["ignore_patterns"])
    assert (allowed and not ignored) is needed


@pytest.mark.parametrize("offline", [True, False])
def test_offline_is_respected(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, offline: bool
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", offline)
    resolve(NAME)
    assert asked["local_files_only"] is offline
    resolve(NAME, offline=not offline)
    assert asked["local_files_only"] is not offline


@pytest.mark.parametrize(
    "model", ["", " ", "a/b/c", "../x", "/no/such", "a", "~nobody/x", "\0", "é/ü", "x" * 5000]
)
def test_neither_a_folder_nor_an_id(
    asked: dict[str, Any], model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where ../x is nothing
    with pytest.raises(CheckpointError, match="neither a folder nor a hub id"):
        resolve(model)
    assert not asked


def test_a_file_is_no_checkpoint(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="Name the folder"):
        resolve(str(folder / "config.json"))


def test_a_folder_without_a_config_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no checkpoint"):
        resolve(str(tmp_path))


def test_not_here_while_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, errors.LocalEntryNotFoundError("not cached"))
    with pytest.raises(CheckpointError, match="Unset HF_HUB_OFFLINE"):
        resolve(NAME, offline=True)


@pytest.mark.parametrize("error", [ConnectionError("refused"), errors.LocalEntryNotFoundError("")])
def test_the_hub_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    failing(monkeypatch, error)
    with pytest.raises(CheckpointError, match="Check the network"):
        resolve(NAME, offline=False)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (errors.RepositoryNotFoundError, "Check the name"),
        (errors.GatedRepoError, "licence to be accepted"),
    ],
)
def test_the_hub_refuses(monkeypatch: pytest.MonkeyPatch, kind: type[Exception], told: str) -> None:
    failing(monkeypatch, kind.__new__(kind))  # a real one wants an answer of the hub
    with pytest.raises(CheckpointError, match=told):
        resolve(NAME, offline=False)
