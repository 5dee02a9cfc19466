"""A script or a project as its process sends it: rows of JSON.

    the whole without lines and takes
    some of its lines, or takes of some        as often as it takes

What is validated at once holds Python's lock of the server that reads it; a long project as a whole
would for half a second. Bounds the rows' counts, and knows nothing else of what they hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from engine import InvalidText
from studio.imports.archives import DAMAGED
from studio.scripts.books import Imported
from studio.scripts.line_takes import LineTakes
from studio.scripts.model import Line, Record, Script
from studio.scripts.projects import Project, ProjectPart, joined, parts_of

_MOST_ROWS = 1_000
_Head = TypeVar("_Head", Imported, Project, Script)


def packed_script(script: Script) -> bytes:
    return _packed(script.model_copy(update={"lines": ()}), script, {})


def packed_project(project: Project) -> bytes:
    script = project.script.model_copy(update={"lines": ()})
    head = project.model_copy(update={"script": script, "takes": {}})
    return _packed(head, project.script, project.takes)


def packed_imported(found: Imported) -> bytes:
    script = found.script.model_copy(update={"lines": ()})
    return _packed(found.model_copy(update={"script": script}), found.script, {})


def unpacked_imported(data: bytes) -> Imported:
    """Raises InvalidText."""
    found, (lines, _) = _unpacked(Imported, data)
    script = found.script.model_copy(update={"lines": lines})
    return found.model_copy(update={"script": script})


def unpacked_script(data: bytes) -> Script:
    """Raises InvalidText."""
    script, (lines, _) = _unpacked(Script, data)
    return script.model_copy(update={"lines": lines})


def unpacked_project(data: bytes) -> Project:
    """Raises InvalidText."""
    project, (lines, takes) = _unpacked(Project, data)
    script = project.script.model_copy(update={"lines": lines})
    return project.model_copy(update={"script": script, "takes": takes})


def _packed(head: Record, script: Script, takes: LineTakes) -> bytes:
    rows: Iterable[Record] = (head, *parts_of(script, takes))
    return b"\n".join(row.model_dump_json().encode() for row in rows)


def _unpacked(kind: type[_Head], data: bytes) -> tuple[_Head, tuple[tuple[Line, ...], LineTakes]]:
    head, *rows = data.split(b"\n", _MOST_ROWS)
    try:
        return kind.model_validate_json(head), joined(map(ProjectPart.model_validate_json, rows))
    except ValueError as error:  # ValidationError is one
        raise InvalidText(DAMAGED) from error
