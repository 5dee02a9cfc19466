"""Paragraphs and headings of a book, as its file format has them, turned into passages.

Chapters begin where the book's own table of contents says, else at its highest headings that are
several; headings below are text. Adjacent titles are joined (`Chapter 1. The Storm`). Dialogue is
found in the book as a whole. Knows no formats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO

from engine import InvalidText
from studio.scripts.text.dialogue import read_parts
from studio.scripts.text.passages import MAX_CHARACTERS, Passage
from studio.scripts.text.typed import MAX_TYPED_LINES, too_many_lines

MOST_READ = 8 * MAX_CHARACTERS  # with the space between tags
LONGEST_TITLE = 200  # characters; a longer heading is text
_TEXT = 99  # the level of what is no heading
_ENDS = ".!?…:。！？"
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_TITLES = {
    "copyright": "copyright|copyright page|copyright notice|imprint|impressum|colophon|uncopyright"
    "|mentions légales|aviso legal|版权|版权信息|版权声明|奥付",
    "contents": "contents|table of contents|brief contents|detailed contents|list of figures"
    "|list of tables|list of illustrations|inhalt|inhaltsverzeichnis|sommaire|table des matières"
    "|índice general|sumario|indice dei contenuti|目录|目次|目錄",
    "index": "index|general index|subject index|stichwortverzeichnis|sachregister|索引",
    "notes": "footnotes|endnotes|notes|fußnoten|endnoten|notes de bas de page|脚注|尾注",
}
_KINDS = {title: kind for kind, titles in _TITLES.items() for title in titles.split("|")}


@dataclass(frozen=True)
class Block:
    """A paragraph, a heading, or an entry of the table of contents at the place it leads to.

    `level`: of a heading, 1 for the highest. `entry`: it stands in the table of contents, not in
    the text. `kind`: of a part that is left out, and `item` which of those it belongs to.
    """

    text: str
    level: int = _TEXT
    entry: bool = False
    kind: str = ""
    item: int = 0

    @property
    def heading(self) -> bool:
        return self.level < _TEXT and len(self.text) <= LONGEST_TITLE


class Blocks(list[Block]):
    """Blocks that have text, and the text of the one that is being read.

    A block too many for a script's lines or characters raises InvalidText at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts = StringIO()
        self._read = self._kept = 0  # characters

    def write(self, text: str) -> None:
        """Read on in the open block."""
        self._read += len(text)
        _check(self._read, MOST_READ)
        self._parts.write(text)

    def taken(self) -> str:
        """The text of the open block; another one is open then."""
        if not self._parts.tell():
            return ""
        text = self._parts.getvalue()
        self._parts = StringIO()
        return text

    def add(self, block: Block) -> None:
        if block.text.strip():
            self.append(block)
            self._kept += len(block.text)
            _check(self._kept, MAX_CHARACTERS)
            if len(self) > MAX_TYPED_LINES:
                raise too_many_lines(len(self))


def raised(text: str) -> str:
    """Raised text with its figures as signs: 10⁶ is not 106."""
    negative = text[:1] in ("-", "−") and text[1:].isdecimal()
    return ("⁻" + text[1:] if negative else text).translate(_RAISED)


def kind_of_title(title: str) -> str:
    """The kind of part that a title names; empty for any other."""
    return _KINDS.get(" ".join(title.casefold().strip(" .:–—-").split()), "")


def without_titled_parts(blocks: Sequence[Block]) -> list[Block]:
    """Blocks in which what a heading calls contents, copyright, notes or index is left out, up to
    the next heading that is as high."""
    found: list[Block] = []
    kind, level, item = "", 0, max((block.item for block in blocks), default=0)
    for block in blocks:
        if block.heading or block.entry:
            depth = 1 if block.entry else block.level
            if not kind or depth <= level:
                before, kind, level = kind, kind_of_title(block.text), depth
                item += bool(kind and kind != before)
        left = kind and not block.kind
        if not (left and block.entry):
            found.append(replace(block, kind=kind, item=item) if left else block)
    return found


def _check(characters: int, most: int) -> None:
    if characters > most:
        raise InvalidText(
            "The script is longer than {most:,} characters. Split it into parts.",
            most=MAX_CHARACTERS,
        )


def passages_of(blocks: Iterable[Block]) -> Iterator[Passage]:
    """The passages in order. Speakers are found in the book as a whole."""
    blocks = [block for block in blocks if block.text.strip()]
    if all(block.kind or block.entry for block in blocks):  # a book that is nothing else
        blocks = [replace(block, kind="") for block in blocks]
    chaptered = list(_by_entries(blocks) if _has_contents(blocks) else _by_levels(blocks))
    titled = any(block.heading and not block.kind for block in chaptered)
    return read_parts(_parts(chaptered), titled=titled)


def _has_contents(blocks: Sequence[Block]) -> bool:
    """Whether the table of contents divides the text."""
    return sum(block.entry and not block.kind for block in blocks) > 1


def _by_levels(blocks: Sequence[Block]) -> Iterator[Block]:
    """Headings of the highest level that several have, and above, are titles; a lone entry of the
    contents is one where no heading follows."""
    levels = Counter(block.level for block in blocks if block.heading and not block.kind)
    lowest = min((level for level, count in levels.items() if count > 1), default=_TEXT)
    for place, block in enumerate(blocks):
        if block.entry:
            if not any(each.heading for each in blocks[place + 1 : place + 2]):
                yield block
        else:
            yield block if block.level <= lowest else replace(block, level=_TEXT)


def _by_entries(blocks: Sequence[Block]) -> Iterator[Block]:
    """Entries are titles: spoken where the text has them as headings too, which are not spoken
    once more. All other headings are text."""
    place = 0
    while place < len(blocks):
        block = blocks[place]
        place += 1
        if not block.entry or block.kind:
            yield replace(block, level=_TEXT)
            continue
        headings: list[str] = []
        while place < len(blocks) and blocks[place].heading and not blocks[place].entry:
            if blocks[place].kind:
                break
            headings.append(blocks[place].text)
            place += 1
        title, rest = _spoken_title(block.text, headings)
        yield Block(title or block.text, level=1, entry=not title)
        yield from map(Block, rest)


def _spoken_title(entry: str, headings: Sequence[str]) -> tuple[str, list[str]]:
    """The title where the headings below it say the same, the longer form of it; other headings."""
    letters = letters_of(entry)
    rest = [each for each in headings if letters_of(each) not in letters]
    if len(rest) < len(headings):
        return entry, rest
    joined = letters_of("".join(headings))
    if letters and letters in joined and len(joined) <= LONGEST_TITLE:
        return _joined(headings), []
    return "", rest


def letters_of(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _parts(blocks: Iterable[Block]) -> Iterator[str | Passage]:
    """Texts, and what stands between them: titles, and parts that are left out."""
    title: list[str] = []
    silent = ""  # a title of the contents that waits for its text
    item: list[Block] = []  # a part that is left out, so far
    for block in blocks:
        if item and (block.kind, block.item) != (item[0].kind, item[0].item):
            yield _left_out(item)
            item = []
        if block.kind:
            yield from _heading(title)
            item.append(block)
        elif block.entry:
            yield from _heading(title)
            silent = block.text
        elif block.heading:
            silent = ""
            title.append(" ".join(block.text.split()))
        else:
            yield from _heading(title)
            if silent:
                yield Passage(silent, heading=True, silent=True)
                silent = ""
            yield block.text
    if item:
        yield _left_out(item)
    yield from _heading(title)


def _left_out(item: Sequence[Block]) -> Passage:
    return Passage("\n\n".join(block.text for block in item), left_out=item[0].kind)


def _heading(title: list[str]) -> Iterator[Passage]:
    if title:
        yield Passage(_joined(title), heading=True)
        title.clear()


def _joined(titles: Sequence[str]) -> str:
    ended = [each if each[-1] in _ENDS else f"{each}." for each in titles[:-1]]
    return " ".join([*ended, *titles[-1:]])
