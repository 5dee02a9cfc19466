"""The commit that worsened a figure is found, even if others cannot be measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.bisect import Trials, first_worse, git

MEASURE = """
import json, pathlib, sys
first = float(pathlib.Path("cost.txt").read_text())
row = {"load": "closed 1", "first_p50_ms": first, "rtf_mean": 0.1, "audio_per_second": 5.0}
pathlib.Path(sys.argv[2]).write_text(json.dumps({"loads": [row] * 3}))
"""


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_it_finds_the_first_in_few_trials(case: tuple[int, int]) -> None:
    count, culprit = case
    asked: list[int] = []

    def worse(commit: str) -> bool:
        asked.append(int(commit))
        return int(commit) >= culprit

    assert first_worse(list(map(str, range(count))), worse) == str(culprit)
    assert len(asked) <= (count - 1).bit_length()
    assert len(set(asked)) == len(asked)


@given(st.integers(2, 25), st.data())
def test_commits_that_cannot_be_measured_are_passed_over(count: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, count - 1))
    mute = data.draw(st.sets(st.integers(0, count - 2)))

    def worse(commit: str) -> bool | None:
        return None if int(commit) in mute else int(commit) >= culprit

    found = int(first_worse(list(map(str, range(count))), worse) or -1)
    measurable = [at for at in range(culprit, count) if at not in mute]
    assert found == measurable[0]


def test_in_a_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    who = ("-c", "user.name=x", "-c", "user.email=x@x")
    commits = []
    for cost in (10, 10.2, None, 9.9, 20, 20):
        (tmp_path / "measure.py").write_text(MEASURE)
        (tmp_path / "cost.txt").write_text("broken" if cost is None else str(cost))
        (tmp_path / "when.txt").write_text(str(len(commits)))
        git(tmp_path, "add", ".")
        git(tmp_path, *who, "commit", "-qm", f"cost {cost}")
        commits.append(git(tmp_path, "rev-parse", "HEAD"))
    trials = Trials(tmp_path, [sys.executable, "measure.py"], "closed 1", "first_p50_ms")
    base = trials.measure(commits[0])
    assert base is not None
    assert json.dumps(base)
    assert trials.measure(commits[2]) is None
    found = first_worse(commits[1:], lambda commit: trials.worse(base, commit))
    assert found == commits[4]
    assert len(git(tmp_path, "worktree", "list").splitlines()) == 1  # nothing is left behind


def test_a_commit_that_is_none_is_an_error(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with pytest.raises(subprocess.CalledProcessError):
        Trials(tmp_path, ["true"], "", "").measure("none")
