"""Projects on disk: what was decided and what was spoken is there again after any crash."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import InvalidAudio, NotSaved, Preset, RequestError
from engine.testing import FakeEngine
from studio.scripts import edits
from studio.scripts.casting import Casting
from studio.scripts.line_audio import LineAudio
from studio.scripts.line_requests import Delivery, Job, plan
from studio.scripts.line_takes import LineTake
from studio.scripts.model import Line, Script
from studio.scripts.projects import PART, Project, Projects, dumped, parsed
from studio.scripts.rendering.batch_synthesis import BatchSynthesis
from studio.scripts.text.typed import script_of_text
from studio.scripts.tracks import status_of
from tests.support.crash import every_death

TEXT = "\n\n".join(f"Here is sentence number {word} of it." for word in ("one", "two", "three"))
CAST = Casting(default="ryan")


def project_of(text: str = TEXT) -> Project:
    return Project(title="A day", script=script_of_text(text), casting=CAST)


def jobs_of(project: Project) -> tuple[Job, ...]:
    return plan(project.script, {"": Preset("ryan")}, project.delivery)


def test_a_project_survives_a_reload_with_what_was_spoken(tmp_path: Path) -> None:
    projects = Projects(tmp_path)
    number = projects.create(project_of())
    project = projects.open(number)

    async def speak() -> None:
        async with BatchSynthesis(engine, jobs_of(project), projects.sounds(number)) as rendering:
            await rendering.wait()

    with FakeEngine() as engine:
        asyncio.run(speak())
    saved = projects.save(number, project.having(script=edits.redo(project.script, 1, 77)))

    again = Projects(tmp_path)
    opened = again.open(number)
    assert opened == saved
    statuses = [status_of(job, again.sounds(number)) for job in jobs_of(opened)]
    assert statuses == ["done", "waiting", "done"]
    assert [each.title for each in again.listed()] == ["A day"]
    [superseded] = again.superseded(number, {job.key for job in jobs_of(opened)}, 0)
    assert superseded == jobs_of(project)[1].key


def test_a_sound_is_superseded_once_nothing_has_used_it_for_a_while(tmp_path: Path) -> None:
    now = [1000.0]
    projects = Projects(tmp_path, lambda: now[0])
    number = projects.create(project_of())
    for key in ("first", "second", "third"):
        projects.sounds(number).keep(key, np.zeros(10, np.int16))

    def superseded(*used: str) -> set[str]:
        return projects.superseded(number, used, older_than=10)

    assert superseded("first") == set()
    now[0] += 9
    assert superseded("first", "second") == set()  # the second is used again
    now[0] += 1
    assert superseded("first") == {"third"}
    projects = Projects(tmp_path, lambda: now[0])
    assert superseded("first") == {"third"}  # times survive a restart
    now[0] -= 500  # a clock that was wrong
    assert superseded("first") == set()
    now[0] += 10
    assert superseded("first") == {"second", "third"}
    (tmp_path / number / "superseded.json").write_bytes(b"damaged")
    assert superseded("first") == set()


def test_delete_restore_and_purge(tmp_path: Path) -> None:
    now = [1000.0]
    projects = Projects(tmp_path, lambda: now[0])
    first, second = projects.create(project_of()), projects.create(project_of())
    projects.delete(first)
    assert [each.id for each in projects.listed()] == [second]
    assert [each.id for each in projects.listed(deleted=True)] == [first]
    projects.restore(first)
    assert {each.id for each in projects.listed()} == {first, second}
    projects.delete(first)
    now[0] += 50
    assert projects.purge(older_than=100) == 0
    assert projects.purge(older_than=10) == 1
    assert [path.name for path in tmp_path.iterdir()] == [second]
    with pytest.raises(RequestError, match="no such script"):
        projects.open(first)


@pytest.mark.parametrize("count", [0, 1, PART, 2 * PART + 1])
def test_a_project_is_written_and_read_some_hundred_lines_at_a_time(count: int) -> None:
    """Python's lock is held for a row: nobody waits for the whole of a long one."""
    text = '木 "lines":[\n]},"takes":{\n}}'
    script = Script(lines=tuple(Line(id=each, text=text) for each in range(count)), issued=count)
    takes = {each: (LineTake(key="a", text=text),) for each in range(count)}
    project = Project(title='"lines":[', script=script, casting=CAST, takes=takes)
    data = dumped(project)
    assert json.loads(data) == project.model_dump(mode="json")
    assert max(row.count(b'"text"') for row in data.split(b"\n")) <= PART
    assert parsed(data) == project
    assert parsed(project.model_dump_json(indent=1).encode()) == project  # of another program


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["create", "rename", "delete", "restore"]), st.integers(0, 9))
    )
)
def test_a_list_that_remembers_is_what_a_fresh_one_would_be(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("scripts")
    projects = Projects(folder)
    numbers = [projects.create(project_of())]
    for does, which in steps:
        number = numbers[which % len(numbers)]
        if does == "create":
            numbers.append(projects.create(project_of()))
        elif does == "rename":
            projects.save(number, projects.open(number).having(title=f"Title {which}"))
        else:
            getattr(projects, does)(number)
        for deleted in (False, True):
            fresh = Projects(folder).listed(deleted)
            assert sorted(projects.listed(deleted), key=str) == sorted(fresh, key=str)


def test_a_crash_at_any_moment_shows_only_whole_takes(tmp_path: Path) -> None:
    """Speak, edit and save on a machine that dies after each of its file operations."""
    pcm = np.arange(4800, dtype=np.int16)
    before = project_of()
    after = before.having(script=edits.edit(before.script, 1, "Something else is said here now."))
    keys = [job.key for project in (before, after) for job in jobs_of(project)]

    def work(operations: int) -> None:
        projects = Projects(tmp_path / str(operations))
        number = projects.create(before)
        for job in jobs_of(before):
            projects.sounds(number).keep(job.key, pcm)
        projects.save(number, after)
        projects.sounds(number).keep(jobs_of(after)[1].key, pcm)

    assert every_death(work) > 20
    seen: set[int] = set()
    for folder in tmp_path.iterdir():
        projects = Projects(folder)
        assert not projects.damaged()
        for listed in projects.listed():
            project, sounds = projects.open(listed.id), projects.sounds(listed.id)
            assert project.script in (before.script, after.script)
            whole = [key for key in dict.fromkeys(keys) if key in sounds]
            assert whole == list(dict.fromkeys(keys))[: len(whole)]
            seen.add(len(whole))
            for key in whole:
                assert sounds.samples(key) == len(pcm)
                np.testing.assert_array_equal(sounds.read(key), pcm)
    assert seen == {0, 1, 2, 3, 4}


def test_damaged_projects_are_reported_and_left_alone(tmp_path: Path) -> None:
    projects = Projects(tmp_path)
    good, bad = projects.create(project_of()), projects.create(project_of())
    file = tmp_path / bad / "project.json"
    file.write_bytes(file.read_bytes()[:200])
    (tmp_path / "link").symlink_to(tmp_path / good)
    assert [each.id for each in projects.listed()] == [good]
    assert projects.damaged() == [file]
    with pytest.raises(RequestError, match="damaged"):
        projects.open(bad)
    with pytest.raises(RequestError, match="no such script"):
        projects.open("link")
    assert projects.purge() == 0
    assert file.exists()


@pytest.mark.parametrize("evil", ["..", "../x", "", "a/b", "X", "a\x00"])
def test_no_id_leads_out_of_the_folder(tmp_path: Path, evil: str) -> None:
    projects = Projects(tmp_path)
    for call in (projects.open, projects.sounds, projects.delete, projects.restore):
        with pytest.raises(RequestError):
            call(evil)
    with pytest.raises(RequestError):
        projects.save(evil, project_of())
    with pytest.raises(InvalidAudio):
        LineAudio(tmp_path).path(evil)


def test_a_project_keeps_every_setting(tmp_path: Path) -> None:
    project = project_of().having(
        delivery=Delivery.model_validate(
            {
                "language": "english",
                "seed": 2**63 - 1,
                "sampling": {"temperature": 0.5},
                "spellings": [{"written": "a", "spoken": "b"}],
                "pauses": {"chapter": 3},
            }
        )
    )
    projects = Projects(tmp_path)
    number = projects.create(project)
    assert Projects(tmp_path).open(number).delivery == project.delivery
    with pytest.raises(ValueError, match="nonsense"):
        Delivery.model_validate({"nonsense": 1})


def test_a_folder_that_is_removed_while_the_app_runs(tmp_path: Path) -> None:
    projects = Projects(tmp_path / "scripts")
    projects.create(project_of())
    shutil.rmtree(tmp_path / "scripts")
    assert projects.listed() == projects.damaged() == []
    number = projects.create(project_of())
    assert [each.id for each in projects.listed()] == [number]


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_script_for_which_the_disk_has_no_room_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    projects = Projects(tmp_path)
    number = projects.create(project_of())
    projects.sounds(number).keep("a", np.zeros(100, np.int16))
    monkeypatch.setattr(Path, "hardlink_to", full)
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(NotSaved, match="disk is full"):
        projects.copy(number, project_of())
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(NotSaved, match="disk is full"):
        projects.create(project_of())
    assert [each.name for each in tmp_path.iterdir()] == [number]
    assert [each.id for each in projects.listed()] == [number]


def test_a_copy_has_all_that_the_original_has(tmp_path: Path) -> None:
    projects = Projects(tmp_path)
    number = projects.create(project_of(), b"a picture")
    projects.sounds(number).keep("a", np.arange(100, dtype=np.int16))
    copied = projects.copy(number, project_of("Another text of it."))
    cover = projects.cover(copied)
    assert cover
    assert cover.read_bytes() == b"a picture"
    np.testing.assert_array_equal(projects.sounds(copied).read("a"), np.arange(100))
    assert projects.open(copied).created > 0


def test_a_program_that_starts_takes_nothing_from_one_that_imports(tmp_path: Path) -> None:
    projects = Projects(tmp_path)

    def fill(sounds: Path) -> Project:
        (sounds / "a.flac").write_bytes(b"a sound")
        Projects(tmp_path)  # another program on this folder
        return project_of()

    number = projects.adopt(fill)
    assert (tmp_path / number / "sounds" / "a.flac").is_file()
