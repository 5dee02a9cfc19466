"""Which checkpoints one engine takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import CheckpointError
from engine.open import check_one_codec
from tests.conftest import golden_folders


def test_talkers_of_one_codec_go_together() -> None:
    folder = golden_folders()[0]
    check_one_codec({"one": folder, "two": folder})


def test_another_codec_is_refused_by_name() -> None:
    one, two = golden_folders()[:2]
    with pytest.raises(CheckpointError, match=rf"{two.name} and {one.name} have different codecs"):
        check_one_codec({one.name: one, two.name: two})


def test_a_folder_without_a_codec_is_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json"):
        check_one_codec({"one": golden_folders()[0], "two": tmp_path})
