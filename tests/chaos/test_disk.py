"""A full disk or an unwritable folder: nothing is half-saved, and the error says why."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient

from engine import PARTIAL_SUFFIX, SOUND_FORMATS, Clone, Library, NotSaved, Pcm, save_sound
from engine.testing import FakeEngine
from studio.api import create_api
from studio.scripts import Casting, Project, Projects, script_of_text
from studio.takes.take_store import Takes
from tests.chaos.disks import full_after, read_only

VOICE = Clone(np.ones(64, np.float32), "what was said", np.ones((40, 16), np.int64))


def noise(seconds: float = 1.0) -> Pcm:
    """Noise packs badly: the last bytes are written when the file is closed."""
    return np.random.default_rng(0).integers(-9000, 9000, int(24_000 * seconds)).astype(np.int16)


def project(lines: int = 200) -> Project:
    return Project(script=script_of_text("A line.\n\n" * lines), casting=Casting(default="ryan"))


def unfinished(folder: Path) -> list[Path]:
    return list(folder.rglob(f".*{PARTIAL_SUFFIX}"))


@pytest.mark.parametrize("kind", SOUND_FORMATS)
def test_a_sound_is_whole_or_refused_wherever_the_disk_ends(tmp_path: Path, kind: str) -> None:
    """libsndfile forgets what fails while it closes: 8 of 24 cut files were once kept as whole."""
    whole = save_sound(tmp_path / f"whole.{kind}", noise())
    size = whole.stat().st_size
    chosen = random.Random(7)
    limits = [0, 1, size // 2, size - 1000, size - 40, size - 1, size]
    for limit in limits + [chosen.randrange(size) for _ in range(20)]:
        target = tmp_path / f"{limit}.{kind}"
        with full_after(limit):
            if limit < size:
                with pytest.raises(NotSaved, match=r"disk is full\. Make room"):
                    save_sound(target, noise())
            else:
                save_sound(target, noise())
        assert target.exists() == (limit >= size)
        assert not unfinished(tmp_path)
    assert soundfile.info(whole).frames >= 24_000


def keepers(folder: Path) -> dict[str, tuple[Callable[[], object], Callable[[], int]]]:
    """What can be saved, and how many of it there are."""
    library, takes, projects = Library(folder / "v"), Takes(folder / "t"), Projects(folder / "s")
    number = projects.create(project(1))
    return {
        "voice": (
            lambda: library.save(f"Ada {len(library.list()) + 1}", VOICE),
            lambda: len(library.list()),
        ),
        "take": (lambda: takes.add(noise(), "x", "ryan", 1), lambda: len(takes.search())),
        "script": (lambda: projects.create(project()), lambda: len(projects.listed())),
        "edit": (
            lambda: projects.save(number, project(150)),
            lambda: len(projects.open(number).script.lines) - 1,
        ),
        "line": (
            lambda: projects.sounds(number).keep("line", noise()),
            lambda: int("line" in projects.sounds(number)),
        ),
    }


@pytest.mark.parametrize("what", ["voice", "take", "script", "edit", "line"])
def test_nothing_is_shown_that_the_disk_had_no_room_for(tmp_path: Path, what: str) -> None:
    save, count = keepers(tmp_path)[what]
    before, refused = count(), 0
    for limit in (0, 10, 100, 300, 1_000, 3_000, 10_000):
        with full_after(limit):
            try:
                save()
            except NotSaved:
                refused += 1
                assert count() == before
        assert not unfinished(tmp_path)
        before = count()
    assert refused > 1
    save()
    assert count() > 0
    again = keepers(tmp_path)[what][1] if what in ("voice", "take") else count
    assert again() == count()


def test_a_read_only_folder_is_shown_and_every_change_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    keepers(data)
    library, takes = Library(data / "v"), Takes(data / "t")
    voice, take = library.save("Ada", VOICE), takes.add(noise(), "x", "ryan", 1)
    with read_only(data):
        assert [each.name for each in Library(data / "v").list()] == ["Ada"]
        opened, projects = Takes(data / "t"), Projects(data / "s")
        np.testing.assert_array_equal(opened.pcm(take.id), noise())
        number = projects.listed()[0].id
        for change in (
            lambda: library.save("Bea", VOICE),
            lambda: library.rename(voice.id, "Bea"),
            lambda: library.delete(voice.id),
            lambda: opened.add(noise(), "y", "ryan", 2),
            lambda: opened.star(take.id),
            lambda: projects.create(project()),
            lambda: projects.save(number, project()),
            lambda: Takes(data / "elsewhere"),
        ):
            with pytest.raises(NotSaved, match=r"may not be written\. Allow it"):
                change()
    assert [each.name for each in library.list()] == ["Ada"]
    assert [each.starred for each in takes.search()] == [False]


def test_the_api_says_that_the_disk_is_full_and_goes_on_speaking(tmp_path: Path) -> None:
    library = Library(tmp_path / "voices")
    body = {"name": "Mix", "voices": "ryan:1,vivian:1"}
    with FakeEngine() as engine, TestClient(create_api(engine, library)) as client:
        with full_after(10):
            answer = client.post("/v1/audio/voices/blend", json=body)
            spoken = client.post(
                "/v1/audio/speech", json={"input": "Hi.", "response_format": "wav"}
            )
        assert (answer.status_code, answer.json()["error"]["code"]) == (507, "not_saved")
        assert "disk is full" in answer.json()["error"]["message"]
        assert spoken.status_code == 200
        assert client.post("/v1/audio/voices/blend", json=body).status_code == 200
    assert not unfinished(tmp_path)
