"""Hostile books: bombs, huge directories, entities, endless PDFs are refused in little time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import InvalidText
from studio.imports import archives
from studio.scripts import Script
from tests.hostile.bounds import Worst
from tests.studio.imports.books import book_makers as makers
from tests.support.script_makers import script_of_file

ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 9 if n else "ha"}">' for n in range(12))
BOMB = f'<?xml version="1.0"?><!DOCTYPE x [{ENTITIES}]><x>&e11;</x>'
EXTERNAL = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'


def read(name: str, data: bytes) -> Script | None:
    try:
        return script_of_file(name, data)
    except InvalidText as error:
        message = str(error)
    assert len(message) < 300
    return None


@pytest.mark.parametrize("text", [BOMB, EXTERNAL])
@pytest.mark.parametrize("name", ["META-INF/container.xml", "OEBPS/book.opf", "OEBPS/toc.ncx"])
def test_entities_of_a_book_are_refused(text: str, name: str) -> None:
    with pytest.raises(InvalidText, match="damaged"):
        script_of_file("a.epub", makers.epub({"a.xhtml": "<p>Hello.</p>"}, {name: text}))


@pytest.mark.parametrize("text", [BOMB, EXTERNAL])
def test_entities_of_a_document_are_refused(text: str) -> None:
    for name in ("word/document.xml", "word/styles.xml"):
        with pytest.raises(InvalidText, match="damaged"):
            script_of_file("a.docx", makers.docx("", {name: text}))


def test_a_zip_bomb_is_not_expanded() -> None:
    worst = Worst("zip bombs")
    zeros = bytes(120 << 20)
    for name, data in (
        ("a.epub", makers.epub({"a.xhtml": ""}, {"OEBPS/a.xhtml": zeros.decode("latin-1")})),
        ("a.docx", makers.zipped({"word/document.xml": zeros})),
    ):
        with worst.measured(), pytest.raises(InvalidText, match=r"too large|damaged|longer than"):
            script_of_file(name, data)
    worst.tell()


def test_a_directory_of_a_million_entries_is_not_parsed() -> None:
    entry = archives._ENTRY + bytes(43)
    data = b"PK\x03\x04" + entry * 1_000_000
    worst = Worst("huge directories")
    for name in ("a.epub", "a.docx"):
        with worst.measured(), pytest.raises(InvalidText, match=r"too many parts"):
            script_of_file(name, data)
    worst.tell()


def test_one_part_that_is_read_again_and_again_is_bounded() -> None:
    spine = '<itemref idref="i0"/><itemref idref="i1"/>' * 50_000
    items = "".join(
        f'<item id="i{n}" href="{n}.xhtml" media-type="application/xhtml+xml"/>' for n in (0, 1)
    )
    package = f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>"
    book = makers.epub({"0.xhtml": "<p>A</p>", "1.xhtml": "<p>B</p>"}, {"OEBPS/book.opf": package})
    with pytest.raises(InvalidText, match="damaged"):
        script_of_file("a.epub", book)


def test_deep_elements_do_no_harm() -> None:
    deep = "<w:p>" * 50_000 + "<w:r><w:t>x</w:t></w:r>" + "</w:p>" * 50_000
    assert read("a.docx", makers.docx(deep)) is not None
    assert read("a.epub", makers.epub({"a.xhtml": "<div>" * 50_000 + "x"})) is not None


def test_paths_out_of_a_book_lead_nowhere() -> None:
    package = (
        '<package><manifest><item id="i" href="../../../../etc/passwd" media-type="'
        'application/xhtml+xml"/></manifest><spine><itemref idref="i"/></spine></package>'
    )
    with pytest.raises(InvalidText, match="No text was found"):
        script_of_file("a.epub", makers.epub({}, {"OEBPS/book.opf": package}))


def test_a_pdf_whose_pages_go_in_circles_ends() -> None:
    data = makers.pdf([["Hello there."]])
    circle = data.replace(b"/Kids [5 0 R]", b"/Kids [2 0 R]")
    assert read("a.pdf", circle) is None
    nested = data.replace(b"(Hello there.) Tj", b"[" * 60 + b"(x)")
    read("a.pdf", nested)
    assert read("a.pdf", data) is not None


def test_an_entry_without_a_name_is_passed_over() -> None:
    name = b"OEBPS/pictures.css"
    data = makers.epub({"a.xhtml": "<p>Hello there.</p>"}, {name.decode(): "p {}"})
    cut = data.replace(name, b"\0" + name[1:])  # zipfile ends a name at a zero
    assert cut != data
    assert read("a.epub", cut) == read("a.epub", data) is not None


@settings(max_examples=60, deadline=None, database=None)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=4))
def test_damaged_books_are_read_or_refused(place: int, damage: bytes) -> None:
    for name, data in (
        ("a.epub", makers.epub({"a.xhtml": "<h1>One</h1><p>Hello there.</p>"})),
        ("a.docx", makers.docx(makers.paragraph("Hello there."))),
    ):
        at = place % len(data)
        read(name, data[:at] + damage + data[at + len(damage) :])
