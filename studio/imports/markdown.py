"""Reads Markdown as a script: headings are chapters, markup is dropped.

Not a full parser: it keeps the text and drops what is not spoken (code, image addresses, link
targets, tags, front matter). Works line by line in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from studio.imports.markup import unescaped
from studio.scripts.text.dialogue import read_parts
from studio.scripts.text.passages import Passage

_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*)")
_UNDERLINE = re.compile(r"\s{0,3}(=+|-+)\s*")
_FENCE = re.compile(r"\s{0,3}(```(?!`*[^`]+`)|~~~)")  # ```code``` in a line is none
_DIVISION = re.compile(
    r"\s{0,3}:{3,20}(?:\s?(?:\{[^{}\n]{0,200}\}|[\w.-]{1,60}))?\s{0,9}:{0,20}\s*"
)
_ATTRIBUTES = re.compile(r"\s\{(?:[#.-][^{}\n]{0,200})\}$")  # Pandoc's: # Title {#name .unnumbered}
_FRONT_END = re.compile(r"^(?:---|\.\.\.)[ \t]{0,9}(?:\n|\Z)", re.MULTILINE)
_RULE = re.compile(r"\s{0,3}([-*_])(\s*\1){2,}\s*")
_INDENT = re.compile(r"\s{0,12}")
_BLOCK_MARK = re.compile(r">\s?|[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+")
_TABLE_RULE = re.compile(r"[\s|:\-]+")
_NOTE = re.compile(r"\s{0,3}\[\^[^\[\]\s]{1,100}\]:\s*(.*)")
_TARGET = re.compile(
    r"\s{0,3}\[[^\[\]\n]{1,200}\]:\s+<?(?:[a-z]{2,9}:|[\w.-]{0,200}[/#])\S*(?:\s.*)?"
)
_ENTRY = re.compile(
    r"\s{0,12}(?:[-*+]|\d{1,3}[.)])\s+\[[^\n]{1,500}\]\(#[^()\n]{0,500}\)[^\n]{0,99}"
)
_SEVERAL = 3  # links in a row into the text itself, which are a table of contents
_INLINE = (
    (re.compile(r"\[\^[^\[\]\s]{1,100}\]"), ""),  # numbers of notes
    (re.compile(r"!?\[([^\[\]\n]{0,500})\]\((?:[^()\n]|\([^()\n]{0,500}\)){0,2000}\)"), r"\1"),
    (re.compile(r"!?\[([^\[\]\n]{1,500})\]\[[^\[\]\n]{0,200}\]"), r"\1"),
    (re.compile(r"<(?:https?://|mailto:)[^<>\s]{1,2000}>"), ""),
    (re.compile(r"</?(?!break\b)[a-zA-Z][^<>\n]{0,500}>"), ""),
    (re.compile(r"(?<!\\)(\*{1,3}|~~|`{1,3})(?=\S)([^*~`\n]{1,2000}?)(?<=[^\s\\])\1"), r"\2"),
    (re.compile(r"(?<![\w\\])(_{1,3})(?=\S)([^_\n]{1,2000}?)(?<=[^\s\\])\1(?!\w)"), r"\2"),
    (re.compile(r"\\([\\`*_{}\[\]()#+\-.!~|>])"), r"\1"),
)


def read_markdown(text: str) -> Iterator[Passage]:
    """Passages of a Markdown text, in order."""
    return read_parts(_parts(text))


def _parts(text: str) -> Iterator[str | Passage]:
    """Texts, and between them headings, and notes, which are left out."""
    block: list[str] = []
    note: list[str] = []
    entries: list[str] = []
    for line in _blocks(_without_front_matter(_without_comments(text)).splitlines()):
        if _ENTRY.fullmatch(line):
            entries.append(line)
            continue
        if entries and line.strip():
            yield from _listed(entries, block)
            block, entries = [], []
        noted = _NOTE.fullmatch(line)
        if note and not noted and (line[:1].isspace() or (line.strip() and note[-1])):
            note.append(line.strip())
            continue
        if note and (noted or line.strip()):
            yield _left_out(note)
            note = []
        heading = _HEADING.fullmatch(line)
        if heading or noted:
            yield "\n".join(block)
            block = []
        if noted:
            note = [noted[1]]
        elif heading:
            yield Passage(inline(_closed(heading[1])), heading=True)
        elif note:  # an empty line, after which it may go on
            note.append("")
        elif not _TARGET.fullmatch(line):
            block.append(_spoken(line))
    if note:
        yield _left_out(note)
    yield from _listed(entries, block)


def _listed(entries: list[str], block: list[str]) -> Iterator[str | Passage]:
    """A block, and entries of a table of contents behind it if they are several."""
    spoken = [_spoken(line) for line in entries]
    if len(entries) < _SEVERAL:
        yield "\n".join(block + spoken)
    else:
        yield "\n".join(block)
        yield Passage("\n".join(line.strip() for line in spoken), left_out="contents")


def _left_out(note: list[str]) -> Passage:
    return Passage(inline("\n".join(note)).strip(), left_out="notes")


def _closed(title: str) -> str:
    """A heading without attributes and closing hashes, for which a regular expression would take
    quadratic time."""
    return _ATTRIBUTES.sub("", title.rstrip()).rstrip().rstrip("#").rstrip()


def inline(text: str) -> str:
    """A line without its markup."""
    for pattern, replacement in _INLINE:
        text = pattern.sub(replacement, text)
    return unescaped(text)


def _without_comments(text: str) -> str:
    """Remove comments in linear time; a regular expression rescans for unclosed ones."""
    kept, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[at:start])
        at = end + len("-->")
    return "".join([*kept, text[at:]])


def _without_front_matter(text: str) -> str:
    """What follows the closing line. A rule, with an empty line behind it, opens none."""
    if not text.startswith("---\n") or not text[4:].partition("\n")[0].strip():
        return text
    end = _FRONT_END.search(text, 4)
    return text[end.end() :] if end else text


def _blocks(lines: list[str]) -> Iterator[str]:
    """Lines without code; underlined headings are converted to hashes."""
    fence = ""
    previous = ""
    for line in lines:
        mark = _FENCE.match(line)
        if mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        elif not fence and previous.strip() and _UNDERLINE.fullmatch(line):
            previous = f"# {previous.strip()}"
        elif not fence:
            yield previous
            previous = line
    yield previous


def _spoken(line: str) -> str:
    if (
        _RULE.fullmatch(line)
        or _DIVISION.fullmatch(line)
        or ({"|", "-"} <= set(line) and _TABLE_RULE.fullmatch(line))
    ):
        return ""
    marks, text = _marked(line.removesuffix("\\"))  # which breaks the line
    if text.strip().startswith("|") and text.strip().endswith("|"):
        text = ", ".join(cell.strip() for cell in text.strip().strip("|").split("|"))
    listed = marks and not marks.strip().startswith(">")
    return f"\n{inline(text)}" if listed else inline(text)


def _marked(line: str) -> tuple[str, str]:
    """Marks of quotes and lists, and what follows. A pattern that repeats keeps a stack of them."""
    indent = _INDENT.match(line)
    at = begun = indent.end() if indent else 0
    while mark := _BLOCK_MARK.match(line, at):
        at = mark.end()
    return ("", line) if at == begun else (line[:at], line[at:])
