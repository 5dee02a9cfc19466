"""Takes of lines: bounded, none twice, and only of lines that changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from studio.scripts import line_takes
from studio.scripts.line_takes import MOST_TAKES, LineTake, changed_lines, with_takes
from studio.scripts.text.typed import script_of_text

ADDED = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=60)


@given(ADDED)
def test_the_latest_takes_of_a_line_stay_in_order_and_none_is_there_twice(
    added: list[tuple[int, int]],
) -> None:
    takes: line_takes.LineTakes = {}
    for line, key in added:
        takes = with_takes(takes, [(line, LineTake(key=f"k{key}"))])
        of_line = [take.key for take in takes[line]]
        assert f"k{key}" in of_line
        assert len(of_line) == len(set(of_line)) <= MOST_TAKES
    for line, of_line in takes.items():
        keys = [f"k{key}" for number, key in added if number == line]
        assert {take.key for take in of_line} <= set(keys)


def test_a_project_has_a_bound_too(monkeypatch) -> None:
    monkeypatch.setattr(line_takes, "MOST_IN_PROJECT", 20)
    takes: line_takes.LineTakes = {}
    for number in range(30):
        takes = with_takes(takes, [(number, LineTake(key=f"k{number}"))])
    assert [*takes] == list(range(10, 30))


def test_only_what_sounds_different_has_changed() -> None:
    script = script_of_text("Anna: One line of it.\nBen: Another line of it.\nAnna: And a third.")
    first, second, third = script.lines
    same = script.replaced(0, 3, [third.having(paragraph=9), first, second.having(pause=2.0)])
    assert changed_lines(script, same) == []
    other = script.replaced(0, 3, [first.having(text="Two."), second.having(seed=1)])
    assert changed_lines(script, other) == [0, 1]
