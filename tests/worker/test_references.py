"""The shelf: what is kept, and that it stays within its bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.worker.references import Shelf


@given(keys=st.lists(st.integers(0, 6), max_size=40), room=st.integers(1, 5))
def test_a_shelf_keeps_the_latest_within_its_bounds(keys: list[int], room: int) -> None:
    """Against a plain model: the last `room` different keys are there, the others are made."""
    shelf: Shelf[int, str] = Shelf(10 * room)
    recent: list[int] = []
    for key in keys:
        made: list[int] = []
        value = shelf.get(
            key, lambda key=key, made=made: made.append(key) or f"v{key}", lambda _: 10
        )
        assert value == f"v{key}"
        assert made == ([] if key in recent else [key])
        recent = [*(other for other in recent if other != key), key][-room:]
        assert shelf.bytes == 10 * len(recent)


def test_what_is_larger_than_the_shelf_is_still_given() -> None:
    shelf: Shelf[str, str] = Shelf(5)
    assert shelf.get("a", lambda: "big", lambda _: 50) == "big"
    assert shelf.get("b", lambda: "small", lambda _: 1) == "small"
    assert shelf.bytes == 1
