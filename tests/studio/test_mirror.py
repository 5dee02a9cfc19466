"""Two machines with folders of their own and one store: what is kept on one is there on both."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Design, InvalidSetting, Library
from studio.cluster.mirror import KEPT, Mirror, mirrored
from tests.support.serving import wait_until


class Machine:
    def __init__(self, folder: Path, store: str) -> None:
        self.folder, self.library = folder, Library(folder / "voices")
        self.mirror = Mirror(folder, store)

    def files(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for kept in KEPT
            for path in (self.folder / kept).rglob("*")
            if path.is_file() and path.name != ".lock"
        }


@pytest.fixture
def store() -> Iterator[str]:
    address = f"memory://{uuid4().hex}"
    yield address
    store, root = fsspec.core.url_to_fs(address)
    if store.exists(root):
        store.rm(root, recursive=True)


@pytest.fixture
def pair(store: str, tmp_path: Path) -> tuple[Machine, Machine]:
    return Machine(tmp_path / "one", store), Machine(tmp_path / "two", store)


def settle(pair: tuple[Machine, ...]) -> None:
    for _ in range(2):
        for machine in pair:
            machine.mirror.sync()


def names(machine: Machine) -> list[str]:
    return sorted(voice.name for voice in machine.library.list())


def test_a_voice_is_there_on_both_and_goes_from_both(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    kept = one.library.save("Anna", Design("calm"))
    two.library.save("Ben", Design("loud"))
    before = (two.folder / "voices").stat().st_mtime_ns
    settle(pair)
    assert names(one) == names(two) == ["Anna", "Ben"]
    assert (two.folder / "voices").stat().st_mtime_ns > before
    edited = (one.folder / "voices").stat().st_mtime_ns
    two.library.rename(kept.id, "Annabel")
    settle(pair)
    assert names(one) == ["Annabel", "Ben"]
    assert (one.folder / "voices").stat().st_mtime_ns > edited  # though only a card has changed
    ticket = one.library.delete(kept.id)
    settle(pair)
    assert names(two) == ["Ben"]
    two.library.restore(ticket)
    settle(pair)
    assert names(one) == names(two) == ["Annabel", "Ben"]


def test_a_machine_that_was_away_brings_nothing_back(
    pair: tuple[Machine, Machine], store: str
) -> None:
    one, two = pair
    kept = one.library.save("Anna", Design("calm"))
    settle(pair)
    one.library.delete(kept.id)
    one.mirror.sync()
    again = Machine(two.folder, store)  # with the state that it had
    again.mirror.sync()
    assert names(again) == names(one) == []
    assert Machine(two.folder.with_name("new"), store).mirror.sync() is None


def test_of_two_edits_the_first_in_the_store_stays_and_no_edit_is_lost_to_a_removal(
    pair: tuple[Machine, Machine],
) -> None:
    one, two = pair
    for machine in pair:
        (machine.folder / "scripts").mkdir(parents=True)
    file = "scripts/a.json"
    (one.folder / file).write_text("first")
    settle(pair)
    (one.folder / file).write_text("of one")
    (two.folder / file).write_text("of two!")
    settle(pair)
    assert (two.folder / file).read_text() == "of one"
    (one.folder / file).unlink()
    (two.folder / file).write_text("edited")
    settle(pair)
    assert (one.folder / file).read_text() == "edited"


def test_nothing_is_written_outside_or_half(pair: tuple[Machine, Machine], store: str) -> None:
    one, two = pair
    there, root = fsspec.core.url_to_fs(store)
    for name in ("secret.txt", "voices/.lock", "voices/../../x", ".mirror.json", "other/a.json"):
        there.pipe_file(f"{root}/{name}", b"hostile")
    (one.folder / "takes").mkdir(parents=True)
    (one.folder / "takes" / ".a.flac.123.part").write_bytes(b"half")
    (one.folder / "takes" / "link.flac").symlink_to("/etc/hostname")
    settle(pair)
    assert two.files() == {}
    assert {path.name for path in two.folder.parent.iterdir()} <= {"one", "two"}


@pytest.mark.parametrize("emptied", [True, False], ids=["emptied", "another"])
def test_a_store_that_is_emptied_or_another_one_takes_nothing_away(
    pair: tuple[Machine, Machine], store: str, emptied: bool
) -> None:
    one, two = pair
    one.library.save("Anna", Design("calm"))
    settle(pair)
    there, root = fsspec.core.url_to_fs(store)
    if emptied:
        there.rm(root, recursive=True)
    else:
        store = f"{store}-other"
        Machine(two.folder.with_name("three"), store).mirror.sync()
    again = Machine(one.folder, store), Machine(two.folder, store)
    settle(again)
    assert names(one) == names(two) == ["Anna"]


def test_a_process_that_takes_over_goes_on_where_the_other_ended(
    store: str, tmp_path: Path
) -> None:
    first, second = Machine(tmp_path / "one", store), Machine(tmp_path / "one", store)
    file = first.folder / "takes" / "a.json"
    file.parent.mkdir(parents=True)
    file.write_text("before")
    first.mirror.sync()
    file.write_text("edited")
    second.mirror.load()
    second.mirror.sync()
    assert file.read_text() == "edited"
    there, root = fsspec.core.url_to_fs(store)
    assert there.cat_file(f"{root}/takes/a.json") == b"edited"


class Unwilling:
    """A store that fails for one file, and is told when another is read."""

    def __init__(self, store: Any, wrong: str, read: Callable[[], object] = lambda: None) -> None:
        self._store, self._wrong, self._read = store, wrong, read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def pipe_file(self, name: str, data: bytes) -> None:
        if name.endswith(self._wrong):
            raise PermissionError(name)
        self._store.pipe_file(name, data)

    def cat_file(self, name: str) -> bytes:
        self._read()
        data: bytes = self._store.cat_file(name)
        return data


def test_one_file_that_cannot_be_copied_keeps_no_other_from_it(
    pair: tuple[Machine, Machine],
) -> None:
    one, two = pair
    places = [one.folder / "takes" / f"{name}.flac" for name in "abc"]
    places[0].parent.mkdir(parents=True)
    for place in places:
        place.write_bytes(b"sound")
        place.with_suffix(".json").write_bytes(b"card")
    one.mirror._store = Unwilling(one.mirror._store, "a.flac")
    for _ in range(2):
        with pytest.raises(PermissionError):
            one.mirror.sync()
    two.mirror.sync()
    kept = {f"takes/{name}.{end}" for name in "bc" for end in ("flac", "json")}
    assert two.files().keys() == kept  # and no card without its sound


def test_an_edit_during_a_round_waits_for_the_next(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    file = "scripts/b.json"
    for machine in pair:
        (machine.folder / "scripts").mkdir(parents=True)
    for name in ("scripts/a.json", file):
        (one.folder / name).write_text("old")
    settle(pair)
    (one.folder / "scripts/a.json").write_text("new")
    (one.folder / file).unlink()
    one.mirror.sync()
    edit = partial((two.folder / file).write_text, "edited meanwhile")
    two.mirror._store = Unwilling(two.mirror._store, "none", edit)
    two.mirror.sync()
    assert (two.folder / file).read_text() == "edited meanwhile"
    settle(pair)
    assert (one.folder / file).read_text() == "edited meanwhile"


EDITS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from("abc"), st.none() | st.binary(max_size=4)),
    max_size=12,
)


@settings(max_examples=30, deadline=None)
@given(EDITS)
def test_both_end_with_the_same_files(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, str, bytes | None]]
) -> None:
    """Whatever is written and removed on either; one edit after another: the last one's."""
    folder, store = tmp_path_factory.mktemp("pair"), f"memory://{uuid4().hex}"
    pair = Machine(folder / "one", store), Machine(folder / "two", store)
    expected: dict[str, bytes] = {}
    for number, name, data in edits:
        path = pair[number].folder / "takes" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            path.unlink(missing_ok=True)
            expected.pop(f"takes/{name}.json", None)
        else:
            path.write_bytes(data)
            expected[f"takes/{name}.json"] = data
        settle(pair)
    assert pair[0].files() == pair[1].files() == expected


def test_it_runs_beside_and_one_process_takes_over(store: str, tmp_path: Path) -> None:
    two = Machine(tmp_path / "two", store)
    with mirrored(tmp_path / "one", store), mirrored(tmp_path / "one", store):
        Library(tmp_path / "one" / "voices").save("Anna", Design("calm"))
        wait_until(lambda: two.mirror.sync() or names(two) == ["Anna"], 20)
        alive = [each for each in threading.enumerate() if each.name == "timbre-mirror"]
        assert len(alive) == 2
    assert json.loads((tmp_path / "one" / ".mirror.json").read_text())


def test_an_address_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="nothing://"):
        Mirror(tmp_path, "nothing://bucket")
