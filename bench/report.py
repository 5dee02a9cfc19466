"""Figures of a run: percentiles, a table, one JSON line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bench.load_generator import GAP, UNDERRUN, Measured, Run

COLUMNS = (
    ("load", "load", ""),
    ("ok", "ok", ""),
    ("failed", "failed", ""),
    ("first_p50_ms", "first p50 ms", ".1f"),
    ("first_p95_ms", "p95", ".1f"),
    ("first_p99_ms", "p99", ".1f"),
    ("rtf_mean", "RTF", ".3f"),
    ("audio_per_second", "audio s/s", ".2f"),
    ("underrun_rate", "underruns", ".3f"),
    ("worst_deficit_ms", "worst gap ms", ".0f"),
)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value with this share of the values at or below it (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(percent / 100 * len(ordered)))]


def figures(run: Run) -> dict[str, Any]:
    good = [stream for stream in run.streams if not stream.error]
    row: dict[str, Any] = {
        "load": run.load,
        "ok": len(good),
        "failed": len(run.streams) - len(good),
    }
    if good:
        row |= _first(good) | _speed(good, run.wall) | _smoothness(good) | _kinds(good)
    if row["failed"]:
        row["first_error"] = next(stream.error for stream in run.streams if stream.error)
    return row


def _first(good: list[Measured]) -> dict[str, float]:
    first = [1e3 * stream.first for stream in good]
    total = [1e3 * stream.total for stream in good]
    audible = [1e3 * stream.audible for stream in good if stream.audible]
    return {
        **{f"first_p{p}_ms": percentile(first, p) for p in (50, 95, 99)},
        **{f"audible_p{p}_ms": percentile(audible, p) for p in (50, 95) if audible},
        **{f"total_p{p}_ms": percentile(total, p) for p in (50, 99)},
    }


def _kinds(good: list[Measured]) -> dict[str, Any]:
    """Time to first audio by kind of voice, if there are several."""
    kinds = sorted({stream.kind for stream in good})
    if len(kinds) < 2:
        return {}
    return {"kinds": {kind: _first([one for one in good if one.kind == kind]) for kind in kinds}}


def _speed(good: list[Measured], wall: float) -> dict[str, float]:
    audio = sum(stream.audio for stream in good)
    rtf = [stream.rtf for stream in good]
    return {
        "rtf_mean": sum(rtf) / len(rtf),
        "rtf_p99": percentile(rtf, 99),
        "audio_seconds": audio,
        "audio_per_second": audio / wall,
    }


def _smoothness(good: list[Measured]) -> dict[str, float]:
    deficits = [stream.deficit for stream in good]
    return {
        "underrun_rate": sum(deficit > UNDERRUN for deficit in deficits) / len(deficits),
        "gap_rate": sum(deficit > GAP for deficit in deficits) / len(deficits),
        "worst_deficit_ms": 1e3 * max(deficits),
    }


def table(rows: list[dict[str, Any]]) -> str:
    cells = [[title for _, title, _ in COLUMNS]]
    cells += [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_line(row, widths) for row in cells)


def _cells(row: dict[str, Any]) -> list[str]:
    return [format(row[key], form) if key in row else "-" for key, _, form in COLUMNS]


def _line(cells: list[str], widths: list[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def json_line(report: dict[str, Any]) -> str:
    return json.dumps(report, ensure_ascii=False)
