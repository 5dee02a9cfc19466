"""`python -m bench.reference.cpu_peers --model DIR --threads N --python PATH`: other CPU engines.

This engine and those that the package registry has, in turn, on the same cores, the same checkpoint
and the same text: real-time factor, first audio, seconds of loading, memory. Each start is a
process of its own; the first start of each is not counted. The others need an environment:

    python3 -m venv PEERS && PEERS/bin/pip install vox-tts realtimetts-qwen-native-cpu

vox's file is made here (`python -m vox build`) and kept in `--files`. The other engine takes
talker.gguf and codec.gguf, which no package of the registry makes: `--gguf DIR` names a folder that
has them; without it that engine is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from bench.reference.cpu_peer import Report

ROOT = Path(__file__).parents[2]
FILES = Path(tempfile.gettempdir(), "timbre-peers")
BITS = ("4", "8")
QUANT = {"4": "q4", "8": "q8"}
INSTALL = "PEERS/bin/pip install vox-tts realtimetts-qwen-native-cpu makes it"
HEAD = ("engine", "RTF", "first audio ms", "load s", "resident (anonymous) MB")


@dataclass(frozen=True)
class Peer:
    """An engine with the bits of its weights, and the command that measures one start of it."""

    name: str
    command: tuple[str, ...]


def peers(
    python: Path, model: Path, bits: Sequence[str], files: Path, gguf: Path | None
) -> Iterator[Peer]:
    for each in bits:
        weights = ("--weights", f"{each}bit")
        yield Peer(
            f"timbre, {each} bits", _command(Path(sys.executable), "timbre", model, *weights)
        )
        file = vox_file(files, model, each)
        yield Peer(f"vox-tts, {QUANT[each]}", _command(python, "vox", file))
    if gguf is not None:
        yield Peer(f"qwen-native, {gguf.name}", _command(python, "qwen-native", gguf))


def _command(python: Path, engine: str, model: Path, *more: str) -> tuple[str, ...]:
    place = str(model.absolute())
    return (str(python), "-m", "bench.reference.cpu_peer", engine, "--model", place, *more)


def vox_file(files: Path, model: Path, bits: str) -> Path:
    return files / f"{model.name}.{QUANT[bits]}.tmod"


def build(python: Path, model: Path, bits: Sequence[str], files: Path) -> None:
    """vox's files that are not there yet."""
    files.mkdir(parents=True, exist_ok=True)
    for each in bits:
        out = vox_file(files, model, each)
        if out.exists():
            continue
        part = out.with_suffix(".part")
        options = ["--quant", QUANT[each], "--dtype", "f16", "--no-hash", "-o", str(part)]
        subprocess.run(
            [str(python), "-m", "vox", "build", "--model", str(model), *options],
            check=True, stdout=sys.stderr,
        )  # fmt: skip
        part.replace(out)


def start(peer: Peer, more: Sequence[str]) -> Report:
    """What one start printed as its last line."""
    done = subprocess.run(
        [*peer.command, *more], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{peer.name} ended with {done.returncode}; its own words are above.")
    return Report(**json.loads(done.stdout.strip().splitlines()[-1]))


def table(found: Mapping[str, Sequence[Report]]) -> list[str]:
    """A row for each engine: medians of its starts, of the factor also the extremes."""
    rows = [HEAD, tuple("---" for _ in HEAD)]
    for name, reports in found.items():
        factors = [report.factor for report in reports]
        first = f"{1e3 * median(report.first for report in reports):.0f}"
        for way in reports[0].early:
            first += f"; {way} {1e3 * median(report.early[way] for report in reports):.0f}"
        rows.append((
            f"{name} ({reports[0].version})",
            f"{median(factors):.2f} ({min(factors):.2f} to {max(factors):.2f})",
            first,
            f"{median(report.load for report in reports):.1f}",
            f"{median(report.resident for report in reports):.0f}"
            f" ({median(report.anonymous for report in reports):.0f})",
        ))  # fmt: skip
    return ["| " + " | ".join(row) + " |" for row in rows]


def main(
    model: Annotated[Path, typer.Option(help="a checkpoint folder with preset voices")],
    python: Annotated[Path, typer.Option(help="the Python that has the other packages")],
    threads: Annotated[int, typer.Option(min=1)] = len(os.sched_getaffinity(0)),
    bits: Annotated[str, typer.Option(help="4, 8 or 4,8")] = "4,8",
    turns: Annotated[int, typer.Option(min=1, help="counted starts of each")] = 3,
    requests: Annotated[int, typer.Option(min=1, help="of each start")] = 2,
    frames: Annotated[int, typer.Option(min=12, help="of each request, of 80 ms")] = 40,
    files: Annotated[Path, typer.Option(help="where vox's files are kept")] = FILES,
    gguf: Annotated[Path | None, typer.Option(help="folder of talker.gguf and codec.gguf")] = None,
) -> None:
    """Measure all in turn and print a table."""
    wanted = bits.split(",")
    if not set(wanted) <= set(BITS):
        raise typer.BadParameter(f"bits are {' or '.join(BITS)}")
    if not (model / "config.json").exists():
        raise typer.BadParameter(f"{model} is no checkpoint folder")
    if not python.exists():
        raise typer.BadParameter(f"{python} is not there; {INSTALL}")
    build(python, model, wanted, files)
    every = list(peers(python, model, wanted, files, gguf))
    size = ["--threads", str(threads), "--requests", str(requests), "--frames", str(frames)]
    for peer in every:
        start(peer, ["--threads", str(threads), "--requests", "1", "--frames", "12"])
    found: dict[str, list[Report]] = {peer.name: [] for peer in every}
    for turn in range(turns):
        for peer in every:
            found[peer.name].append(start(peer, size))
        typer.echo(f"turn {turn + 1} of {turns}", err=True)
    for line in table(found):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
