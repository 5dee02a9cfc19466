"""What a book says of itself, and its parts that were left out, each with a button that reads it.

Everything a book wrote is escaped. Knows no components; script.js tells what a button asks for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from html import escape

from engine import InvalidText, Message
from studio.scripts.books import KINDS, Book, Kind, LeftOut, language_named
from studio.ui.i18n import both, tell
from studio.ui.tabs.script.view import Item

LABELS: Mapping[Kind, str] = {
    "notes": "Notes",
    "copyright": "Copyright pages",
    "contents": "Tables of contents",
    "index": "Index",
    "pages": "Page numbers",
}
MOST_SHOWN = 40  # parts of a kind
LONGEST_SHOWN = 90  # characters of a part


def book_items(book: Book, has_cover: bool, parts: Sequence[LeftOut]) -> list[Item]:
    """Empty for a script that is no book."""
    about = [escape(book.author)] if book.author else []
    about += [_language(book.language)] if book.language else []
    about += [both("with cover")] if has_cover else []
    line = f"<p>{' · '.join(about)}</p>" if about else ""
    if not line and not parts:
        return []
    if not parts:
        return [("book", f'<section class="book">{line}</section>')]
    rows = "".join(_row(kind, [part for part in parts if part.kind == kind]) for kind in KINDS)
    head = f"<summary>{both('Left out of this book')} ({len(parts):,})</summary>"
    hide = f'<button type="button" data-act="forget-parts">{both("Forget this list")}</button>'
    line += f"<details>{head}{rows}{hide}</details>"
    return [("book", f'<section class="book">{line}</section>')]


def _language(tag: str) -> str:
    """The language of a book's tag, such as "fr-CA"; the tag itself if it is unknown."""
    named = language_named(tag)
    return both(named.capitalize()) if named else escape(tag)


def places_of(parts: Sequence[LeftOut], wanted: str) -> list[int]:
    """Which parts a press means: all of a kind, or the one with a key. Raises InvalidText."""
    places = [
        place for place, part in enumerate(parts) if wanted in (part.kind, _key(part)) and wanted
    ]
    if not places:
        raise InvalidText("This part is read already, or the page is older. Reload it.")
    return places


def _row(kind: Kind, parts: Sequence[LeftOut]) -> str:
    if not parts:
        return ""
    named = tell(LABELS[kind])
    label = tell(Message("Read all: {kind}", kind=named))
    every = _button(kind, both("Take all in"), label) if len(parts) > 1 else ""
    items = "".join(f"<li>{_text(part)}{_part(part)}</li>" for part in parts[:MOST_SHOWN])
    more = len(parts) - MOST_SHOWN
    rest = f"<li>{both('and {count} more', count=f'{more:,}')}</li>" if more > 0 else ""
    return (
        f"<div><header><strong>{escape(named)} ({len(parts):,})</strong>{every}</header>"
        f"<ul>{items}{rest}</ul></div>"
    )


def _text(part: LeftOut) -> str:
    return f"<span>{escape(_short(part))}</span>"


def _part(part: LeftOut) -> str:
    label = tell(Message("Take in: {text}", text=_short(part)))
    return _button(_key(part), both("Take in"), label)


def _short(part: LeftOut) -> str:
    text = " ".join(part.text.split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1].rstrip()}…"


def _button(wanted: str, shown: str, label: str) -> str:
    return (
        f'<button type="button" data-act="take-in" data-part="{wanted}"'
        f' aria-label="{escape(label)}">{shown}</button>'
    )


def _key(part: LeftOut) -> str:
    return hashlib.sha256(f"{part.after} {part.text}".encode()).hexdigest()[:16]
