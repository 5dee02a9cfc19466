"""Sentences out of text that comes in pieces: what is whole is given, the rest is kept.

A sentence ends at . ! ? … or their full-width forms, with what closes quotes and brackets
after them and a space; a line's end always ends one. Knows no audio.
"""

from __future__ import annotations

import re

_LATIN = r"(?<![.!?…])[.!?…]+[\"'”’»)\]]*\s+"
_WIDE = r"[。！？]+[”’」』）]*"
_END = re.compile(rf"(?:{_LATIN}|{_WIDE}|(?<!\s)\s*\n\s*)")
_SHORT = re.compile(r"(?:^|\s)(?:\w|Mr|Mrs|Ms|Dr|Prof|St|vs|etc|No|e\.g|i\.e)\.$", re.I)
_LONGEST_SHORT = len(" Prof.")


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
        ready, start, seen, speakable = [], 0, 0, False
        for match in _END.finditer(self._text):
            speakable = speakable or any(map(str.isalnum, self._text[seen : match.end()]))
            seen = match.end()
            piece = self._text[start:seen].strip()
            if not speakable or _SHORT.search(piece[-_LONGEST_SHORT:]):
                continue
            ready.append(piece)
            start, speakable = seen, False
        self._text = self._text[start:]
        return ready

    def finish(self) -> list[str]:
        """What is left, as a last sentence."""
        rest, self._text = self._text.strip(), ""
        return [rest] if rest else []
