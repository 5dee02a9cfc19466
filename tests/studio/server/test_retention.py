"""What was deleted long ago leaves the disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine import Clone, Library
from studio.server import retention
from studio.settings import StudioSettings


@pytest.mark.parametrize("guests", [False, True])
def test_deleted_voices_leave_the_disk(
    tmp_path: Path, guests: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(retention, "every", lambda seconds, work: asked.append(seconds) or work())
    monkeypatch.setattr(retention, "TRASH_DAYS", 0)
    library = Library(tmp_path / "voices")
    voice = library.save("Anna", Clone(np.ones(8, np.float32)), consent=True)
    library.delete(voice.id)
    retention.empty_trash(library, StudioSettings(data=tmp_path, guests=guests))
    assert asked == ([] if guests else [retention.HOUR])
    assert bool([*tmp_path.rglob("*.safetensors")]) == guests  # guests' folders go as a whole
