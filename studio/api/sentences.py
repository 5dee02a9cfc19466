"""Sentences out of text that comes in pieces: what is whole is given, the rest is kept.

A sentence ends at . ! ? … or their full-width forms, with what closes quotes and brackets
after them and a space; a line's end always ends one. Knows no audio.
"""

from __future__ import annotations

import re

_LATIN = r"[.!?…]+[\"'”’»)\]]*\s+"
_WIDE = r"[。！？]+[”’」』）]*"
_END = re.compile(rf"(?:{_LATIN}|{_WIDE}|\s*\n\s*)")
_SHORT = re.compile(r"(?:^|\s)(?:\w|Mr|Mrs|Ms|Dr|Prof|St|vs|etc|No|e\.g|i\.e)\.\s+$", re.I)


class Sentences:
    def __init__(self) -> None:
        self._text = ""

    @property
    def length(self) -> int:
        """Characters that are kept."""
        return len(self._text)

    def feed(self, text: str) -> list[str]:
        """Sentences that are whole now."""
        self._text += text
        ready, start = [], 0
        for match in _END.finditer(self._text):
            piece = self._text[start : match.end()]
            if _SHORT.search(piece) or not any(map(str.isalnum, piece)):
                continue
            ready.append(piece.strip())
            start = match.end()
        self._text = self._text[start:]
        return ready

    def finish(self) -> list[str]:
        """What is left, as a last sentence."""
        rest, self._text = self._text.strip(), ""
        return [rest] if rest else []
