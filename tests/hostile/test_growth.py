"""Whatever is repeated in a file: twice of it takes at most 2.2 times the time."""

from __future__ import annotations

import io
import itertools
from contextlib import suppress

import pytest

from engine import InvalidText
from studio.imports.archives import open_archive
from studio.imports.projects.json_bounds import check_json
from tests.hostile.files import BOOK_TAILS, DOCUMENT_TAILS, MARKUP, document, page
from tests.hostile.growth import Work, check_linear
from tests.support.script_makers import script_of_file

SMALLEST, LARGEST = 1 << 14, 1 << 20
CAPTION = "{n}\n00:00:00,000 --> 00:00:01,000\nand then she said the same thing over again\n\n"
# What an earlier form read in time that grew with the square.
ONCE_SLOW = [
    ("a.txt", "Hello. ", "[laugh]"),
    ("a.txt", "", "word [pause 1s] "),
    ("a.txt", "INT. HOUSE\n\nANNA\n", "and so on we go\n"),
    ("a.txt", "Hello. ", "a"),
    ("a.txt", "Hello. ", "Dr. "),
    ("a.md", "# ", "#"),
    ("a.md", "", "<!--"),
    ("a.md", "| ", "-"),
    ("a.md", "", "> "),
    ("a.csv", "text,pause\n", '"'),
    ("a.srt", "", "00:00:00,000 --> 00:00:01,000\n"),
    ("a.vtt", "WEBVTT\n\n", "00:00.000 --> 00:01.000\nShe said\n\n"),
]


def read(name: str, data: bytes) -> Work:
    def work() -> None:
        with suppress(InvalidText):
            script_of_file(name, data)

    return work


@pytest.mark.parametrize(("name", "before", "unit"), ONCE_SLOW)
def test_texts(name: str, before: str, unit: str) -> None:
    def prepared(size: int) -> Work:
        return read(name, (before + unit * (size // len(unit))).encode())

    check_linear(prepared, SMALLEST, LARGEST)


def test_captions_of_one_sentence() -> None:
    def prepared(size: int) -> Work:
        return read("a.srt", "".join(CAPTION.format(n=n) for n in range(size // 64)).encode())

    check_linear(prepared, SMALLEST, LARGEST)


@pytest.mark.parametrize("unit", ["<!--", "</", "<a b='", "<", '<a b="" '])
def test_markup_of_a_book(unit: str) -> None:
    check_linear(lambda size: read("a.epub", page(unit, size)), SMALLEST, LARGEST)


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "tail"), [*itertools.product(MARKUP, BOOK_TAILS)])
def test_all_markup_of_a_book(unit: str, tail: str) -> None:
    check_linear(lambda size: read("a.epub", page(unit, size, tail)), SMALLEST, LARGEST)


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "tail"), [*itertools.product(MARKUP, DOCUMENT_TAILS)])
def test_all_markup_of_a_document(unit: str, tail: str) -> None:
    check_linear(lambda size: read("a.docx", document(unit, size, tail)), SMALLEST, LARGEST)


@pytest.mark.parametrize("unit", ["{},", "[],", '"a",', '"\\\\",', "1,", "1", '\\"', '{"a":'])
def test_values_of_a_project(unit: str) -> None:
    def prepared(size: int) -> Work:
        data = f'{{"x":["{unit * (size // len(unit))}'.encode()

        def work() -> None:
            with suppress(InvalidText):
                check_json(data, size)

        return work

    check_linear(prepared, SMALLEST, LARGEST)


def test_entries_of_an_archive() -> None:
    def prepared(size: int) -> Work:
        data = b"PK\x01\x02PK\x01" * (size // 7)

        def work() -> None:
            with suppress(InvalidText), open_archive(io.BytesIO(data), size, size):
                pass

        return work

    check_linear(prepared, SMALLEST, 1 << 24)


def test_what_grows_with_the_square_is_found() -> None:
    def prepared(size: int) -> Work:
        text = "x" * size
        return lambda: [text.find("y", at) for at in range(0, size, 16)]

    with pytest.raises(AssertionError):
        check_linear(prepared, SMALLEST, LARGEST, rounds=2)
