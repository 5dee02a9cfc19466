"""Exports on the server: one at a time of a script, cancelled between blocks, found again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import InvalidSetting, RequestError
from studio.context import Studio
from studio.scripts.export import export_jobs
from studio.scripts.export.export_jobs import ExportJobs, ExportState
from studio.scripts.export.script_files import ExportOptions, export
from studio.ui.tabs.script.handlers import ScriptTab
from tests.support.script_tab_makers import act, spoken
from tests.support.serving import wait_until

OPTIONS = ExportOptions("wav")


@pytest.fixture
def jobs(studio: Studio) -> ExportJobs:
    return studio.exports


def ended(jobs: ExportJobs, number: str) -> ExportState:
    wait_until(lambda: not jobs.state(number).running, 60)
    state = jobs.state(number)
    assert state
    return state


class Held:
    """An export that waits in the middle until it may go on."""

    def __init__(self) -> None:
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def __call__(self, opened: Any, options: Any, folder: Path, on_step: Any) -> list[Path]:
        self.begun.set()
        assert self.may_go_on.wait(60)
        return export(opened, options, folder, on_step)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    work = Held()
    monkeypatch.setattr(export_jobs, "export", work)
    yield work
    work.may_go_on.set()


def test_an_export_is_what_export_makes_and_tells_its_steps(
    tab: ScriptTab, number: str, studio: Studio, jobs: ExportJobs, tmp_path: Path
) -> None:
    spoken(tab, number, aloud=False)
    seen: list[tuple[str, float]] = []
    made = export(tab.store.open(number), OPTIONS, tmp_path / "a", lambda *each: seen.append(each))
    steps = [step for step, _ in seen]
    assert list(dict.fromkeys(steps)) == list(OPTIONS.steps)
    for step in OPTIONS.steps:
        shares = [share for each, share in seen if each == step]
        assert shares == sorted(shares)
        assert 0 <= shares[0] <= shares[-1] <= 1
    jobs.start(number, OPTIONS, tmp_path / "b")
    state = ended(jobs, number)
    assert state.phase == "done"
    assert state.done == 1
    assert [path.name for path in state.files] == [path.name for path in made]
    assert [path.read_bytes() for path in state.files] == [path.read_bytes() for path in made]
    assert not jobs.is_stale(number, state)
    act(tab, number, do="remove", line=tab.store.open(number).script.lines[0].id)
    assert jobs.is_stale(number, state)


def test_a_script_is_exported_once_at_a_time(
    tab: ScriptTab, number: str, jobs: ExportJobs, held: Held, tmp_path: Path
) -> None:
    spoken(tab, number, aloud=False)
    jobs.start(number, OPTIONS, tmp_path)
    assert held.begun.wait(60)
    with pytest.raises(RequestError, match="already"):
        jobs.start(number, OPTIONS, tmp_path)
    held.may_go_on.set()
    assert ended(jobs, number).phase == "done"


def test_a_cancelled_export_leaves_nothing_and_the_files_before_it_stay(
    tab: ScriptTab, number: str, jobs: ExportJobs, monkeypatch: Any, tmp_path: Path
) -> None:
    spoken(tab, number, aloud=False)
    folder = tmp_path / "files"
    jobs.start(number, OPTIONS, folder)
    before = ended(jobs, number).files
    work = Held()
    monkeypatch.setattr(export_jobs, "export", work)
    jobs.start(number, OPTIONS, folder)
    assert work.begun.wait(60)
    jobs.cancel(number)
    work.may_go_on.set()
    state = ended(jobs, number)
    assert state.phase == "cancelled"
    assert state.files == before
    assert [*folder.iterdir()] == [before[0].parent]
    monkeypatch.undo()
    jobs.start(number, OPTIONS, folder)
    again = ended(jobs, number).files
    assert [*folder.iterdir()] == [again[0].parent]  # the older ones are gone


def test_what_cannot_be_exported_is_refused_and_what_fails_is_told(
    tab: ScriptTab, number: str, jobs: ExportJobs, monkeypatch: Any, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSetting, match="not rendered"):
        jobs.start(number, OPTIONS, tmp_path)
    assert jobs.state(number) is None
    spoken(tab, number, aloud=False)

    def full(*_: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(export_jobs, "export", full)
    jobs.start(number, OPTIONS, tmp_path)
    state = ended(jobs, number)
    assert (state.phase, state.error) == ("failed", "No space left on device")
