"""Rows of tables as paragraphs: cells with commas between them, read row by row.

A row whose cells hold paragraphs of their own, as tables for layout have, is read as those. Knows
no format.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from studio.imports.books.blocks import Block

DEEPEST = 6  # rows within rows
_ROW_END = re.compile(r"[.!?…:;,。！？：；]['\"”’」』）)]*$")


@dataclass
class _Row:
    cells: list[list[Block]] = field(default_factory=lambda: [[]])
    speaks: bool = False  # the first cell names who says the others


class TableRows:
    """`add` takes what is read: blocks outside of tables at once, rows when they end."""

    def __init__(self, add: Callable[[Block], None]) -> None:
        self._add = add
        self._rows: list[_Row] = []

    def __bool__(self) -> bool:
        return bool(self._rows)

    def open(self) -> None:
        if len(self._rows) < DEEPEST:
            self._rows.append(_Row())

    def cell(self, names_speaker: bool = False) -> None:
        if self._rows:
            row = self._rows[-1]
            if row.cells[-1]:
                row.cells.append([])
            row.speaks |= names_speaker and not row.cells[0]

    def add(self, block: Block) -> None:
        if self._rows:
            self._rows[-1].cells[-1].append(block)
        else:
            self._add(block)

    def close(self) -> None:
        """End the innermost row."""
        row = self._rows.pop()
        cells = [cell for cell in row.cells if cell]
        blocks = [block for cell in cells for block in cell]
        plain = all(len(cell) == 1 for cell in cells)
        plain &= not any(block.heading or block.entry for block in blocks)
        if row.speaks and len(cells) > 1:
            spoken = " ".join(block.text for block in blocks[len(cells[0]) :])
            blocks = [replace(blocks[0], text=f"{blocks[0].text}: {spoken}")]
        elif plain and len(cells) > 1:
            text = ", ".join(" ".join(block.text.split()) for block in blocks)
            blocks = [replace(blocks[0], text=text if _ROW_END.search(text) else f"{text}.")]
        for block in blocks:
            self.add(block)
