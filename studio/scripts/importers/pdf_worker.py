"""The text of a PDF, page by page. Run as a process of its own, which bounds its time and memory:

    python -I pdf_worker.py < limits and file > pages

Reads a line of JSON, [megabytes, seconds, pages, characters], then the file. Writes one JSON value
a line: a page as [titles from the outline, text], or an error as a string. It imports nothing but
pypdf.
"""

from __future__ import annotations

import io
import json
import logging
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

DEEPEST = 3  # levels of the outline that are chapters


def main() -> None:
    megabytes, seconds, pages, characters = json.loads(sys.stdin.buffer.readline())
    _limit(megabytes, seconds)
    logging.disable()  # pypdf warns of what is damaged
    for told in _pages(sys.stdin.buffer.read(), pages, characters):
        print(json.dumps(told))


def _pages(data: bytes, most: int, characters: int) -> Iterator[Any]:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            yield "encrypted"
            return
        if len(reader.pages) > most:
            yield "pages"
            return
        titles = _titles(reader)
        for number, page in enumerate(reader.pages):
            text = page.extract_text()
            characters -= len(text)
            yield [titles[number], text[: max(0, characters)]]
            if characters < 0:
                return
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, OSError):
        yield "damaged"
    except (RecursionError, MemoryError, NotImplementedError, ImportError):
        yield "damaged"


def _titles(reader: Any) -> dict[int, list[str]]:
    """Titles by page; none where the outline is damaged."""
    found: dict[int, list[str]] = defaultdict(list)

    def walk(entries: list[Any], depth: int) -> None:
        for entry in entries[:5_000]:
            if isinstance(entry, list):
                if depth < DEEPEST:
                    walk(entry, depth + 1)
            elif (number := reader.get_destination_page_number(entry)) is not None:
                found[number].append(str(entry.title)[:200])

    with suppress(Exception):
        walk(reader.outline, 1)
    return found


def _limit(megabytes: int, seconds: int) -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


if __name__ == "__main__":
    main()
