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
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))
_MAYBE = ".!?…。！？\"'”’»)]」』）" + _SPACES  # of these the next text may make an end


class Sentences:
    def __init__(self) -> None:
        self._text = ""
        self._seen = 0  # up to here there is no other end
        self._speakable = False  # whether there is a letter or digit up to there

    @property
    def length(self) -> int:
        """Buffered characters."""
        return len(self._text)

    def feed(self, text: str) -> list[str]:
        """Add text; returns the sentences that are complete. What was looked through stays so."""
        if not text:
            return []
        begun = len(self._text)
        self._text += text
        ready, start = [], 0
        for match in _END.finditer(self._text, self._resume(begun)):
            between = self._text[self._seen : match.end()]
            self._speakable = self._speakable or any(map(str.isalnum, between))
            self._seen = match.end()
            stop = match.start() + len(match.group().rstrip())
            short = _SHORT.search(self._text[max(start, stop - _LONGEST_SHORT) : stop])
            if not self._speakable or short:
                continue
            ready.append(self._text[start:stop].strip())
            start, self._speakable = self._seen, False
        self._text, self._seen = self._text[start:], self._seen - start
        return ready

    def _resume(self, begun: int) -> int:
        """Where to look on from, `begun` characters having been looked through before."""
        return self._seen + len(self._text[self._seen : begun].rstrip(_MAYBE))

    def finish(self) -> list[str]:
        """The rest as a last sentence."""
        rest, self._text = self._text.strip(), ""
        return [rest] if rest else []
