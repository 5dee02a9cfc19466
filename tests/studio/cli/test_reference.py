"""Codes beside the reference package's, which another Python finds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine import Clone, Codes, Design, InvalidSetting, Preset
from engine.testing import FakeEngine
from studio.cli import reference_script
from studio.cli.reference import FRAMES, asked, compared, own_codes

RYAN = Preset("ryan")


def python(folder: Path, body: str) -> Path:
    """A program that stands where a Python with the package would."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return program


def telling(folder: Path, codes: Codes) -> Path:
    (folder / "told.json").write_text(json.dumps({"version": "0.1.1", "codes": codes.tolist()}))
    return python(folder, f"echo loading; cat {folder}/told.json")


def own() -> Codes:
    with FakeEngine() as engine:
        return own_codes(engine, RYAN)


def test_equal_frames_are_counted(tmp_path: Path) -> None:
    codes = own()
    assert 0 < len(codes) <= FRAMES
    for changed in (0, 1):
        told = codes.copy()
        told[:changed, 3] += 1
        found = compared(telling(tmp_path, told), "model", RYAN, FakeEngine)
        same = len(codes) - changed
        assert found == {
            "reference": "qwen-tts 0.1.1", "frames_as_reference": f"{same} of {len(codes)}"
        }  # fmt: skip


def test_a_frame_more_is_no_equal_frame(tmp_path: Path) -> None:
    codes = own()
    found = compared(telling(tmp_path, codes[:-1]), "model", RYAN, FakeEngine)
    assert found["frames_as_reference"] == f"{len(codes) - 1} of {len(codes)}"


@pytest.mark.parametrize(
    "body", ["echo No module named qwen_tts >&2; exit 1", "echo nonsense", "true", "echo '{}'"]
)
def test_a_python_without_the_package_is_told(tmp_path: Path, body: str) -> None:
    with pytest.raises(InvalidSetting, match="could not run the reference package"):
        compared(python(tmp_path, body), "model", RYAN, FakeEngine)


def test_what_cannot_be_compared_is_refused_before_anything_loads(tmp_path: Path) -> None:
    there = python(tmp_path, "true")
    assert asked(there, Design("a calm voice")) == {"instruct": "a calm voice"}
    for voice in (Clone(np.zeros(4, np.float32)), Preset("ryan", "sadly")):
        with pytest.raises(InvalidSetting, match="--voice"):
            asked(there, voice)
    with pytest.raises(InvalidSetting, match="can be run"):
        asked(tmp_path / "none", RYAN)


def test_the_script_takes_what_it_is_given(monkeypatch: pytest.MonkeyPatch, capsys) -> None:  # type: ignore[no-untyped-def]
    seen = []
    monkeypatch.setattr(reference_script, "stand_in", lambda: None)
    monkeypatch.setattr(reference_script, "version", lambda name: "1")
    monkeypatch.setattr(reference_script, "codes_of", lambda *given: seen.append(given) or [[1]])
    monkeypatch.setattr("sys.argv", ["script", "model", '{"speaker": "ryan"}', "Words.", "2"])
    reference_script.main()
    assert seen == [("model", {"speaker": "ryan"}, "Words.", 2)]
    assert json.loads(capsys.readouterr().out) == {"version": "1", "codes": [[1]]}
