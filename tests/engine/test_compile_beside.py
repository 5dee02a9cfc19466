"""While another process compiles kernels the plain form speaks; then kernels are taken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import Preset, SpeechRequest, open_engine
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.engine import Engine
from engine.worker.codec.codec_graphs import CpuStep
from engine.worker.cpu_start import CpuStart
from engine.worker.kernels.cpu import compiler
from engine.worker.loading.start_cache import StartCache
from engine.worker.worker import TorchWorker
from engine.worker.worker_settings import WorkerSettings
from studio.cli.app_context import MINI
from tests.support.serving import wait_until

COMPILED = 600.0  # seconds that a busy machine may take to compile kernels
TOLD = "Compiling kernels for this processor, once: 1 of at most 2."


def seconds(engine: Engine) -> float:
    request = SpeechRequest("Good morning.", Preset("clara"), seed=3)
    return sum(chunk.seconds for chunk in engine.submit(request))


def on_kernels(worker: TorchWorker) -> bool:
    (runner,) = worker._runners.values()
    return runner._threads is not None and isinstance(worker._codec()._stepper.step, CpuStep)


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """As on a processor that no kernel was compiled for; another process does what is said."""

    def begins(code: str) -> None:
        monkeypatch.setattr(CpuStart, "compiled", lambda *_: False)
        monkeypatch.setattr(
            CpuStart,
            "begin",
            lambda *_: subprocess.Popen(
                [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True
            ),
        )

    return begins


@pytest.mark.parametrize("weights", ["auto", "8bit"])
def test_kernels_are_taken_when_they_are_there(
    compiling: Callable[[str], None],
    tmp_path: Path,
    weights: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    compiling(f"import sys; print({TOLD!r}, file=sys.stderr)")
    taken = TorchWorker._take_kernels
    ready = False
    monkeypatch.setattr(
        TorchWorker, "_take_kernels", lambda worker, talker: ready and taken(worker, talker)
    )
    with open_engine([MINI], "cpu", weights=weights, cache=tmp_path, beside=True) as engine:
        worker = engine._worker
        assert isinstance(worker, TorchWorker)
        assert not on_kernels(worker)
        assert seconds(engine) > 0.5
        monkeypatch.setattr(CpuStart, "compiled", lambda *_: True)
        ready = True
        wait_until(lambda: on_kernels(worker), COMPILED)
        assert seconds(engine) > 0.5
    assert TOLD in caplog.text


def test_of_a_model_that_was_replaced_meanwhile_no_kernels_are_taken(golden_dir: Path) -> None:
    first, second = (LocalCheckpoint(golden_dir / name) for name in ("base-0b6", "base-1b7"))
    cache = golden_dir / "nowhere"
    settings = WorkerSettings(1, 64, "cpu", weights="8bit", cache=cache, fast=True)
    worker = TorchWorker({"first": first}, settings)
    worker.exchange("first", "second", second)
    assert worker._take_kernels("first")


def test_where_nothing_can_be_kept_kernels_are_compiled_here(
    compiling: Callable[[str], None], tmp_path: Path
) -> None:
    compiling("raise SystemExit(1)")
    (tmp_path / "file").touch()
    cache = tmp_path / "file" / "cache"
    with open_engine([MINI], "cpu", cache=cache, beside=True) as engine:
        assert isinstance(engine._worker, TorchWorker)
        assert on_kernels(engine._worker)


def test_a_process_whose_turn_has_not_come_takes_no_memory(tmp_path: Path) -> None:
    code = (
        "import json, sys\n"
        "from engine.worker import first_start\n"
        "def waits(folder):\n"
        "    raise SystemExit(3 if 'torch' in sys.modules else 0)\n"
        "first_start.exclusive = waits\n"
        "first_start.main(json.dumps([sys.argv[1], 'auto', sys.argv[1], sys.argv[1]]))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_a_process_that_finds_all_of_it_done_loads_nothing(tmp_path: Path) -> None:
    code = (
        "import json, sys\n"
        "from engine.worker import first_start\n"
        "first_start.main(json.dumps([sys.argv[1], 'auto', sys.argv[1], sys.argv[2]]))\n"
        "raise SystemExit(3 if 'torch' in sys.modules else 0)\n"
    )
    (tmp_path / "proof").touch()
    subprocess.run([sys.executable, "-c", code, str(tmp_path), str(tmp_path / "proof")], check=True)


def test_kernels_that_are_gone_are_compiled_beside_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = CpuStart(StartCache(tmp_path), MINI, "auto")
    start.talker_proof(1).keep({"predict": 1, "talk": 1})
    monkeypatch.setattr(compiler, "is_kept", lambda kernel: False)
    assert not start.compiled(1)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: None)
    start.begin(1)  # which would find the proof, and nothing to do
    assert start.talker_proof(1).known() is None


def test_without_kernels_the_plain_form_stays(
    compiling: Callable[[str], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    compiling("raise SystemExit(1)")
    with open_engine([MINI], "cpu", cache=tmp_path, beside=True) as engine:
        wait_until(lambda: "could not be compiled" in caplog.text)
        assert seconds(engine) > 0.5
        assert isinstance(engine._worker, TorchWorker)
        assert not on_kernels(engine._worker)
