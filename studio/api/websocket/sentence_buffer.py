"""Splits text that arrives in pieces into sentences.

A sentence ends at . ! ? … or their full-width forms, followed by closing quotes and brackets and a
space; the end of a line always ends one.
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
        """Buffered characters."""
        return len(self._text)

    def feed(self, text: str) -> list[str]:
        """Add text; returns the sentences that are complete."""
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
        """The rest as a last sentence."""
        rest, self._text = self._text.strip(), ""
        return [rest] if rest else []
