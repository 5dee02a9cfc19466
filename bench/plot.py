"""`python -m bench.plot OUT.svg REPORT.json …`: plots latency and throughput against load.

One line per report, named by its file. Repeats are drawn as their median.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import typer

PANELS = (
    ("closed", "first_p50_ms", "first byte, median (ms)"),
    ("closed", "first_p99_ms", "first byte, 99th percentile (ms)"),
    ("closed", "audio_per_second", "audio seconds per second"),
    ("poisson", "first_p95_ms", "first byte, 95th percentile (ms)"),
)
AXES = {"closed": "concurrent listeners", "poisson": "arrivals per second"}


def line(report: dict[str, Any], kind: str, figure: str) -> list[tuple[float, float]]:
    """A figure's medians by the size of the load, in ascending order."""
    found: dict[float, list[float]] = defaultdict(list)
    for row in report["loads"]:
        name, _, size = row["load"].partition(" ")
        if name == kind and figure in row:
            found[float(size)].append(row[figure])
    return sorted((size, statistics.median(values)) for size, values in found.items())


def draw(reports: dict[str, dict[str, Any]], out: Path) -> None:
    """Draw the panels for which there are figures."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    panels = [panel for panel in PANELS if any(line(one, *panel[:2]) for one in reports.values())]
    figure = Figure(figsize=(4.2 * max(1, len(panels)), 3.4), layout="constrained")
    for place, (kind, name, title) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        for label, report in reports.items():
            if points := line(report, kind, name):
                axes.plot(*zip(*points, strict=True), marker="o", label=label)
        axes.set(title=title, xlabel=AXES[kind], xscale="log", yscale="log")
        sizes = sorted({size for one in reports.values() for size, _ in line(one, kind, name)})
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
        axes.grid(alpha=0.3, which="both")
        axes.legend()
    with rc_context({"svg.fonttype": "none"}):  # text stays text
        figure.savefig(out)


def main(out: Path, reports: list[Path]) -> None:
    """Plot reports into one picture (.svg, .png or .pdf)."""
    draw({path.stem: json.loads(path.read_text()) for path in reports}, out)


if __name__ == "__main__":
    typer.run(main)
