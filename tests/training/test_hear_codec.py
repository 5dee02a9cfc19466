"""All recordings of a folder are heard, whatever their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.hear_codec import recordings


def test_recordings_of_any_name_are_heard(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="has no recordings"):
        recordings(tmp_path)
    for name in ("1.wav", "clara.wav", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in recordings(tmp_path)] == ["1.wav", "clara.wav"]
