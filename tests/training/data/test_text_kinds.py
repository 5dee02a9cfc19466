"""What is written otherwise is said as before, and fragments stay fragments."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from training.data.text_kinds import KINDS, as_written, capitals, fragment

TEXT = "Tom opened the door, and the dog ran out into the rain."


@given(st.integers())
def test_kinds_say_what_they_write(seed: int) -> None:
    random = Random(seed)
    for kind in KINDS:
        written = kind(TEXT, random)
        assert written.strip()
        plain = written.lower().replace(" ", "").strip("–—-,.:;")
        assert plain[:1].isalpha()
    assert capitals(TEXT, random).lower() == TEXT.lower()
    assert len(fragment(TEXT, random)) <= len(TEXT) + 2


def test_most_texts_stay_as_they_are() -> None:
    random = Random(1)
    same = sum(as_written(TEXT, random) == TEXT for _ in range(2_000))
    assert 0.7 < same / 2_000 < 0.85
