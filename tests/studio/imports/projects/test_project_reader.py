"""A project as one file: everything comes back, and hostile files leave nothing behind."""

from __future__ import annotations

import io
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
import soundfile

from engine import SAMPLE_RATE, InvalidText
from studio.imports.projects import project_reader as reader
from studio.imports.projects.json_bounds import check_json
from studio.scripts import Casting, Project, Projects, script_of_text
from studio.scripts.line_takes import LineTake
from studio.scripts.project_files import export_project
from tests.studio.imports.books.book_makers import zipped
from tests.support.script_makers import TEXT, jobs_of

TAKE = "0" * 32


@pytest.fixture
def projects(tmp_path: Path) -> Projects:
    return Projects(tmp_path / "scripts")


def made(projects: Projects) -> str:
    """A project with audio for each line and an earlier take."""
    takes = {1: (LineTake(key=TAKE, seed=5, text="Where"), LineTake(key="1" * 32))}
    script = script_of_text(TEXT)
    number = projects.create(
        Project(title="Öl & Söhne", script=script, casting=Casting(default="ryan"), takes=takes)
    )
    sounds = projects.sounds(number)
    for place, key in enumerate([*{job.key for job in jobs_of() if job.key}, TAKE]):
        sounds.keep(key, np.full(2400 + place, place, np.int16))
    return number


def file_of(projects: Projects, number: str, folder: Path) -> bytes:
    project = projects.open(number)
    return export_project(
        folder / "p.zip", project, jobs_of(), projects.sounds(number)
    ).read_bytes()


def import_project(projects: Projects, file: io.BytesIO) -> str:
    """Import a project in this process, without the bounds of an import process."""
    return projects.adopt(lambda folder: reader.project_of(reader.read_project(file, folder)))


def flac(samples: int = 2400, rate: int = SAMPLE_RATE, channels: int = 1) -> bytes:
    data = io.BytesIO()
    soundfile.write(data, np.zeros((samples, channels), np.int16), rate, format="FLAC")
    return data.getvalue()


def test_a_project_comes_back_with_its_audio_and_takes(projects: Projects, tmp_path: Path) -> None:
    number = made(projects)
    data = file_of(projects, number, tmp_path)
    other = Projects(tmp_path / "other")
    again = import_project(other, io.BytesIO(data))
    old, new = projects.open(number), other.open(again)
    times = dict(created=0.0, changed=0.0)
    assert new.having(**times) == old.having(**times)
    for key in [*{job.key for job in jobs_of() if job.key}, TAKE]:
        expected = projects.sounds(number).read(key)
        np.testing.assert_array_equal(other.sounds(again).read(key), expected)
    assert [each.id for each in other.listed()] == [again]


@pytest.mark.parametrize(
    "name",
    ["../../evil.flac", "sounds/../../evil.flac", "sounds/..flac", "/etc/x.flac", "sounds/A b.flac",
     "sounds/" + "a" * 99 + ".flac", "sounds\\evil.flac", "rendering", "sounds/x.flac/y"],
)  # fmt: skip
def test_no_name_leads_out_of_the_project(projects: Projects, tmp_path: Path, name: str) -> None:
    data = file_of(projects, made(projects), tmp_path)
    with ZipFile(io.BytesIO(data)) as archive:
        files = {each: archive.read(each) for each in archive.namelist()}
    folder = tmp_path / "deep" / "scripts"
    other = Projects(folder)
    again = import_project(other, io.BytesIO(zipped({**files, name: flac()})))
    inside = {each.name for each in (folder / again / "sounds").iterdir()}
    assert inside == {Path(each).name for each in files if each.startswith("sounds/")}
    assert [each.name for each in tmp_path.rglob("*evil*")] == []


def hostile(projects: Projects, tmp_path: Path) -> list[tuple[str, bytes]]:
    number = made(projects)
    good = projects.open(number).model_dump_json()
    twice = good.replace('"id":1,', '"id":0,')
    return [
        ("no zip", b"nothing"),
        ("no project", zipped({"a.txt": "x"})),
        ("other JSON", zipped({"project.json": "[" * 100_000})),
        ("unknown fields", zipped({"project.json": good.replace("{", '{"x":1,', 1)})),
        ("two lines of one id", zipped({"project.json": twice})),
        ("no audio", zipped({"project.json": good, "sounds/abc.flac": b"text"})),
        ("another rate", zipped({"project.json": good, "sounds/abc.flac": flac(rate=48_000)})),
        ("stereo", zipped({"project.json": good, "sounds/abc.flac": flac(channels=2)})),
        ("endless", zipped({"project.json": good, "sounds/abc.flac": flac(30_000_000)})),
    ]


def test_hostile_files_are_refused_and_leave_nothing(projects: Projects, tmp_path: Path) -> None:
    other = Projects(tmp_path / "other")
    for name, data in hostile(projects, tmp_path):
        with pytest.raises(InvalidText):
            import_project(other, io.BytesIO(data))
        assert [*(tmp_path / "other").iterdir()] == [], name


def written(projects: Projects, **changes: object) -> bytes:
    """A good project's file with some keys changed, as `script__issued=1`."""
    read = json.loads(projects.open(made(projects)).model_dump_json())
    for path, value in changes.items():
        *way, last = path.split("__")
        place = read
        for key in way:
            place = place[int(key) if key.isdigit() else key]
        place[int(last) if last.isdigit() else last] = value
    return zipped({"project.json": json.dumps(read)})


SPELLING = {"written": "a", "spoken": "b"}
WRONG: list[dict[str, object]] = [
    *({"title": f"a{char}b"} for char in "\u202e\u2066\0\n\r\x1b\u2028"),
    *({"script__lines__0__id": number} for number in (2**70, -1, 2**31 + 1, 1e400, "0x1")),
    *({"script__lines__0__chapter": number} for number in (2**70, -1)),
    *({"script__lines__0__kept": key} for key in ("../../../etc/passwd", "a/b", "A", "a" * 65)),
    {"script__lines__0__text": "a\0b"},
    {"script__lines__0__speaker": "a\nb"},
    {"script__issued": 2**70},
    {"takes": {"1": [{"key": "../../../etc/passwd"}]}},
    {"takes": {"1": [{"key": "a\n"}]}},
    {"takes": {str(2**70): [{"key": "a"}]}},
    {"takes": {"1": [{"key": "a"}] * 9}},
    {"takes": {str(line): [{"key": "a"}] * 8 for line in range(2_501)}},
    {"delivery__spellings": [SPELLING] * 1_001},
    {"delivery__language": "x" * 401},
    {"casting__voices": {"x" * 401: "ryan"}},
    {"casting__digests": {str(number): "a" for number in range(20_001)}},
    {"script__chapters": [""] * 2_001},
    {"unknown": [{}] * 100_000},
    {"unknown": [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]},
]


@pytest.mark.parametrize("changes", WRONG, ids=lambda each: next(iter(each)))
def test_what_no_project_has_is_refused(projects: Projects, changes: dict[str, object]) -> None:
    assert import_project(projects, io.BytesIO(written(projects)))
    with pytest.raises(InvalidText):
        import_project(projects, io.BytesIO(written(projects, **changes)))


@pytest.mark.parametrize("number", ["9" * 1_000_000, "-" + "9" * 5_000, "1e999", "NaN", "Infinity"])
def test_odd_numbers_are_refused(projects: Projects, number: str) -> None:
    text = (
        projects.open(made(projects))
        .model_dump_json()
        .replace('"issued":', f'"issued":{number},"x":')
    )
    with pytest.raises(InvalidText):
        import_project(projects, io.BytesIO(zipped({"project.json": text})))


@pytest.mark.parametrize("unit", ["{},", "[", "1", '"', "\\", '\\"', '"a",', '"a":{', " "])
def test_json_is_counted_in_time_linear_in_its_length(unit: str) -> None:
    for text in (unit * (4_000_000 // len(unit)), '["' + unit * (4_000_000 // len(unit))):
        started = time.process_time()
        with suppress(InvalidText):
            check_json(text.encode(), reader.MOST_VALUES)
        assert time.process_time() - started < 4.0


def test_audio_is_bounded(
    projects: Projects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = file_of(projects, made(projects), tmp_path)
    for name, most in (("MOST_SOUND", 10), ("MOST_AUDIO", -(32 << 20)), ("MOST_PARTS", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(reader, name, most)
            with pytest.raises(InvalidText, match=r"too large|too many"):
                import_project(projects, io.BytesIO(data))
    assert len(projects.listed()) == 1


def test_an_import_that_was_cut_is_swept(tmp_path: Path) -> None:
    unfinished = tmp_path / "scripts" / ".importing-20260101-000000-00"
    (unfinished / "sounds").mkdir(parents=True)
    os.utime(unfinished, (1e9, 1e9))
    assert Projects(tmp_path / "scripts").listed() == []
    assert not unfinished.exists()
