"""`python -m bench.reference.cpu_comparison --model DIR`: this engine and the reference on a CPU.

Each runs in a process of its own, one after the other, with the same checkpoint, jobs and figures:
the mean real-time factor and the median of the first audio. The reference package needs its
environment (bench/reference/qwen_tts.py says how), which is bench/.reference unless `--reference`
names another Python.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "bench" / ".reference" / "bin" / "python"


def run(command: list[str]) -> dict[str, Any]:
    """The report that a bench prints as its last line."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return report


def compared(here: dict[str, Any], reference: dict[str, Any]) -> list[str]:
    """A line for each, and how many times as fast this engine is."""
    loads = {"timbre   ": here["loads"][0], "reference": reference["loads"][0]}
    lines = [
        f"{name}  real-time factor {load['rtf_mean']:.3f}, "
        f"first audio {load['first_p50_ms']:.0f} ms"
        for name, load in loads.items()
    ]
    ours, theirs = (load["rtf_mean"] for load in loads.values())
    return [*lines, f"{theirs / ours:.1f} times as fast"]


def main(
    model: Annotated[Path, typer.Option(help="a checkpoint folder")],
    weights: str = "auto",
    requests: Annotated[int, typer.Option(min=3, help="as `python -m bench` asks at least")] = 6,
    frames: Annotated[tuple[int, int], typer.Option(help="shortest and longest")] = (25, 90),
    reference: Annotated[Path, typer.Option(help="the other environment's Python")] = REFERENCE,
) -> None:
    """Measure both and print them side by side."""
    if not reference.exists():
        raise typer.BadParameter(f"{reference} is not there; see bench/reference/qwen_tts.py.")
    shared = ["--model", str(model.resolve()), "--requests", str(requests)]
    shared += ["--frames", *map(str, frames)]
    command = [sys.executable, "-m", "bench", "--device", "cpu", "-c", "1", "--weights", weights]
    for line in compared(
        run(command + shared), run([str(reference), "-m", "bench.reference.qwen_tts", *shared])
    ):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
