"""Where a frame goes on a CPU."""

from __future__ import annotations

import threading

import pytest
from typer.testing import CliRunner

from bench.cpu_parts import BESIDE, PARTS, STEP, Parts, app
from engine.worker import worker
from engine.worker.core_shares import CoreShares


def test_what_the_codec_s_thread_does_is_beside_the_steps() -> None:
    parts = Parts()
    codec = parts.timed(PARTS[-2], lambda: None)
    codec()
    thread = threading.Thread(target=codec, name="codec_0")
    thread.start()
    thread.join()
    assert parts.calls == {PARTS[-2]: 1, BESIDE: 1}


def test_parts_of_steps_are_printed_with_and_without_the_codec_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "usable_cores", lambda: 2)
    options = ["--requests", "1", "--frames", "2", "3", "--codec-threads", "0"]
    done = CliRunner().invoke(app, [*options, "--codec-threads", "1"])
    assert done.exit_code == 0, done.output
    assert done.output.count(f"  {STEP} ") == 2
    waited, shared = (
        float(line.split()[-1]) for line in done.output.splitlines() if BESIDE in line
    )
    assert waited == 0 < shared
    assert CoreShares.forced is None
