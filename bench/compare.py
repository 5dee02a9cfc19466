"""`python -m bench.compare BASE.json NEW.json`: finds regressions beyond the noise.

Each figure of a load is the median over the report's repeats; its noise is the spread of either
report's repeats. A figure is worse if it is worse by more than noise and tolerance together; then
the exit code is 1. One repeat has no known noise: repeat three times.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

LOWER = {"first_p50_ms": True, "first_p95_ms": True, "rtf_mean": True, "audio_per_second": False}
COUNTED = ("failed", "underrun_rate")  # any increase is worse
Loads = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Finding:
    """One figure of one load. `ratio`: new over base or inverse; above 1 is worse."""

    load: str
    figure: str
    base: float
    new: float
    ratio: float
    noise: float
    worse: bool

    def __str__(self) -> str:
        verdict = "WORSE" if self.worse else "better" if self.ratio < 1 - self.noise else ""
        figures = f"{self.base:10.3f} {self.new:10.3f}  x{self.ratio:.3f} ±{self.noise:.3f}"
        return f"{self.load:14} {self.figure:17} {figures}  {verdict}".rstrip()


def compare(base: dict[str, Any], new: dict[str, Any], tolerance: float) -> Iterator[Finding]:
    """Compare the figures that both reports have."""
    before, after = _by_load(base), _by_load(new)
    for load in after:
        if load in before:
            yield from _load(load, before[load], after[load], tolerance)


def _by_load(report: dict[str, Any]) -> Loads:
    rows: Loads = defaultdict(list)
    for row in report["loads"]:
        rows[row["load"]].append(row)
    return rows


def _load(
    load: str, base: list[dict[str, Any]], new: list[dict[str, Any]], tolerance: float
) -> Iterator[Finding]:
    for figure, lower in LOWER.items():
        old, now = ([row[figure] for row in rows if row.get(figure)] for rows in (base, new))
        if old and now:
            medians = statistics.median(old), statistics.median(now)
            ratio = medians[1] / medians[0] if lower else medians[0] / medians[1]
            noise = max(_spread(old), _spread(now))
            yield Finding(load, figure, *medians, ratio, noise, ratio > 1 + tolerance + noise)
    for figure in COUNTED:
        most = [max(row.get(figure, 0) for row in rows) for rows in (base, new)]
        if any(most):
            yield Finding(load, figure, most[0], most[1], 1.0, 0.0, most[1] > most[0])


def _spread(values: list[float]) -> float:
    return (max(values) - min(values)) / statistics.median(values)


def judge(base: Path, new: dict[str, Any], tolerance: float = 0.1) -> bool:
    """Print all findings; whether nothing is worse."""
    findings = list(compare(json.loads(base.read_text()), new, tolerance))
    for finding in findings:
        typer.echo(str(finding), err=True)
    if not findings:
        typer.echo("The two reports have no load in common.", err=True)
    return bool(findings) and not any(finding.worse for finding in findings)


def main(base: Path, new: Path, tolerance: Annotated[float, typer.Option(min=0)] = 0.1) -> None:
    """Compare a report with an older one."""
    raise typer.Exit(0 if judge(base, json.loads(new.read_text()), tolerance) else 1)


if __name__ == "__main__":
    typer.run(main)
