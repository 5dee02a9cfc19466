"""Malformed checkpoint folders: one CheckpointError, quickly, in little memory."""

from __future__ import annotations

import copy
import json
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import CheckpointError, TimbreError, open_engine, read_capabilities
from engine.checkpoints.files import read_json, read_row
from engine.worker.loading.weight_loader import _open_tensors
from tests.conftest import GOLDEN
from tests.hostile.bounds import Worst

FOLDER = GOLDEN / "custom_voice-1b7"
WRONG: list[Any] = [0, -1, 10**9, 2**63, 1e308, "x", "../../etc/passwd", None, [], {}, True, 0.5]
EMBEDDING = "talker.model.codec_embedding.weight"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "model"))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key of a JSON file, and every table."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))


def bent(raw: Any, path: tuple[Any, ...], value: Any) -> str:
    whole = copy.deepcopy(raw)
    table = whole
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value
    return json.dumps(whole)


def look(folder: Path) -> TimbreError | None:
    try:
        read_capabilities([folder])
    except CheckpointError as error:
        message = str(error)
        return error if len(message) < 600 else pytest.fail(message[:600])
    return None


@pytest.mark.parametrize(
    "name", [pytest.param("config.json", marks=pytest.mark.slow), "generation_config.json"]
)
def test_every_key_may_be_wrong(copied: Path, name: str) -> None:
    raw, worst, refused = json.loads((copied / name).read_text()), Worst(name), 0
    for path in places(raw):
        for value in WRONG:
            (copied / name).write_text(bent(raw, path, value))
            with worst.measured():
                refused += look(copied) is not None
    worst.tell()
    assert refused > worst.count / 10


FILES: dict[str, bytes] = {
    "deep": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "deep list": b"[" * 1_000_000,
    "20 MB": b'{"a":"' + b"x" * (20 << 20) + b'"}',
    "no text": b"\xff\xfe\x00" * 100,
    "zeros": bytes(1_000),
    "a number of a million digits": b'{"a":' + b"9" * 1_000_000 + b"}",
    "empty": b"",
    "list": b"[]",
    "pickle": b"\x80\x04\x95.",
}


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer.json"])
@pytest.mark.parametrize("content", FILES)
def test_json_of_any_shape_is_refused_soon(copied: Path, name: str, content: str) -> None:
    (copied / name).write_bytes(FILES[content])
    worst = Worst(f"{name}, {content}")
    with worst.measured():
        assert look(copied) is not None
    worst.tell()


def test_a_configuration_that_is_a_folder_or_a_circle(copied: Path) -> None:
    (copied / "config.json").unlink()
    (copied / "config.json").mkdir()
    assert look(copied) is not None
    (copied / "config.json").rmdir()
    (copied / "config.json").symlink_to(copied / "config.json")
    assert look(copied) is not None


HEADERS: dict[str, bytes] = {
    "length 2^63": struct.pack("<Q", 2**63),
    "length past the end": struct.pack("<Q", 5_000) + b"{}",
    "no json": struct.pack("<Q", 4) + b"abcd",
    "deep": struct.pack("<Q", 400_000) + b'{"a":' * 80_000,
    "a list": struct.pack("<Q", 2) + b"[]",
}
TENSOR = {"dtype": "F32", "shape": [3000, 4], "data_offsets": [0, 48_000]}
TENSORS: dict[str, dict[str, Any]] = {
    "shape negative": {"shape": [-1, -1]},
    "shape huge": {"shape": [2**62, 2**62]},
    "shape wide": {"shape": [3000, 2**40]},
    "shape of one": {"shape": [12_000]},
    "shape of text": {"shape": ["3000", "4"]},
    "shape of truth": {"shape": [True, True]},
    "offsets before": {"data_offsets": [-48_000, 0]},
    "offsets far": {"data_offsets": [2**62, 2**62 + 48_000]},
    "offsets farther": {"data_offsets": [10**30, 10**30 + 48_000]},
    "offsets turned": {"data_offsets": [48_000, 0]},
    "kind": {"dtype": "O"},
    "nothing": {"dtype": None, "shape": None, "data_offsets": None},
}


@pytest.mark.parametrize("name", [*HEADERS, *TENSORS])
def test_weights_that_lie_about_themselves(tmp_path: Path, name: str) -> None:
    header = json.dumps({EMBEDDING: {**TENSOR, **TENSORS.get(name, {})}}).encode()
    data = HEADERS.get(name) or struct.pack("<Q", len(header)) + header + bytes(100)
    (tmp_path / "model.safetensors").write_bytes(data)
    worst = Worst(name)
    with worst.measured(), pytest.raises(CheckpointError):
        read_row(tmp_path, EMBEDDING, 2_900)
    worst.tell()


@pytest.mark.parametrize("shard", ["../x.safetensors", "/etc/passwd", "..", "a/b", 3, None, ["x"]])
def test_an_index_leads_nowhere_else(tmp_path: Path, shard: object) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {EMBEDDING: shard}}))
    with pytest.raises(CheckpointError, match=r"safetensors|Is a directory"):
        read_row(tmp_path, EMBEDDING, 0)


SHAPES = [
    ("talker_config", "num_hidden_layers"), ("talker_config", "hidden_size"),
    ("talker_config", "intermediate_size"), ("talker_config", "num_attention_heads"),
    ("talker_config", "text_vocab_size"), ("talker_config", "vocab_size"),
    ("talker_config", "code_predictor_config", "num_hidden_layers"),
    ("talker_config", "code_predictor_config", "hidden_size"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("path", SHAPES, ids=".".join)
@pytest.mark.parametrize("value", [10**9, 2**63, -1])
def test_networks_of_any_size_are_refused_before_they_are_built(
    copied: Path, path: tuple[str, ...], value: int
) -> None:
    raw, worst = json.loads((copied / "config.json").read_text()), Worst(".".join(path))
    (copied / "config.json").write_text(bent(raw, path, value))
    with worst.measured(), pytest.raises(CheckpointError):
        open_engine([copied], device="cpu", max_num_seqs=2, max_seq_len=64).close()
    worst.tell()


@pytest.mark.parametrize(
    "model", ["", "\0", "../..", "~root/x", "a/b/c", "http://x/y", "-x/y", "x" * 9999]
)
def test_names_of_models_are_folders_or_hub_ids(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(CheckpointError):
        read_capabilities([model])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("name", ["config.json", "speech_tokenizer/config.json"])
@pytest.mark.parametrize("kind", ["endless device", "pipe"])
def test_a_configuration_that_never_ends(copied: Path, name: str, kind: str) -> None:
    """/dev/zero has no size, and a pipe without a writer blocks its reader."""
    path = copied / name
    path.unlink()
    path.symlink_to("/dev/zero") if kind == "endless device" else os.mkfifo(path)
    worst = Worst(f"{name}, {kind}")
    with worst.measured(), pytest.raises(CheckpointError, match="plain file"):
        read_json(path)
    with pytest.raises(CheckpointError):
        open_engine([copied], device="cpu", max_num_seqs=2, max_seq_len=64).close()
    worst.tell()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_weights_that_are_a_pipe(tmp_path: Path) -> None:
    index = {"weight_map": {EMBEDDING: "a.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    os.mkfifo(tmp_path / "a.safetensors")
    with pytest.raises(CheckpointError, match="plain file"):
        read_row(tmp_path, EMBEDDING, 0)
    with pytest.raises(CheckpointError, match="plain file"), _open_tensors(tmp_path):
        pytest.fail("a pipe was opened")


DOUBLE = {"type": "Replace", "pattern": {"String": "e"}, "content": "ee"}
NORMALIZERS: dict[str, Any] = {
    "thirty doublings": {"type": "Sequence", "normalizers": [DOUBLE] * 30},
    "one": DOUBLE,
    "a prefix": {"type": "Prepend", "prepend": "x" * 1_000_000},
    "in a sequence of a sequence": {
        "type": "Sequence",
        "normalizers": [{"type": "Sequence", "normalizers": [DOUBLE] * 30}],
    },
    "many": {"type": "Sequence", "normalizers": [{"type": "NFKD"}] * 10_000},
    "nonsense": {"type": "Sequence", "normalizers": 3},
}


@pytest.mark.parametrize("name", NORMALIZERS)
def test_a_tokenizer_that_multiplies_text(copied: Path, name: str) -> None:
    """A letter of a request became gigabytes; NFC, which is published, is taken as it is."""
    path = copied / "tokenizer.json"
    raw = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**raw, "normalizer": {"type": "NFC"}}))
    assert look(copied) is None
    path.write_text(json.dumps({**raw, "normalizer": NORMALIZERS[name]}))
    worst = Worst(name)
    with worst.measured():
        assert look(copied) is not None
    worst.tell()
