"""Words that come as they are read, handed on by a thread of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from engine import TimbreError
from studio.cli.console import Reporter


def feed(
    words: Iterable[str], append: Callable[[str], None], close: Callable[[], None], tell: Reporter
) -> None:
    """Reading may wait for ever, so nobody waits for it."""

    def run() -> None:
        try:
            for piece in words:
                append(piece)
        except TimbreError as error:
            tell.line(str(error))
        close()

    threading.Thread(target=run, name="words", daemon=True).start()
