"""A process that is started before it is known what its engine shall be."""

from __future__ import annotations

import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from engine import Preset, SpeechRequest
from engine.remote.boot import BootedProcess
from engine.remote.process import process_engine
from engine.testing import FakeCheckpoint, FakeEngine

if sys.platform == "win32":
    pytest.skip("a process gets its socket by number, as on POSIX", allow_module_level=True)


def fake(mark: Path, checkpoints: object) -> FakeEngine:
    mark.write_text(str("wave" in sys.modules))
    return FakeEngine((FakeCheckpoint(),))


def test_an_engine_opens_in_the_process_that_waits_for_it(tmp_path: Path) -> None:
    booted = BootedProcess("wave")  # any module that Python brings
    with process_engine(partial(fake, tmp_path / "mark"), booted=booted) as engine:
        assert engine.transport._process is booted.process  # type: ignore[attr-defined]
        request = SpeechRequest("Hello there.", Preset("ryan"), seed=4)
        with engine.submit(request) as stream:
            assert sum(len(chunk.pcm) for chunk in stream) > 0
    assert (tmp_path / "mark").read_text() == "True", "imported before it was told anything"
    booted.discard()  # which does nothing to a process that was taken
    assert booted.process.returncode == 0


def test_a_process_that_nobody_takes_ends() -> None:
    booted = BootedProcess()
    booted.discard()
    assert booted.process.returncode == -signal.SIGKILL


def test_a_process_hears_no_interrupt_from_its_first_moment_on() -> None:
    """A terminal sends Ctrl-C to all processes of a command."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    booted = BootedProcess()
    try:
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
        booted.process.send_signal(signal.SIGINT)
        with process_engine(fake_here, booted=booted) as engine:
            assert engine.alive
    finally:
        booted.discard()


def fake_here(checkpoints: object) -> FakeEngine:
    return FakeEngine((FakeCheckpoint(),))
