"""Passes the text of an open request from the caller to the engine.

A word is held back until its end is certain, so that text in pieces gets the same ids as the whole
text. Text that is longer than one run is cut into groups at the ends of sentences. One caller at a
time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import TypeAlias

from engine.checkpoints.tokens import TextFeed
from engine.errors import InvalidText
from engine.plan import Checkpoint
from engine.requests.sequence import TextPiece
from engine.text.sentences import letters, open_end, piece_end, spoken_size
from engine.text.spoken_form import SpokenForm, as_sentence

# Control characters but for tab and ends of lines, and halves of surrogate pairs.
_UNSPEAKABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
CUT_FROM = 0.6  # share of a group's letters from which it is cut at the next end of a sentence

Post: TypeAlias = Callable[[TextPiece], None]


def check_text(text: str, longest: int, empty: bool = False) -> None:
    """Check that text can be spoken and has at most `longest` characters. Raises InvalidText."""
    if not isinstance(text, str):
        raise InvalidText("The text must be text.")
    if not empty and not any(map(_visible, text[: longest + 1])):
        raise InvalidText("There is no text. Type some.")
    if len(text) > longest:
        raise InvalidText(
            "The text has {count} characters and {most} are possible here. Speak it in parts.",
            count=len(text),
            most=max(0, longest),
        )
    if wrong := _UNSPEAKABLE.search(text):
        raise InvalidText(
            "The text holds the control character U+{code:04X}. Remove it.", code=ord(wrong[0])
        )


def _visible(mark: str) -> bool:
    """Whether a character is neither space nor a format character (zero width, direction, tag)."""
    return not mark.isspace() and unicodedata.category(mark) not in ("Cc", "Cf", "Mn")


class StreamingText:
    """Takes characters and sends ids."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        longest: int,
        longest_group: int,
        most_ids: int,
        form: SpokenForm | None = None,
    ) -> None:
        """`longest`: characters in all. `longest_group`: letters that are spoken in one run.

        `most_ids`: ids that fit into a slot. `form`: spells out what is written.
        """
        self._form = form
        self._encode = checkpoint.text_ids
        self._feed = TextFeed(checkpoint.text_ids)
        self._characters = longest  # that may still be appended
        self._longest_group, self._most_ids = longest_group, most_ids
        self._ids = 0  # of the last group
        self._overflown = False
        self._group = ""  # text of the last group
        self._fed = 0  # characters of the group that the feed has
        self._later = False  # whether there was a group before the last one
        self._closed = False
        self._post: Post | None = None
        self.notice: Callable[[tuple[str, ...]], None] | None = None  # takes alphabets left out
        self._unposted: list[TextPiece] = []

    def first(self, text: str) -> TextPiece:
        """The first piece, from the request's own text."""
        self._characters -= len(text)
        first, *self._unposted = self._pieces(self._spoken(text))
        self._check_overflow()
        return first

    def connect(self, post: Post) -> None:
        """Set the function that sends pieces to the engine."""
        self._post = post
        for piece in self._unposted:
            post(piece)

    def append(self, text: str) -> None:
        """Raises InvalidText; text appended earlier is kept."""
        if self._closed:
            raise InvalidText("This text is closed. Start a new request for more.")
        check_text(text, self._characters, empty=True)
        self._characters -= len(text)
        for piece in self._pieces(self._spoken(text)):
            self._send(piece)
        self._check_overflow()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._form:
                for piece in self._pieces(self._form.close()):
                    self._send(piece)
            stripped = self._later or self._form is not None
            self._send(TextPiece(self._fitting(self._feed.close(stripped)), ends_text=True))

    def _spoken(self, text: str) -> str:
        if not self._form:
            return text
        known, spoken = self._form.foreign, self._form.append(text)
        if self.notice and self._form.foreign != known:
            self.notice(self._form.foreign)
        return spoken

    def _pieces(self, text: str) -> list[TextPiece]:
        """Split the text into pieces: those that end a group, then the rest that stays open."""
        self._group = self._stripped(self._group + text)
        pieces = []
        while not self._overflown and (place := self._group_end()):
            ids, count = self._take(place)
            rest = self._fitting(self._feed.close(stripped=True))
            pieces.append(TextPiece((*ids, *rest), count, ends_group=True))
            self._later, self._fed, self._ids = True, 0, 0
            self._group = self._stripped(self._group[place:])
            self._feed = TextFeed(self._encode)
        if not self._overflown:
            pieces.append(TextPiece(*self._take(len(self._group))))
        return pieces

    def _stripped(self, group: str) -> str:
        """The last group's text; a further group begins without space."""
        if self._fed or not self._later:
            return group
        return as_sentence(group.lstrip()) if self._form else group.lstrip()

    def _take(self, stop: int) -> tuple[tuple[int, ...], int]:
        """Feed the group's text up to `stop`; returns the ids that are certain, and the letters."""
        text, back = self._group[self._fed : stop], self._group[stop : self._fed]
        self._feed.drop(len(back))
        self._fed = stop
        return self._fitting(self._feed.append(text)), letters(text) - letters(back)

    def _fitting(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The ids of the last group that still fit into its slot."""
        fitting = ids[: self._most_ids - self._ids]
        self._ids += len(fitting)
        self._overflown = self._overflown or fitting != ids
        return fitting

    def _check_overflow(self) -> None:
        if self._overflown:
            self._closed = True
            self._send(TextPiece((), ends_text=True))
            raise InvalidText("The text is longer than can be spoken at once: its end is left out.")

    def _group_end(self) -> int:
        """Where the last group ends; 0 while it stays open."""
        from_, most = round(CUT_FROM * self._longest_group), self._longest_group
        if spoken_size(self._group) <= from_:
            return 0
        sent = self._fed - self._feed.held  # a word that is held back may be in the next group
        if place := open_end(self._group, from_, most):
            return max(place, sent)
        if spoken_size(self._group) <= most:
            return 0
        return max(piece_end(self._group, most), sent)

    def _send(self, piece: TextPiece) -> None:
        if self._post and piece != TextPiece(()):
            self._post(piece)
