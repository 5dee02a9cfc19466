"""The index of a library: nothing is read again that has not changed, and no change is missed."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.errors import LibraryFull, UnknownVoice
from engine.types import Design
from engine.voices import voice_folder, voice_index
from engine.voices.library import Library
from engine.voices.voice_folder import TRASH
from engine.voices.voice_store import CARD

CALM = Design("calm")


def filled(folder: Path, count: int, most: int | None = None) -> Library:
    library = Library(folder, most=most)
    for number in range(count):
        library.save(f"Voice {number}", CALM)
    return library


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """How often files and folders are looked at or opened by a piece of work."""
    counted = 0

    def counting(call: Any) -> Any:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            nonlocal counted
            counted += 1
            return call(*arguments, **named)

        return wrapped

    for module, names in ((os, ("stat", "lstat", "listdir", "scandir", "open")), (io, ("open",))):
        for name in names:
            monkeypatch.setattr(module, name, counting(getattr(module, name)))

    def count(work: Callable[[], object]) -> int:
        nonlocal counted
        counted = 0
        work()
        return counted

    return count


@pytest.mark.parametrize(
    "work",
    [
        lambda library: library.save("One more", CALM),
        lambda library: library.change("voice-1", note="n"),
        lambda library: library.rename("voice-1", "Another"),
        lambda library: library.delete("voice-1"),
        lambda library: library.find("voice 2"),
        lambda library: library.list(),
        lambda library: library.import_file(library.export("voice-1")),
    ],
)
def test_no_work_grows_with_the_library(
    tmp_path: Path, touched: Callable[[Callable[[], object]], int], work: Any
) -> None:
    small, large = filled(tmp_path / "small", 3), filled(tmp_path / "large", 120)
    few, many = touched(lambda: work(small)), touched(lambda: work(large))
    assert few == many < 60


def test_many_voices_of_one_id_cost_no_search(
    tmp_path: Path, touched: Callable[[Callable[[], object]], int]
) -> None:
    """Names in other scripts have no letters for an id."""
    library = Library(tmp_path)
    ids = {library.save(chr(0x4E00 + number), CALM).id for number in range(80)}
    assert len(ids) == 80
    assert touched(lambda: library.save("另一个", CALM)) < 60


def test_every_way_of_a_change_leaves_the_index_as_it_would_be_read(tmp_path: Path) -> None:
    library = filled(tmp_path, 5)
    library.rename("voice-1", "Anna")
    library.change("voice-2", tags=("warm",))
    ticket = library.delete("voice-3")
    library.save("Voice 3", CALM)
    library.restore(ticket)
    library.delete("voice-4")
    fresh = Library(tmp_path)
    assert library.list() == fresh.list()
    for name in ("anna", "voice 1", "voice 2", "voice 3", "voice 3 2", "voice 4", "#voice-3-2"):
        assert library.find(name) == fresh.find(name)


def test_what_is_edited_by_hand_is_seen_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = filled(tmp_path, 2)
    assert library.find("voice 0")
    card = tmp_path / "voice-0" / CARD
    read = json.loads(card.read_text("utf-8")) | {"name": "By hand"}
    card.write_text(json.dumps(read), "utf-8")
    monkeypatch.setattr(voice_index, "FRESH", 0.0)
    assert [voice.name for voice in library.list()] == ["By hand", "Voice 1"]


def test_a_full_library_says_what_to_do(tmp_path: Path) -> None:
    library = filled(tmp_path, 3, most=3)
    file = library.export("voice-0")
    for more in (lambda: library.save("More", CALM), lambda: library.import_file(file)):
        with pytest.raises(LibraryFull, match=r"may have 3 voices\. Delete one first"):
            more()
    ticket = library.delete("voice-0")
    library.save("More", CALM)
    with pytest.raises(LibraryFull):
        library.restore(ticket)


def test_a_trash_has_a_bound_too(tmp_path: Path) -> None:
    """Saving and deleting again and again must not fill a disk."""
    library = Library(tmp_path, most=3)
    tickets = [library.delete(library.save(f"Voice {number}", CALM).id) for number in range(6)]
    assert len(os.listdir(tmp_path / TRASH)) == 3
    assert library.restore(tickets[-1]).name == "Voice 5"
    with pytest.raises(UnknownVoice):
        library.restore(tickets[0])


def test_a_name_is_free_by_memory_that_is_young(
    tmp_path: Path, touched: Callable[[Callable[[], object]], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    library, other = (
        Library(tmp_path / "voices", tmp_path / "built in"),
        Library(tmp_path / "voices"),
    )
    assert library.is_free("alloy") is None  # nobody has looked
    library.look()
    assert touched(lambda: library.is_free("alloy")) == 0
    assert library.is_free("alloy") is True
    own = library.save("Echo Two", CALM).id
    assert [library.is_free(name) for name in (" echo TWO", own, f"#{own}")] == [False] * 3
    other.save("Alloy", CALM)
    monkeypatch.setattr(voice_folder, "SEEN", -1.0)
    assert library.is_free("alloy") is None
    monkeypatch.undo()
    library.look()
    assert library.is_free("alloy") is False
    library.delete(own)
    assert library.is_free(own) is True


def test_who_read_before_a_save_does_not_forget_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, read = filled(tmp_path, 1), voice_index.read_index

    def slowly(*values: Any) -> voice_index.VoiceIndex:
        found = read(*values)
        monkeypatch.undo()
        library.save("Alloy", CALM)  # in another thread, before this one has gone on
        return found

    library._indexes.clear()
    monkeypatch.setattr(voice_folder, "read_index", slowly)
    library.look()
    assert library.is_free("alloy") is False


def test_what_is_forgotten_while_a_name_is_looked_up_is_not_known(tmp_path: Path) -> None:
    class Forgotten(dict[Path, voice_index.VoiceIndex]):
        """Another thread reads a large folder as soon as somebody looks."""

        def __contains__(self, folder: object) -> bool:
            known = super().__contains__(folder)
            self.clear()
            return known

        def get(self, folder: Path, default: Any = None) -> Any:
            known = super().get(folder, default)
            self.clear()
            return known

    library = Library(tmp_path / "voices", tmp_path / "built in")
    library.look()
    library._indexes = Forgotten(library._indexes)
    assert library.is_free("alloy") is None
