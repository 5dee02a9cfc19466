"""`python -m bench.bisect GOOD BAD -- python -m bench --model /DIR -c 1 --repeats 3`

Finds the first commit after GOOD, up to BAD, whose report is worse than GOOD's (`compare.py`).
Every commit is measured in its own worktree with the current bench. Paths in the command must be
absolute. Commits that cannot be measured are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.compare import compare

BENCH = Path(__file__).parent
Report = dict[str, Any]


def first_worse(commits: Sequence[str], worse: Callable[[str], bool | None]) -> str | None:
    """The first commit that is worse, given that the last is. None: cannot be measured."""
    low, high = 0, len(commits) - 1  # the answer is in commits[low : high + 1]
    while low < high:
        verdict = None
        for at in _from_the_middle(low, high):
            verdict = worse(commits[at])
            if verdict is not None:
                break
        if verdict is None:
            break  # no commit between them can be measured
        low, high = (low, at) if verdict else (at + 1, high)
    return commits[high] if commits else None


def _from_the_middle(low: int, high: int) -> list[int]:
    """Indices from low to before high, nearest to the middle first."""
    middle = (low + high - 1) / 2
    return sorted(range(low, high), key=lambda at: abs(at - middle))


class Trials:
    """Measures commits with one command."""

    def __init__(self, repository: Path, command: Sequence[str], load: str, figure: str) -> None:
        self._repository, self._command = repository, command
        self._load, self._figure = load, figure

    def worse(self, base: Report, commit: str) -> bool | None:
        report = self.measure(commit)
        if report is None:
            return None
        found = [one for one in compare(base, report, 0.1) if self._wanted(one.load, one.figure)]
        for finding in found:
            typer.echo(f"{commit[:10]} {finding}", err=True)
        return any(finding.worse for finding in found) if found else None

    def measure(self, commit: str) -> Report | None:
        """A commit's report; None if the command fails."""
        with self._worktree(commit) as place:
            out = place / "report.json"
            own = {**os.environ, "PYTHONPATH": str(place)}
            command = [*self._command, "--out", str(out)]
            done = subprocess.run(command, cwd=place, env=own, capture_output=True, check=False)
            if done.returncode or not out.is_file():
                typer.echo(f"{commit[:10]} cannot be measured", err=True)
                return None
            report: Report = json.loads(out.read_text())
            return report

    def _wanted(self, load: str, figure: str) -> bool:
        return self._load in ("", load) and self._figure in ("", figure)

    @contextmanager
    def _worktree(self, commit: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "tree"
            git(self._repository, "worktree", "add", "--detach", str(place), commit)
            try:
                shutil.copytree(BENCH, place / "bench", dirs_exist_ok=True, ignore=_hidden)
                yield place
            finally:
                git(self._repository, "worktree", "remove", "--force", str(place))


def _hidden(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith((".", "__pycache__"))]


def git(repository: Path, *command: str) -> str:
    whole = ["git", "-C", str(repository), *command]
    return subprocess.run(whole, capture_output=True, text=True, check=True).stdout.strip()


def main(
    good: str,
    bad: str,
    command: Annotated[list[str], typer.Argument(help="after --: what measures a commit")],
    load: Annotated[str, typer.Option(help="like 'closed 1'; all of them unless named")] = "",
    figure: Annotated[str, typer.Option(help="like first_p50_ms")] = "",
) -> None:
    """Find the commit that made a figure worse."""
    repository = BENCH.parent
    trials = Trials(repository, command, load, figure)
    base = trials.measure(good)
    if base is None or not trials.worse(base, bad):
        typer.echo("These two show no regression by this command.", err=True)
        raise typer.Exit(2)
    commits = git(repository, "rev-list", "--reverse", f"{good}..{bad}").split()
    found = first_worse(commits, lambda commit: trials.worse(base, commit))
    typer.echo(git(repository, "show", "--no-patch", "--format=%h %s", found or bad))


if __name__ == "__main__":
    typer.run(main)
