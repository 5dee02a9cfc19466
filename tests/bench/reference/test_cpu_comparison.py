"""The engine beside the reference package: what each prints becomes one comparison."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from bench.reference import cpu_comparison, qwen_tts
from bench.workload import Job, Work

OWN = {"loads": [{"rtf_mean": 0.1, "first_p50_ms": 40.4}]}
OTHER = {"loads": [{"rtf_mean": 0.65, "first_p50_ms": 1622.0}]}


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


def test_a_comparison_asks_for_as_many_jobs_as_the_bench_asks() -> None:
    app = typer.Typer()
    app.command()(cpu_comparison.main)
    result = CliRunner().invoke(app, ["--model", "m", "--requests", "2"])
    assert result.exit_code == 2
    assert "greater than or equal to 3" in " ".join(result.output.replace("│", " ").split())


def test_the_reference_has_the_jobs_and_figures_of_the_bench() -> None:
    """The first job is spoken once before anything is measured."""
    jobs, spoken = Work().jobs(3), list[Job]()

    def speak(job: Job) -> float:
        spoken.append(job)
        return job.frames * 0.08

    row = qwen_tts.measured(speak, jobs)
    assert spoken == [jobs[0], *jobs]
    assert row["ok"] == 3
    assert row["audio_seconds"] == pytest.approx(sum(job.frames for job in jobs) * 0.08)
    assert {"rtf_mean", "first_p50_ms"} <= row.keys()
