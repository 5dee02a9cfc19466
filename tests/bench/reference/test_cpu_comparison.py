"""The engine beside the reference package: what each prints becomes one comparison."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer

from bench.reference import cpu_comparison

OWN = {"loads": [{"rtf_mean": 0.1, "first_p50_ms": 40.4}]}
OTHER = {"rtf": 0.65, "first_audio_ms_mean": 1622.0}


def test_both_reports_become_one_comparison() -> None:
    *each, times = cpu_comparison.compared(OWN, OTHER)
    assert each[0].endswith("0.100, first audio 40 ms")
    assert each[1].endswith("0.650, first audio 1622 ms")
    assert times == "6.5 times as fast"


def test_a_report_is_the_last_line_that_is_printed() -> None:
    printed = f"print('a table'); print('''{json.dumps(OTHER)}''')"
    assert cpu_comparison.run([sys.executable, "-c", printed]) == OTHER


def test_a_missing_environment_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="is not there"):
        cpu_comparison.main(tmp_path, reference=tmp_path / "python")
