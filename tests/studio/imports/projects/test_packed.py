"""What a process sends back of a long script or project: validated in parts, and the same."""

from __future__ import annotations

import json

import pytest

from engine import InvalidText
from studio.imports.projects.packed import (
    packed_project,
    packed_script,
    unpacked_project,
    unpacked_script,
)
from studio.scripts import Casting, Line, Project, Script
from studio.scripts.line_takes import LineTake
from studio.scripts.projects import PART, ProjectPart

LINES, WITH_TAKES = 20_000, 2_500


@pytest.fixture(scope="module")
def longest() -> Project:
    lines = tuple(Line(id=number, text="木\n", chapter=number % 7) for number in range(LINES))
    takes = tuple(LineTake(key=str(take), text='"') for take in range(8))
    return Project(
        script=Script(lines=lines, chapters=("One",) * 7, issued=LINES),
        casting=Casting(default="ryan"),
        takes=dict.fromkeys(range(WITH_TAKES), takes),
    )


def test_the_longest_project_comes_in_parts_and_is_the_same(longest: Project) -> None:
    packed = packed_project(longest)
    assert packed.count(b"\n") == -(-LINES // PART) + -(-WITH_TAKES // PART)
    assert unpacked_project(packed) == longest
    assert unpacked_script(packed_script(longest.script)) == longest.script


def test_what_is_no_part_is_refused(longest: Project) -> None:
    head, line, *_ = packed_project(longest).split(b"\n")
    more = json.dumps({"lines": [{"id": 0, "text": "x"}] * (PART + 1)}).encode()
    for rows in ([head, b""], [head, b"{}]"], [head, more], [head, head], [head] + [line] * 41):
        with pytest.raises(InvalidText):
            unpacked_project(b"\n".join(rows))
    with pytest.raises(InvalidText):
        unpacked_project(b"\n".join([head] + [b"{}"] * 1_100))


def test_a_part_is_short() -> None:
    with pytest.raises(ValueError, match="at most"):
        ProjectPart(lines=tuple(Line(id=number, text="x") for number in range(PART + 1)))
