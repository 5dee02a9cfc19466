"""A checkpoint takes the place of another while the engine runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import (
    CheckpointError,
    Design,
    EngineError,
    InvalidSetting,
    NotCapable,
    Pcm,
    Preset,
    SpeechRequest,
    exchange,
    open_engine,
)
from engine.testing import Costs, FakeCheckpoint, FakeEngine, fake_capabilities

OLD, NEW = "custom_voice-1b7", "voice_design-1b7"
DESIGNED = SpeechRequest("Good evening.", Design("A calm voice."), seed=5, max_frames=6)


def test_the_newcomer_speaks_as_if_it_had_been_there_from_the_start(golden_dir: Path) -> None:
    with open_engine([golden_dir / NEW], "cpu", "float32") as engine:
        expected = engine.submit(DESIGNED).collect()
    with open_engine([golden_dir / OLD], "cpu", "float32") as engine:
        speaker = engine.capabilities()[OLD].speakers[0]
        preset = SpeechRequest("Good evening.", Preset(speaker), seed=5, max_frames=6)
        before = engine.submit(preset).collect()
        with pytest.raises(NotCapable):
            engine.submit(DESIGNED)
        messages: list[str] = []
        assert exchange(engine, OLD, str(golden_dir / NEW), messages.append) == NEW
        assert [line.split()[0] for line in messages] == ["Looking", "Reading", "Loading"]
        assert list(engine.capabilities()) == [NEW]
        assert engine.stats().talkers == (NEW,)
        assert_same(engine.submit(DESIGNED).collect(), expected)
        exchange(engine, NEW, str(golden_dir / OLD))
        assert_same(engine.submit(preset).collect(), before)


def assert_same(one: Pcm, other: Pcm) -> None:
    """But for the last bit: chunks are cut by the clock, and sums have an order."""
    assert len(one) == len(other)
    assert np.abs(one.astype(int) - other).max() <= 1


@pytest.mark.parametrize(
    ("out", "model", "error"),
    [
        ("fake", "/nowhere/at/all", CheckpointError),
        ("fake", "", CheckpointError),
        ("nobody", NEW, InvalidSetting),
    ],
)
def test_what_cannot_be_used_changes_nothing(
    golden_dir: Path, out: str, model: str, error: type[Exception]
) -> None:
    wanted = str(golden_dir / model) if model == NEW else model
    with FakeEngine([FakeCheckpoint(fake_capabilities(name="fake"))]) as engine:
        with pytest.raises(error):
            exchange(engine, out, wanted)
        assert list(engine.capabilities()) == ["fake"]
        assert len(engine.submit(SpeechRequest("Still here.", Preset("ryan"))).collect())


def test_a_speaker_is_not_cut_off(golden_dir: Path) -> None:
    with FakeEngine(costs=Costs(step=0.02)) as engine:
        [name] = engine.capabilities()
        stream = engine.submit(SpeechRequest("x" * 50, Preset("ryan")))
        next(iter(stream))
        with pytest.raises(EngineError, match="Try again when it is idle"):
            exchange(engine, name, str(golden_dir / NEW))
        assert len(stream.collect())
        assert list(engine.capabilities()) == [name]


def test_one_engine_has_one_codec(golden_dir: Path) -> None:
    """The golden checkpoints each have their own."""
    from engine.checkpoints.checkpoint import LocalCheckpoint

    checkpoints = {"one": LocalCheckpoint(golden_dir / OLD), "two": FakeCheckpoint()}
    with FakeEngine() as engine:
        engine._checkpoints = checkpoints
        with pytest.raises(CheckpointError, match="codec"):
            exchange(engine, "two", str(golden_dir / NEW))


def test_weights_that_do_not_fit_leave_the_old_model_loaded(
    golden_dir: Path, tmp_path: Path
) -> None:
    broken = Path(shutil.copytree(golden_dir / NEW, tmp_path / "broken"))
    shutil.copy(golden_dir / OLD / "model.safetensors", broken / "model.safetensors")
    raw = json.loads((broken / "config.json").read_text("utf-8"))
    raw["talker_config"]["intermediate_size"] *= 2
    (broken / "config.json").write_text(json.dumps(raw), "utf-8")
    with open_engine([golden_dir / OLD], "cpu", "float32") as engine:
        messages: list[str] = []
        with pytest.raises(CheckpointError, match="do not fit"):
            exchange(engine, OLD, str(broken), messages.append)
        assert [line.split()[0] for line in messages] == ["Looking", "Reading"]
        assert engine.stats().talkers == (OLD,)


def test_a_newcomer_that_cannot_be_loaded_gives_its_place_back(
    golden_dir: Path, tmp_path: Path
) -> None:
    damaged = Path(shutil.copytree(golden_dir / NEW, tmp_path / "damaged"))
    tensors = load_file(damaged / "model.safetensors")
    name = "talker.model.norm.weight"
    tensors[name] = torch.full_like(tensors[name], float("nan"))
    save_file(tensors, damaged / "model.safetensors")
    with open_engine([golden_dir / OLD], "cpu", "float32") as engine:
        speaker = engine.capabilities()[OLD].speakers[0]
        preset = SpeechRequest("Good evening.", Preset(speaker), seed=5, max_frames=6)
        before = engine.submit(preset).collect()
        with pytest.raises(CheckpointError, match=r"talker\.model\.norm\.weight.*not finite"):
            exchange(engine, OLD, str(damaged))
        assert list(engine.capabilities()) == [OLD]
        assert engine.stats().talkers == (OLD,)
        assert_same(engine.submit(preset).collect(), before)
