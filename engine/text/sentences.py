"""Where sentences end, in whole texts and in texts that are still being written.

Sizes are counted in letters of an alphabet, so one limit holds for all languages. Knows no
checkpoints and no ids.

In an open text a sentence has ended once a closing mark, quotes and a space were written, unless
the word before the mark may be an abbreviation: then the first letter after it decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate

import sentencex

LANGUAGE_CODES = {
    "auto": "en",  # the rules for English hold for most scripts
    "english": "en",
    "chinese": "zh",
    "german": "de",
    "french": "fr",
    "italian": "it",
    "portuguese": "pt",
    "spanish": "es",
    "japanese": "ja",
    "korean": "ko",
    "russian": "ru",
}
# Chinese, Japanese and Korean characters are syllables, each about three letters long.
SYLLABIC = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
LETTERS_PER_SECOND = 15  # slow speech
FASTEST_LETTERS_PER_SECOND = 30  # faster speech is not intelligible

_SPLIT_AT_ONCE = 4_000  # characters; the splitter's time may grow with their square
_LONGEST_KEPT = 100  # characters of a `keep` match that is never cut
# Places to cut inside a sentence, the best first. A full stop after a short word with a capital is
# no good place: "Gen. Lee".
_CUTS = (
    re.compile(
        r"(?:[!?…]|(?<!\b[A-Z])(?<!\b[A-Z][a-z])(?<!\b[A-Z][a-z]{2})(?<!\b[A-Z][a-z]{3})\.)"
        r"['\"”’)]*\s|[。！？…]"
    ),
    re.compile(r"[;:—–]\s|[；：—]"),
    re.compile(r",\s|[，、]"),
    re.compile(r"\s"),
)
_LATIN_END = r"(?<![.!?…])[.!?…]+[\"'”’»)\]]*\s+"
_WIDE_END = r"[。！？]+[”’」』）]*"
_END = re.compile(rf"(?:{_LATIN_END}|{_WIDE_END}|(?<!\s)\s*\n\s*)")
_CLOSES = re.compile(r"[\s。！？]")  # an end has one of these
_TAIL = 40  # characters before a full stop that show whether it is one of an abbreviation
_FOLLOWING = re.compile(r"[^\w\n]{0,40}(\w{40}|\w{1,39}(?=\W))")  # a word, whole or long enough
_NO_WORD = re.compile(r"[^\w\n]{0,40}\n|[^\w\n]{41}")
_SEEN_AFTER = 200  # characters behind a sentence that show whether it ends
_PROBES = ("He", "Smithson", "houses", "12")  # words of all kinds that may follow
_NEVER_LAST = re.compile(
    r"(?:^|\s)(?:Mr|Mrs|Ms|Dr|Prof|Gen|Col|Capt|Lt|Sgt|Rev|Hon|Sen|Gov|St|Mt|vs|e\.g|i\.e)$"
)
_QUOTES = re.compile(r"[^\w\s.!?…'’-]")
_MARKS, _CLOSERS = (
    ".!?…。！？",
    "\"'”’»)]」』）",
)  # in this order, then spaces, they may go on to an end
_BEFORE_STOP, _WIDE_SPACE = re.compile(r"(?<!\s)\s+(?=\.)"), re.compile(r"[^\S\x00-\x7f]")
_NOTHING_KEPT = re.compile(r"(?!)")


def spoken_size(text: str) -> int:
    """The length of a text when spoken, in letters of an alphabet."""
    return len(text) + 2 * len(SYLLABIC.findall(text))


def letters(text: str) -> int:
    """As `spoken_size`, without spaces and punctuation."""
    return sum(map(str.isalnum, text)) + 2 * len(SYLLABIC.findall(text))


def speaking_seconds(text: str) -> float:
    """About how long the text takes to speak slowly."""
    return spoken_size(text.strip()) / LETTERS_PER_SECOND


def split_sentences(
    text: str, language: str = "auto", keep: re.Pattern[str] = _NOTHING_KEPT
) -> list[str]:
    """Sentences with the space after them. Matches of `keep` are never cut."""
    iso = LANGUAGE_CODES.get(language.lower(), "en")
    parts: list[str] = [part for piece in _bounded(text, keep) for part in _segments(iso, piece)]
    return _join_kept(text, parts, keep)


def cut_text(text: str, longest: int, keep: re.Pattern[str] = _NOTHING_KEPT) -> list[str]:
    """Pieces of at most `longest` letters, cut at punctuation if possible."""
    parts: list[str] = []
    while text:
        place = piece_end(text, longest, keep)
        parts.append(text[:place])
        text = text[place:]
    return parts


def piece_end(text: str, longest: int, keep: re.Pattern[str] = _NOTHING_KEPT) -> int:
    """Where a piece of at most `longest` letters ends."""
    window = text[: longest + _LONGEST_KEPT]
    limit = _prefix(window, longest)
    return len(text) if limit == len(text) else _place_to_cut(window, limit, keep)


def open_end(text: str, least: int, most: int) -> int:
    """Where open text may be cut: after the first sentence that ends after `least` letters and
    takes at most `most`; 0: not yet. More text must have begun after it.
    """
    window = text[: most + _SEEN_AFTER]
    begun = max((place for place, mark in enumerate(window) if mark.isalnum()), default=0)
    for match in _END.finditer(window, _prefix(text, least) - 1):
        if match.end() > begun or spoken_size(text[: match.end()]) > most:
            return 0
        if _is_end(text, match, "auto"):
            return match.end()
    return 0


def _is_end(text: str, match: re.Match[str], language: str, begin: int = 0) -> bool | None:
    """Whether a sentence that begins at `begin` ends at a mark; None: what follows will tell."""
    mark = match[0].rstrip()
    if not mark or "\n" in match[0] or mark.strip("\"'”’»)]") != ".":
        return True
    tail = _QUOTES.sub("", text[max(begin, match.start() - _TAIL) : match.start()])
    if _NEVER_LAST.search(tail):
        return False
    iso = LANGUAGE_CODES.get(language.lower(), "en")
    following = _FOLLOWING.match(text, match.end())
    if following:
        return _ends(tail, following[1], iso)
    found = {_ends(tail, each, iso) for each in _PROBES}
    if len(found) == 1:
        return found.pop()
    return False if _NO_WORD.match(text, match.end()) else None


@lru_cache(maxsize=1024)
def _ends(tail: str, following: str, iso: str) -> bool:
    """Whether the splitter sees an end between a tail with a full stop and a word."""
    before = f"{tail}. "
    ends = accumulate(map(len, _segments(iso, before + following)))
    return len(before) in ends


def _segments(iso: str, text: str) -> Iterator[str]:
    """The splitter's sentences. It panics at a capital, a wide space and a full stop."""
    narrow = _BEFORE_STOP.sub(lambda match: _WIDE_SPACE.sub(" ", match[0]), text)
    at = 0
    for part in sentencex.segment(iso, narrow):
        yield text[at : at + len(part)]
        at += len(part)


class SentenceBuffer:
    """Splits text that arrives in pieces; the end of a line always ends a sentence."""

    def __init__(self, language: str = "auto") -> None:
        self._language = language
        self._text = ""
        self._seen = 0  # up to here there is no other end
        self._speakable = False  # whether there is a letter or digit up to there
        self._open: int | None = None  # a mark that may be an end

    @property
    def length(self) -> int:
        """Buffered characters."""
        return len(self._text)

    def feed(self, text: str) -> list[str]:
        """Add text; returns the sentences that are complete."""
        if not text:
            return []
        begun, last = len(self._text), self._text[-1:]
        self._text += text
        more_space = last.isspace() and text.isspace() and "\n" not in text
        if more_space or (self._open is None and not _CLOSES.search(text)):
            return []  # no end can be new
        ready, start = [], 0
        place = self._resume(begun)
        self._open = None
        for match in _END.finditer(self._text, place):
            ends = _is_end(self._text, match, self._language, start)
            if ends is None or (not ends and match.end() == len(self._text)):
                self._open = match.start() - start
                break
            between = self._text[self._seen : match.end()]
            self._speakable = self._speakable or any(map(str.isalnum, between))
            self._seen = match.end()
            if not self._speakable or not ends:
                continue
            ready.append(self._text[start : self._seen].strip())
            start, self._speakable = self._seen, False
        self._text, self._seen = self._text[start:], self._seen - start
        return ready

    def _resume(self, begun: int) -> int:
        """Where to continue the search, `begun` characters having been searched before."""
        if self._open is not None:
            return self._open
        searched = self._text[self._seen : begun]
        words = searched.rstrip()
        if not words and self._text[self._seen - 1 : self._seen].isspace():
            return begun  # spaces behind spaces begin no end
        closed = words.rstrip(_CLOSERS)
        marked = closed.rstrip(_MARKS)
        return self._seen + len(words if marked == closed else marked)

    def finish(self) -> list[str]:
        """The rest as a last sentence."""
        rest, self._text = self._text.strip(), ""
        return [rest] if rest else []


def _bounded(text: str, keep: re.Pattern[str]) -> Iterator[str]:
    """The text in pieces short enough for the splitter."""
    while len(text) > _SPLIT_AT_ONCE:
        place = _place_to_cut(text[:_SPLIT_AT_ONCE], _SPLIT_AT_ONCE, keep)
        yield text[:place]
        text = text[place:]
    yield text


def _join_kept(text: str, parts: list[str], keep: re.Pattern[str]) -> list[str]:
    """Join parts again where a boundary is inside a match of `keep`."""
    inside = {i for span in keep.finditer(text) for i in range(span.start() + 1, span.end())}
    whole: list[str] = []
    end = 0
    for part in parts:
        if whole and end in inside:
            whole[-1] += part
        else:
            whole.append(part)
        end += len(part)
    return whole


def _prefix(text: str, size: int) -> int:
    """The longest prefix of at most this spoken size; at least one character."""
    if not SYLLABIC.search(text[: size + 1]):  # each counts one
        return min(len(text), max(1, size))
    spoken = 0
    for index, char in enumerate(text):
        spoken += spoken_size(char)
        if spoken > size:
            return max(1, index)
    return len(text)


def _place_to_cut(window: str, limit: int, keep: re.Pattern[str]) -> int:
    """The last punctuation or space before `limit`, else `limit`, never inside a kept span."""
    spans = [span.span() for span in keep.finditer(window) if span.start() < limit]
    for mark in _CUTS:
        places = [match.end() for match in mark.finditer(window[:limit], limit // 3)]
        free = [place for place in places if not _inside(place, spans)]
        if free:
            return free[-1]
    for start, end in spans:
        if start < limit < end:
            return start or end
    return limit


def _inside(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start < place < end for start, end in spans)
