"""Codes beside the reference package's, which another Python finds."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from engine import Clone, Codes, Design, InvalidSetting, Preset
from engine.testing import FakeEngine
from engine.worker import reference_package
from studio.cli.reference import FRAMES, compared, own_codes, reference_voice

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


def codes_of_ours() -> Codes:
    with FakeEngine() as fake:
        return own_codes(fake, RYAN)


def test_equal_frames_are_counted(tmp_path: Path) -> None:
    codes = codes_of_ours()
    assert 0 < len(codes) <= FRAMES
    for changed in (0, 1):
        ours = codes.copy()
        ours[:changed, 3] += 1
        found = compared(telling(tmp_path, ours), "model", RYAN, FakeEngine)
        same = len(codes) - changed
        assert found == {
            "reference": "qwen-tts 0.1.1", "frames_as_reference": f"{same} of {len(codes)}"
        }  # fmt: skip


def test_a_frame_more_is_no_equal_frame(tmp_path: Path) -> None:
    codes = codes_of_ours()
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
    assert reference_voice(there, Design("a calm voice")) == {"instruct": "a calm voice"}
    for voice in (Clone(np.zeros(4, np.float32)), Preset("ryan", "sadly")):
        with pytest.raises(InvalidSetting, match="--voice"):
            reference_voice(there, voice)
    with pytest.raises(InvalidSetting, match="can be run"):
        reference_voice(tmp_path / "none", RYAN)


def test_the_script_takes_what_it_is_sent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    sent = {"model": "model", "who": {"speaker": "ryan"}, "text": "Words.", "frames": 2}
    monkeypatch.setattr(reference_package, "stand_in", lambda: None)
    monkeypatch.setattr(reference_package, "version", lambda name: "1")
    monkeypatch.setattr(reference_package, "codes_of", lambda **given: seen.append(given) or [[1]])
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{json.dumps(sent)}\n"))
    reference_package.main()
    assert seen == [sent]
    assert json.loads(capsys.readouterr().out) == {"version": "1", "codes": [[1]]}
