"""Takes are whole or not there, come back from the trash, and keep their stars."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Pcm, RequestError
from studio.takes.take_store import DAY, Keeping, Take, Takes
from tests.support.crash import every_death


def tone(samples: int = 2400, seed: int = 0) -> Pcm:
    return np.random.default_rng(seed).integers(-9000, 9000, samples).astype(np.int16)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def test_a_take_is_found_again_by_another_opening(tmp_path: Path) -> None:
    pcm = tone()
    take = Takes(tmp_path).add(pcm, "Hello there", "ryan", 7, {"temperature": 0.8})
    again = Takes(tmp_path)
    assert again.get(take.id) == take
    assert take.seconds == 0.1
    np.testing.assert_array_equal(again.pcm(take.id), pcm)
    for suffix in (".wav", ".mp3", ".ogg", ".flac"):
        assert again.export(take.id, tmp_path / f"out{suffix}").stat().st_size > 100


def test_search_star_delete_and_undo(tmp_path: Path) -> None:
    takes = Takes(tmp_path, Clock())
    first, second, third = (
        takes.add(tone(), text, voice, 1)
        for text, voice in (("Good morning", "Ryan"), ("good night", "Vivian"), ("Tea?", "Ryan"))
    )
    takes.star(first.id)
    assert [take.id for take in takes.search()] == [third.id, second.id, first.id]
    assert [take.id for take in takes.search("GOOD")] == [second.id, first.id]
    assert [take.id for take in takes.search("good vivian")] == [second.id]
    assert [take.id for take in takes.search(voice="ryan", limit=1)] == [third.id]
    assert [take.id for take in takes.search(starred=True)] == [first.id]
    takes.delete(second.id)
    with pytest.raises(RequestError, match="Restore it"):
        takes.get(second.id)
    for opened in (takes, Takes(tmp_path)):
        assert [take.id for take in opened.search(deleted=True)] == [second.id]
        assert second.id not in [take.id for take in opened.search()]
    assert takes.restore(second.id) == second
    assert Takes(tmp_path).get(second.id) == second


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    stars=st.lists(st.booleans(), max_size=8),
    trashed=st.lists(st.booleans(), min_size=8, max_size=8),
    most=st.one_of(st.none(), st.integers(0, 6)),
    days=st.one_of(st.none(), st.floats(0, 10)),
)
def test_limits_never_take_a_star_and_never_keep_too_many(
    tmp_path_factory: pytest.TempPathFactory,
    stars: list[bool],
    trashed: list[bool],
    most: int | None,
    days: float | None,
) -> None:
    clock = Clock()
    folder = tmp_path_factory.mktemp("takes")
    takes = Takes(folder, clock)
    for star, trash in zip(stars, trashed, strict=False):
        clock.now += DAY
        take = takes.add(tone(24), "x", "ryan", 1)
        takes.star(take.id, star)
        if trash:
            takes.delete(take.id)
    before = {take.id: take for take in [*takes.search(), *takes.search(deleted=True)]}
    takes.tidy(Keeping(most=most, days=days, trash_days=3))
    after = {take.id: take for take in [*takes.search(), *takes.search(deleted=True)]}
    assert all(number in after for number, take in before.items() if take.starred)
    plain = [take for take in after.values() if not take.starred and take.deleted is None]
    assert most is None or len(plain) <= most
    assert days is None or all(clock.now - take.created <= days * DAY + 1 for take in plain)
    fresh = [t for t in before.values() if t.deleted and clock.now - t.deleted < 3 * DAY - 1]
    assert all(take.id in after for take in fresh)
    assert {take.id for take in Takes(folder).search()} == {take.id for take in takes.search()}
    assert len(list(folder.glob("*.flac"))) == len(after)


@pytest.mark.parametrize(
    "evil", ["../x", "..", "", "a/b", "A" * 200, ".hidden", "a\x00b", "x.json"]
)
def test_no_id_leads_out_of_the_folder(tmp_path: Path, evil: str) -> None:
    (tmp_path / "x.json").write_text("{}")
    takes = Takes(tmp_path / "takes")
    for call in (takes.get, takes.sound, takes.pcm, takes.star, takes.delete, takes.restore):
        with pytest.raises(RequestError):
            call(evil)


def test_damaged_cards_and_links_are_reported_and_left_alone(tmp_path: Path) -> None:
    takes = Takes(tmp_path)
    good, other = takes.add(tone(), "x", "ryan", 1), takes.add(tone(), "y", "ryan", 1)
    (tmp_path / f"{other.id}.flac").unlink()
    (tmp_path / "broken.json").write_text('{"id": "broken"')
    (tmp_path / "stranger.json").write_text(json.dumps({**good.model_dump(), "extra": 1}))
    (tmp_path / "copied.json").write_text(good.model_dump_json())
    (tmp_path / "link.json").symlink_to(tmp_path / f"{good.id}.json")
    again = Takes(tmp_path)
    assert [take.id for take in again.search()] == [good.id]
    names = {path.name for path in again.damaged()}
    assert names == {"broken.json", "stranger.json", "copied.json", f"{other.id}.json"}
    again.tidy(Keeping(most=0))
    assert (tmp_path / "broken.json").exists()


def test_a_crash_at_any_moment_leaves_old_or_new(tmp_path: Path) -> None:
    pcm = tone()

    def work(operations: int) -> None:
        folder = tmp_path / str(operations)
        takes = Takes(folder)
        takes.add(pcm, "first", "ryan", 1)
        second = takes.add(pcm, "second", "ryan", 2)
        takes.star(second.id)
        takes.delete(second.id)

    assert every_death(work) > 12
    for folder in tmp_path.iterdir():
        takes = Takes(folder)
        assert not takes.damaged()
        kept = [*takes.search(), *takes.search(deleted=True)]
        for take in kept:
            np.testing.assert_array_equal(takes.pcm(take.id), pcm)
            assert take.deleted is None or take.starred
        assert {take.text for take in kept} in (set(), {"first"}, {"first", "second"})


def test_unfinished_files_are_swept_when_nobody_holds_them(tmp_path: Path) -> None:
    old, young = tmp_path / ".a.flac.1.part", tmp_path / ".b.flac.2.part"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 2 * DAY,) * 2)
    Takes(tmp_path)
    assert not old.exists()
    assert young.exists()


def test_a_card_is_strict() -> None:
    card = dict(id="a", text="", voice="", seed=1, seconds=1.0, created=0.0)
    assert Take.model_validate(card).starred is False
    with pytest.raises(ValueError, match="extra"):
        Take.model_validate({**card, "more": 1})


@pytest.mark.parametrize("created", [1e18, -1.0, "yesterday"])
def test_a_card_from_another_time_hides_no_other(tmp_path: Path, created: object) -> None:
    takes = Takes(tmp_path)
    good = takes.add(np.ones(2400, np.int16), "good", "ryan", 1)
    bad = takes.add(np.ones(2400, np.int16), "bad", "ryan", 2)
    path = tmp_path / f"{bad.id}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "created": created}))
    again = Takes(tmp_path)
    assert [take.id for take in again.search()] == [good.id]
    assert again.damaged() == [path]
    assert path.exists()


def test_a_folder_that_is_removed_while_the_app_runs(tmp_path: Path) -> None:
    """New takes are kept; those that are gone say so, and leave the list when they are deleted."""
    folder = tmp_path / "takes"
    takes = Takes(folder)
    lost = takes.add(tone(), "Hello there", "ryan", 7)
    shutil.rmtree(folder)
    kept = takes.add(tone(), "Hello again", "ryan", 7)
    np.testing.assert_array_equal(Takes(folder).pcm(kept.id), tone())
    for ask in (takes.star, takes.sound, takes.restore):
        with pytest.raises(RequestError, match="gone from the disk"):
            ask(lost.id)
    takes.delete(lost.id)
    assert [take.id for take in takes.search()] == [kept.id]
    assert (Takes(folder).damaged(), takes.search(deleted=True)) == ([], [])
