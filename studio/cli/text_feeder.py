"""Feeds text to a stream as it is read, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from engine import TimbreError
from studio.cli.console import Reporter


def feed(
    words: Iterable[str], append: Callable[[str], None], close: Callable[[], None], tell: Reporter
) -> None:
    """Start a daemon thread, since reading may block forever."""

    def run() -> None:
        try:
            for piece in words:
                append(piece)
        except TimbreError as error:
            tell.line(str(error))
        close()

    threading.Thread(target=run, name="words", daemon=True).start()
