"""Training waits for files that others make, as long as there is time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from training import train_loop


def test_a_file_that_does_not_come_in_time_is_named(tmp_path: Path) -> None:
    there = tmp_path / "there.pt"
    there.touch()
    train_loop.wait_for(there, None, until=0.1)
    with pytest.raises(SystemExit, match=r"gone\.pt did not come in time"):
        train_loop.wait_for(there, tmp_path / "gone.pt", until=time.time() - 1)
