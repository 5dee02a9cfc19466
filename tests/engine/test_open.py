"""Opening an engine: names, profiles and devices; what cannot be opened leaves nothing behind."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable

import pytest

import engine.open as open_module
from engine import (
    CheckpointError,
    InvalidSetting,
    TimbreError,
    add_model,
    open_engine,
    open_process,
)
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.open import _named, _settings, check_one_codec, model_name
from engine.testing import FakeEngine
from tests.conftest import golden_folders

FOLDER = golden_folders()[0]


def engine_threads() -> int:
    return sum(thread.name == "timbre-engine" for thread in threading.enumerate())


def test_the_cpu_has_its_own_profile_and_reads_at_once():
    with open_engine([FOLDER], device="cpu") as engine:
        assert engine.settings.max_num_seqs == 10
        assert engine.settings.pipeline_depth == 0
        assert engine.stats().talkers == (FOLDER.name,)


def test_a_profile_and_single_settings_can_be_chosen():
    with open_engine(
        [FOLDER], device="cpu", profile="latency", max_num_seqs=2, pipeline_depth=1
    ) as engine:
        assert (engine.settings.max_num_seqs, engine.settings.pipeline_depth) == (2, 1)
        assert engine.settings.file_share == 0.5


def test_without_preload_nothing_is_on_the_device():
    with open_engine([FOLDER], device="cpu", preload=False) as engine:
        assert engine.stats().talkers == ()


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"device": "toaster"}, InvalidSetting, "toaster"),
        ({"device": "cuda:99"}, InvalidSetting, "cuda:99.*--device cpu"),
        ({"dtype": "int3"}, InvalidSetting, "int3"),
        ({"profile": "fast"}, InvalidSetting, "latency"),
        ({"slotz": 3}, InvalidSetting, "slotz"),
    ],
)
def test_wrong_wishes_are_named(more, error, says):
    with pytest.raises(error, match=says):
        open_engine([FOLDER], **{"device": "cpu", **more})


def test_no_model_is_no_engine():
    with pytest.raises(CheckpointError, match="no model"):
        open_engine([])


def test_damaged_weights_leave_no_engine_behind(tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(FOLDER, broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    before = engine_threads()
    with pytest.raises(TimbreError):
        open_engine([broken], device="cpu")
    assert engine_threads() == before


def test_a_damaged_tokenizer_is_refused_where_texts_are_read(tmp_path):
    """The process of its own needs none, so this one looks."""
    broken = tmp_path / "broken"
    shutil.copytree(FOLDER, broken)
    (broken / "tokenizer.json").write_text("{")
    with open_engine([broken], device="cpu", preload=False, reads_text=False) as engine:
        assert engine.alive
    for open_ in (open_engine, open_process):
        with pytest.raises(CheckpointError, match="tokenizer"):
            open_([broken], device="cpu", preload=False)
    assert all(thread.name != "timbre-reader" for thread in threading.enumerate())


@pytest.mark.parametrize("weights", ["model.safetensors", "speech_tokenizer/model.safetensors"])
def test_a_link_to_weights_that_are_gone_is_named(tmp_path, weights):
    broken = tmp_path / "broken"
    shutil.copytree(FOLDER, broken)
    (broken / weights).unlink()
    (broken / weights).symlink_to(tmp_path / "gone")
    with FakeEngine() as engine, pytest.raises(CheckpointError, match=r"model\.safetensors"):
        add_model(engine, str(broken))
    if "/" in weights:
        with pytest.raises(CheckpointError, match=weights):
            check_one_codec({"one": FOLDER, "broken": broken})


def test_an_engine_that_is_started_anew_does_without_a_model_that_was_deleted(tmp_path):
    """In a terminal, while a server has it; then the engine's process is lost."""
    shutil.copytree(FOLDER, tmp_path / "gone")
    there = {each.name: LocalCheckpoint(each) for each in (FOLDER, tmp_path / "gone")}
    shutil.rmtree(tmp_path / "gone")
    how = {"device": "cpu", "preload": False, "start": False}
    engine = open_module._open_here([], how, there)
    assert [*engine.capabilities()] == [FOLDER.name]
    engine.close()


def test_folders_of_the_same_name_are_told_apart(tmp_path):
    folders = [tmp_path / "a" / "model", tmp_path / "b" / "model", tmp_path / "other"]
    for folder in folders:
        folder.mkdir(parents=True)
    assert list(_named(folders)) == ["model", "model (2)", "other"]


def test_a_folder_with_a_number_in_its_name_hides_no_other(tmp_path):
    """A copied folder is called so by many desktops."""
    copied, model = tmp_path / "model (2)", tmp_path / "model"
    assert _named([copied, model]) == {"model (2)": copied, "model": model}
    assert list(_named([model, tmp_path / "a" / "model", copied])) == [
        "model",
        "model (2)",
        "model (2) (2)",
    ]


def test_a_folder_of_the_hubs_cache_is_called_like_its_repository(tmp_path):
    cached = tmp_path / "models--Qwen--Qwen3-TTS-12Hz-0.6B-Base" / "snapshots" / "abc123"
    assert model_name(cached) == "Qwen3-TTS-12Hz-0.6B-Base"


def test_apples_gpu_is_small_and_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    with pytest.raises(InvalidSetting, match="GPU of an Apple computer"):
        open_engine([FOLDER], device="mps")
    settings = _settings(None, "mps", {})
    assert settings == _settings(None, "cpu", {})
    assert settings != _settings(None, "cuda", {})


def test_a_gpu_that_is_lent_may_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_module, "may_have_gpu", lambda: False)
    open_module.check_choices("cuda", "auto", None, "auto", lent=True)
    with pytest.raises(InvalidSetting, match="has no 'cuda'"):
        open_module.check_choices("cuda", "auto", None, "auto")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"device": "nonsense"}, "No device is called 'nonsense'"),
        ({"device": "cuda:x"}, "No device is called 'cuda:x'"),
        ({"device": "cuda:1"}, "This machine has no 'cuda:1'"),
        ({"dtype": "float8"}, "No dtype is called 'float8'"),
        ({"weights": "3bit"}, "No weights are called '3bit'"),
        ({"profile": "turbo"}, "There is no profile 'turbo'"),
    ],
)
@pytest.mark.parametrize("open_", [open_engine, open_process])
def test_what_nothing_has_is_refused_before_anything_is_loaded(
    open_: Callable[..., object],
    changes: dict[str, str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_module, "may_have_gpu", lambda: False)
    monkeypatch.setattr(open_module, "resolve", None)
    monkeypatch.setattr(open_module, "process_engine", None)
    with pytest.raises(InvalidSetting, match=says):
        open_(["anything"], **changes)
