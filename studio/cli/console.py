"""Terminal output: messages, progress that overwrites itself, results; and text input."""

from __future__ import annotations

import codecs
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import typer


class Reporter(Protocol):
    """Takes messages and progress."""

    def line(self, text: str) -> None: ...
    def progress(self, text: str) -> None: ...


class Console:
    """Messages go to standard error, results to standard output."""

    def __init__(self) -> None:
        self._open = False  # a line of progress is on the screen

    def line(self, text: str) -> None:
        typer.echo("\r" * self._open + text, err=True)
        self._open = False

    def progress(self, text: str) -> None:
        self._open = sys.stderr.isatty()
        if self._open:
            typer.echo(f"\r{text} ", err=True, nl=False)

    def result(self, text: str) -> None:
        if self._open:
            self.line("")
        try:
            typer.echo(text)
        except UnicodeEncodeError as error:  # a name in other letters than the output has
            typer.echo(text.encode(error.encoding, "backslashreplace").decode(error.encoding))

    def discard(self) -> None:
        """Write nothing more to standard output, which nobody reads; Python flushes it at exit."""
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


class Words:
    """Text in pieces; `cut`: some of it was left out, which has been told."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = pieces
        self.cut = False

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces)


def read_words() -> Iterator[str]:
    """Standard input in pieces as it arrives, without waiting for whole lines."""
    from engine import InvalidText

    if sys.stdin is None:  # it is closed, or there is no console
        raise InvalidText("There is no standard input. Give the text itself.")
    buffer: Any = sys.stdin.buffer
    source = getattr(buffer, "raw", buffer)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while data := source.read(4096):
            yield decoder.decode(data)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise InvalidText(
            "Standard input is not UTF-8 text: what follows is left out. Convert it, for "
            "example with iconv."
        ) from error


def feed(
    words: Words, append: Callable[[str], None], close: Callable[[], None], tell: Reporter
) -> None:
    """Feed text to a stream as it is read; in a daemon thread, since reading may block forever."""
    from engine import TimbreError

    def run() -> None:
        try:
            for piece in words:
                append(piece)
        except TimbreError as error:
            words.cut = True
            tell.line(str(error))
        except OSError as error:
            words.cut = True
            tell.line(f"Nothing more can be read ({error.strerror}): what follows is left out.")
        finally:
            close()  # else the speech would wait for more for ever

    threading.Thread(target=run, name="words", daemon=True).start()
