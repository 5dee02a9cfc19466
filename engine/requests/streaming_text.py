"""The text of an open request, from the caller to the engine.

A word waits here until its end is certain, so that a text in pieces gets the same ids as the whole
text. One caller at a time.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import TypeAlias

from engine.checkpoints.tokens import TextFeed
from engine.errors import InvalidText
from engine.plan import Checkpoint

ALLOWED_CONTROLS = "\n\r\t"

Post: TypeAlias = Callable[[tuple[int, ...], bool], None]


def check_text(text: str, longest: int, empty: bool = False) -> None:
    """Text that can be spoken, at most `longest` characters. Raises InvalidText."""
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
    wrong = next((mark for mark in text if _unspeakable(mark)), None)
    if wrong is not None:
        raise InvalidText(
            "The text holds the control character U+{code:04X}. Remove it.", code=ord(wrong)
        )


def _visible(mark: str) -> bool:
    """Neither space nor a mark that only affects others: zero width, direction, tags."""
    return not mark.isspace() and unicodedata.category(mark) not in ("Cc", "Cf", "Mn")


def _unspeakable(mark: str) -> bool:
    """Control characters, and halves of surrogate pairs."""
    return unicodedata.category(mark) in ("Cc", "Cs") and mark not in ALLOWED_CONTROLS


class StreamingText:
    """Takes characters, sends ids."""

    def __init__(self, checkpoint: Checkpoint, longest: int) -> None:
        self._feed = TextFeed(checkpoint.text_ids)
        self._characters = longest  # that may still be appended
        self._ids = 0  # that still fit into the slot
        self._closed = False
        self._post: Post | None = None

    def first(self, text: str) -> tuple[int, ...]:
        """The ids of the request's first text."""
        self._characters -= len(text)
        return self._feed.append(text)

    def connect(self, ids: int, post: Post) -> None:
        """Send ids to the engine from now on, at most `ids` of them."""
        self._ids, self._post = ids, post

    def append(self, text: str) -> None:
        """Raises InvalidText; what was appended before is kept."""
        if self._closed:
            raise InvalidText("This text is closed. Start a new request for more.")
        check_text(text, self._characters, empty=True)
        self._characters -= len(text)
        self._send(self._feed.append(text))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._send(self._feed.close())

    def _send(self, ids: tuple[int, ...]) -> None:
        fitting = ids[: self._ids]
        self._ids -= len(fitting)
        self._closed = self._closed or fitting != ids
        if self._post and (fitting or self._closed):
            self._post(fitting, self._closed)
        if fitting != ids:
            raise InvalidText("The text is longer than can be spoken at once: its end is left out.")
