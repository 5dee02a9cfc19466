"""Configurations as people have them: without the keys that the reference package fills in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.random_config import codec_config, config
from engine import CheckpointError, Preset, SamplingParams, SpeechRequest, open_engine
from engine.checkpoints import config_file
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.checkpoints.config_file import (
    CODEC,
    CONFIG,
    DECODER,
    PREDICTOR,
    TALKER,
    codec_digest,
    read_codec_config,
    read_model_config,
)
from engine.model.configs import TalkerConfig

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "custom_voice-1b7"
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "model"))


def edit(path: Path, change: Edit) -> None:
    raw = json.loads(path.read_text("utf-8"))
    change(raw)
    path.write_text(json.dumps(raw), "utf-8")


def drop_defaults(raw: dict[str, Any], defaults: dict[str, Any]) -> None:
    for key in [key for key, value in defaults.items() if raw.get(key, value) == value]:
        raw.pop(key, None)


def rope_of_transformers_5(raw: dict[str, Any]) -> None:
    raw["rope_parameters"] = {"rope_type": "default", "rope_theta": raw.pop("rope_theta")}


def bare_model(raw: dict[str, Any]) -> None:
    talker = raw["talker_config"]
    predictor = talker["code_predictor_config"]
    for each, defaults in ((raw, CONFIG), (talker, TALKER), (predictor, PREDICTOR)):
        drop_defaults(each, defaults)
    raw["tts_model_size"] = None
    for each in (talker, predictor):
        if "rope_theta" in each:
            rope_of_transformers_5(each)


def bare_codec(raw: dict[str, Any]) -> None:
    drop_defaults(raw, CODEC)
    drop_defaults(raw["decoder_config"], DECODER)
    if "rope_theta" in raw["decoder_config"]:
        rope_of_transformers_5(raw["decoder_config"])


def codes(folder: Path) -> np.ndarray:
    request = SpeechRequest(
        "Good morning.", Preset("ryan"), sampling=SamplingParams(greedy=True), seed=1, max_frames=12
    )
    with open_engine([folder], device="cpu", dtype="float32") as engine:
        return np.concatenate([chunk.codes for chunk in engine.submit(request)])


def test_a_checkpoint_without_default_keys_speaks_the_same_codes(folder: Path) -> None:
    spoken, digest = codes(folder), codec_digest(folder)
    edit(folder / "config.json", bare_model)
    edit(folder / "speech_tokenizer" / "config.json", bare_codec)
    bare = json.loads((folder / "config.json").read_text("utf-8"))
    assert "rms_norm_eps" not in bare["talker_config"]
    assert np.array_equal(codes(folder), spoken)
    assert codec_digest(folder) == digest


@pytest.mark.parametrize(
    ("defaults", "part"),
    [
        (CONFIG, ()),
        (TALKER, ("talker_config",)),
        (PREDICTOR, ("talker_config", "code_predictor_config")),
    ],
)
@pytest.mark.parametrize("missing", ["left out", "null"])
def test_every_default_of_a_model_is_filled_in(
    tmp_path: Path, defaults: dict[str, Any], part: tuple[str, ...], missing: str
) -> None:
    for key, value in defaults.items():
        raw = config("0.6B", "custom_voice")
        inner = raw
        for name in part:
            inner = inner[name]
        inner.pop(key, None)
        if missing == "null":
            inner[key] = None
        (tmp_path / "config.json").write_text(json.dumps(raw), "utf-8")
        read = read_model_config(tmp_path)
        for name in part:
            read = read[name]
        assert read[key] == value


def test_every_default_of_a_codec_is_filled_in(tmp_path: Path) -> None:
    for key, value in DECODER.items():
        raw = codec_config("0.6B")
        raw["decoder_config"].pop(key, None)
        (tmp_path / "config.json").write_text(json.dumps(raw), "utf-8")
        assert read_codec_config(tmp_path)["decoder_config"][key] == value


def test_a_predictor_without_head_dim_has_heads_of_128(tmp_path: Path) -> None:
    raw = config("0.6B", "custom_voice")
    del raw["talker_config"]["code_predictor_config"]["head_dim"]
    (tmp_path / "config.json").write_text(json.dumps(raw), "utf-8")
    assert (
        TalkerConfig.from_dict(read_model_config(tmp_path)["talker_config"]).predictor.head_dim
        == 128
    )


def test_a_stated_rope_theta_wins_over_every_default(tmp_path: Path) -> None:
    raw = config("0.6B", "custom_voice")
    rope_of_transformers_5(raw["talker_config"])
    (tmp_path / "config.json").write_text(json.dumps(raw), "utf-8")
    shape = TalkerConfig.from_dict(read_model_config(tmp_path)["talker_config"])
    assert shape.transformer.rope_theta == 1_000_000


def test_a_25_hz_checkpoint_is_refused_by_that_name(folder: Path) -> None:
    edit(folder / "config.json", lambda raw: raw.update(tokenizer_type="qwen3_tts_tokenizer_25hz"))
    with pytest.raises(CheckpointError, match="25 Hz"):
        LocalCheckpoint(folder)


def test_what_has_no_default_is_still_required(folder: Path) -> None:
    edit(folder / "config.json", lambda raw: raw["talker_config"].pop("text_vocab_size"))
    with pytest.raises(CheckpointError, match="text_vocab_size"):
        LocalCheckpoint(folder)
    assert "text_vocab_size" not in config_file.TALKER
