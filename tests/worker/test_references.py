"""The shelf: what is kept, and that it stays within its bounds; listeners that warm up."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.worker.references import Shelf
from tests.conftest import golden_folders
from tests.worker.conftest import Workers


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


def test_listening_to_silence_leaves_nothing_behind(workers: Workers) -> None:
    folder = next(folder for folder in golden_folders() if folder.name.startswith("base"))
    worker = workers(folder)
    listener, speaker = worker._listen(next(iter(worker._checkpoints)))
    before = listener._codes.bytes, listener._vectors.bytes
    with torch.inference_mode():
        listener.warm(speaker)
    assert (listener._codes.bytes, listener._vectors.bytes) == before
