"""Reads tables as a script: a row is a turn; columns are found by name.

Cells are plain text: formulas are not computed, addresses are not fetched.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence

from engine import InvalidText
from studio.scripts.model import MAX_LINES, MAX_PAUSE
from studio.scripts.text.passages import Passage

NAMES = {
    "text": ("text", "line", "dialogue", "dialog", "content", "sentence", "words", "台词", "文本"),
    "speaker": ("speaker", "character", "name", "role", "voice", "who", "角色", "说话人"),
    "direction": ("direction", "instruction", "instruct", "emotion", "style"),
    "chapter": ("chapter", "scene", "section", "act", "章节"),
    "pause": ("pause", "pause after", "silence", "gap"),
}
_SAMPLE = 8_192  # characters from which the delimiter is detected
_CELL = 100_000  # characters
_DELIMITED = re.compile(r"\"?sep=(.)\"?[\r\n]+")  # Excel's first line


def read_table(text: str) -> Iterator[Passage]:
    """Passages of a .csv file. Raises InvalidText if no column has text."""
    rows = _rows(text)
    columns = _columns(next(rows, []))
    chapter = ""
    for row in rows:
        cells = {key: row[place].strip() for key, place in columns.items() if place < len(row)}
        opened = cells.get("chapter", "")
        if opened and opened != chapter:
            chapter = opened
            yield Passage(opened, heading=True, silent=True)
        yield Passage(
            cells.get("text", ""),
            cells.get("speaker", ""),
            cells.get("direction", ""),
            pause=_seconds(cells.get("pause", "")),
        )


def _rows(text: str) -> Iterator[list[str]]:
    declared = _DELIMITED.match(text)
    text = text[declared.end() :] if declared else text
    head = "".join(text[:_SAMPLE].splitlines()[:1])
    delimiter = declared[1] if declared else max(",;\t|", key=head.count)
    csv.field_size_limit(_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for number, row in enumerate(reader):
            if number > MAX_LINES:
                raise InvalidText(
                    "The table has more than {most:,} rows. Split it into parts.",
                    most=MAX_LINES,
                )
            if any(cell.strip() for cell in row):
                yield row
    except csv.Error as error:
        raise InvalidText(
            "Row {row} of the table cannot be read: {error}.",
            row=reader.line_num,
            error=error,
        ) from error


def _columns(head: Sequence[str]) -> dict[str, int]:
    places = {cell.strip().lower(): place for place, cell in reversed(list(enumerate(head)))}
    found = {
        key: next((places[name] for name in names if name in places), None)
        for key, names in NAMES.items()
    }
    if found["text"] is None:
        raise InvalidText(
            "The table needs a column named text (and may have speaker, chapter, direction and "
            "pause). Its first row has: {there}.",
            there=", ".join(cell[:30] for cell in head[:10]) or "nothing",
        )
    return {key: place for key, place in found.items() if place is not None}


def _seconds(cell: str) -> float | None:
    try:
        seconds = float(cell.removesuffix("s").strip().replace(",", "."))
    except ValueError:
        return None
    return min(seconds, MAX_PAUSE) if seconds >= 0 else None
