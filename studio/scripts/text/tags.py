"""Tags in square brackets: pauses, and others that must not be cut.

`[pause]`, `[pause 1.5s]`, `[pause: 300 ms]`, `[break 2]`, `[silence 1s]` and
`<break time="1.5s"/>` are pauses. Other brackets are ordinary text that is never cut, respelled or
expanded as a number.
"""

from __future__ import annotations

import re

from studio.scripts.model import MAX_PAUSE

DEFAULT_PAUSE = 0.7  # seconds of a bare [pause]

TAG = re.compile(r"\[[^\[\]\n]{1,80}\]|<break\b[^<>\n]{0,40}>", re.IGNORECASE)
_CLOSING = re.compile(r"\s{0,4}(?:\[\s{0,4}/[^\[\]\n]{1,60}\]\s{0,4}){1,4}")
_PAUSE = re.compile(
    r"""(?: \[\s{0,4} (?:pause|break|silence) \s{0,4}[:=]?\s{0,4}
        | <break (?: \s{1,4} time \s{0,4}=\s{0,4} ["']? )? )
    (?: (?P<number> \d{1,6}(?:[.,]\d{0,3})? | [.,]\d{1,3} ) \s{0,4}
        (?P<unit> ms|milliseconds?|s|secs?|seconds? )? )?
    \s{0,4} (?: \] | ["']? \s{0,4} /?> )""",
    re.IGNORECASE | re.VERBOSE,
)


def leading_closes(text: str) -> str:
    """Closing tags before the first word, `[/glad] `: they end what began in an earlier piece."""
    match = _CLOSING.match(text)
    return match[0] if match else ""


def pause_of(tag: str) -> float | None:
    """Seconds of a pause tag, None for any other tag."""
    match = _PAUSE.fullmatch(tag)
    if not match:
        return None
    if match["number"] is None:
        return DEFAULT_PAUSE
    scale = 0.001 if (match["unit"] or "s").lower().startswith("m") else 1.0
    return min(MAX_PAUSE, float(match["number"].replace(",", ".")) * scale)


def pause_tag(seconds: float) -> str:
    return f"[pause {round(seconds, 3):g}s]"


def at_pauses(text: str) -> list[tuple[str, float | None]]:
    """The text between pause tags, each piece with the pause that follows it."""
    found: list[tuple[str, float | None]] = []
    start = 0
    for match in TAG.finditer(text):
        pause = pause_of(match[0])
        if pause is None:
            continue
        piece = text[start : match.start()]
        start = match.end()
        if found and not piece.strip():  # adjacent tags add up
            before, earlier = found[-1]
            found[-1] = (before, min(MAX_PAUSE, (earlier or 0.0) + pause))
        else:
            found.append((piece, pause))
    if text[start:].strip() or not found:
        found.append((text[start:], None))
    return found


def around_tags(text: str) -> list[tuple[str, bool]]:
    """The text split at its tags: (piece, whether it is a tag). The pieces join to the text."""
    pieces: list[tuple[str, bool]] = []
    start = 0
    for match in TAG.finditer(text):
        pieces += [(text[start : match.start()], False), (match[0], True)]
        start = match.end()
    pieces.append((text[start:], False))
    return [piece for piece in pieces if piece[0]]
