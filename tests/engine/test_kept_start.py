"""What a first start on a CPU keeps: a later one speaks the same, and tries nothing again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numba import config

from engine import Preset, SpeechRequest, add_model, forget_packed, open_engine
from engine.checkpoints.files import CODEC_FOLDER
from engine.types import Codes, Pcm
from engine.worker import cpu_start
from engine.worker import worker as worker_module
from engine.worker.codec.cpu_decoder import CpuDecoder
from engine.worker.core_shares import FrameTimes
from engine.worker.cpu_start import CpuStart
from engine.worker.loading.model_loader import load_talker
from engine.worker.loading.start_cache import StartCache
from engine.worker.talker import cpu_kernels
from studio.cli.app_context import MINI

Spoken = tuple[Codes, Pcm]
WEIGHTS = ("auto", "8bit", "4bit")


def spoken(weights: str, cache: Path | None) -> Spoken:
    with open_engine([MINI], "cpu", weights=weights, cache=cache, max_num_seqs=2) as engine:
        chunks = list(engine.submit(SpeechRequest("Good morning.", Preset("clara"), seed=3)))
    return (
        np.concatenate([chunk.codes for chunk in chunks]),
        np.concatenate([chunk.pcm for chunk in chunks]),
    )


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Spoken]]:
    """By weights: a folder that a first start has filled, and its speech."""
    folders = {weights: tmp_path_factory.mktemp(weights) for weights in WEIGHTS}
    return {weights: (folder, spoken(weights, folder)) for weights, folder in folders.items()}


def same(one: Spoken, two: Spoken) -> None:
    for each, other in zip(one, two, strict=True):
        np.testing.assert_array_equal(each, other)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_later_start_speaks_the_same_and_compares_nothing(
    caches: dict[str, tuple[Path, Spoken]], weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, first = caches[weights]

    def compared(*_: object) -> float:
        raise AssertionError("compared again")

    monkeypatch.setattr(CpuDecoder, "difference", compared)
    monkeypatch.setattr(cpu_kernels, "_difference", compared)
    same(spoken(weights, folder), first)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_talker_is_mapped(
    caches: dict[str, tuple[Path, Spoken]], weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by the start that has kept it."""
    folder, first = caches[weights]
    monkeypatch.setattr(worker_module, "load_talker", None)
    same(spoken(weights, folder), first)


@pytest.mark.parametrize("weights", ["auto", "8bit"])
def test_a_folder_changes_nothing_in_the_speech(
    caches: dict[str, tuple[Path, Spoken]], weights: str
) -> None:
    same(spoken(weights, None), caches[weights][1])


def test_nothing_of_a_model_that_is_removed_is_kept(tmp_path: Path) -> None:
    """It may be somebody's voice, which is deleted."""
    shutil.copytree(MINI, tmp_path / "ann")
    with (tmp_path / "ann" / "config.json").open("a") as config:
        config.write("\n")  # another model, then
    cache = tmp_path / "cache"
    with open_engine([MINI, tmp_path / "ann"], "cpu", cache=cache, max_num_seqs=2) as engine:
        kept = {*cache.glob("talker-*.packed")}
        assert len(kept) == 1
        engine.load("ann")
        assert len([*cache.glob("talker-*.packed")]) == 2
        engine.remove("ann")
        assert {*cache.glob("talker-*.packed")} == kept
        add_model(engine, str(tmp_path / "ann"))
        engine.load("ann")
        assert len([*cache.glob("talker-*.packed")]) == 2
        forget_packed(tmp_path / "ann", cache)  # by another program
        assert {*cache.glob("talker-*.packed")} == kept


def test_a_program_that_compiles_nothing_forgets_a_packed_talker(tmp_path: Path) -> None:
    talker = load_talker(MINI, torch.device("cpu"), torch.float32, "8bit")
    assert CpuStart(StartCache(tmp_path), MINI, "8bit").keep_talker(talker, 1)
    assert list(tmp_path.glob("*.packed"))
    given = f"Path({str(MINI)!r}), Path({str(tmp_path)!r})"
    code = f"from pathlib import Path; import engine; engine.forget_packed({given})"
    told = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", code], env=told, check=True)
    assert not list(tmp_path.glob("*.packed"))


def test_what_frames_take_is_kept_with_what_is_known_of_their_kernels(tmp_path: Path) -> None:
    start, times = (
        CpuStart(StartCache(tmp_path), MINI, "auto"),
        FrameTimes({1: {1: 0.01}}, {1: 0.02}),
    )
    start.keep_frame_times(1, times)
    assert start.frame_times(1) is None, "kernels that nobody tried"
    start.talker_proof(1).keep({"talk": 1})
    start.keep_frame_times(1, times)
    assert start.frame_times(1) == times
    assert start.frame_times(2) is None


def test_weights_that_were_renamed_are_other_weights(tmp_path: Path) -> None:
    """A folder often holds earlier and later weights beside those that are read."""
    for each in (tmp_path, tmp_path / CODEC_FOLDER):
        each.mkdir(exist_ok=True)
        (each / "config.json").touch()
        (each / "model.safetensors").write_bytes(b"first")
        (each / "better.safetensors").write_bytes(b"second")
    cache = StartCache(tmp_path / "cache")
    before = CpuStart(cache, tmp_path, "8bit")
    keys = before._talker_key, before._codec_key
    for each in (tmp_path, tmp_path / CODEC_FOLDER):
        (each / "model.safetensors").rename(each / "old.safetensors")
        (each / "better.safetensors").rename(each / "model.safetensors")
    after = CpuStart(cache, tmp_path, "8bit")
    assert after._talker_key != keys[0]
    assert after._codec_key != keys[1]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("numba.config.CPU_NAME", "haswell"),
        ("numba.config.CPU_FEATURES", "+avx2"),
        ("numba.config.ENABLE_AVX", None),  # the other of both
        ("torch.backends.cpu.get_cpu_capability", lambda: "another"),
    ],
)
def test_what_numba_and_torch_are_told_to_use_is_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: object
) -> None:
    """torch's weights of 4 bits lie in another order for other vectors: speech would be noise."""
    before = CpuStart(StartCache(tmp_path), MINI, "4bit")
    keys = before._talker_key, before._codec_key
    monkeypatch.setattr(name, not config.ENABLE_AVX if told is None else told)
    after = CpuStart(StartCache(tmp_path), MINI, "4bit")
    assert after._talker_key != keys[0]
    assert after._codec_key != keys[1]


def test_what_is_damaged_is_made_again(caches: dict[str, tuple[Path, Spoken]]) -> None:
    folder, first = caches["8bit"]
    files = sorted(folder.glob("*.packed"))
    assert [path.name.partition("-")[0] for path in files] == ["codec", "talker"]
    whole = [path.read_bytes() for path in files]
    for path, data in zip(files, whole, strict=True):
        path.write_bytes(data[:-4096] + bytes(4096))
    same(spoken("8bit", folder), first)
    assert [path.read_bytes() for path in files] == whole


def test_full_weights_of_a_large_model_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody asked for a copy of a model in the cache, three times its size."""
    talker = load_talker(MINI, torch.device("cpu"), torch.float32, "full")
    start = CpuStart(StartCache(tmp_path), MINI, "full")
    start.talker_proof(1).keep({"talk": 1})
    monkeypatch.setattr(cpu_start, "MOST_FULL", 1 << 20)
    assert not start.keep_talker(talker, 1)
    assert not list(tmp_path.glob("*.packed"))
    monkeypatch.undo()
    assert start.keep_talker(talker, 1)
