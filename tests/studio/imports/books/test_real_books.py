"""Books with the structures that real ones have: contents, notes, copyright, pages, tables.

Each form was found in a book that is out there: Standard Ebooks, Project Gutenberg, DocBook and
Sphinx manuals, O'Reilly, Word, LaTeX.
"""

from __future__ import annotations

import base64
import io
from zipfile import ZipFile

import pytest
from PIL import Image
from pypdf import PdfWriter

from studio.imports import reader
from studio.scripts.books import Imported, take_in
from tests.studio.imports.books.book_makers import WORD, docx, epub, paragraph, pdf, zipped

STORM = "<p>It rained for a week, and nobody came to the door.</p>"


def imported(name: str, data: bytes) -> Imported:
    return reader.imported(name, io.BytesIO(data))


def lines(found: Imported) -> list[str]:
    return [line.text for line in found.script.lines]


def left(found: Imported, kind: str) -> list[str]:
    return [part.text for part in found.left_out if part.kind == kind]


def book(
    pages: dict[str, str],
    nav: str = "",
    metadata: str = "",
    more: dict[str, str | bytes] | None = None,
) -> bytes:
    """An EPUB 3 with a navigation document; `nav`: its body."""
    items = "".join(
        f'<item id="i{place}" href="{name}" media-type="application/xhtml+xml"/>'
        for place, name in enumerate(pages)
    )
    order = "".join(f'<itemref idref="i{place}"/>' for place in range(len(pages)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"'
        f' version="3.0"><metadata>{metadata}</metadata><manifest>{items}'
        '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
        '<item id="c" href="c.png" properties="cover-image" media-type="image/png"/>'
        f'</manifest><spine>{order}<itemref idref="nav"/></spine></package>'
    )
    files = {"OEBPS/book.opf": package, "OEBPS/nav.xhtml": f"<html><body>{nav}</body></html>"}
    return epub(pages, {**files, **(more or {})})  # type: ignore[dict-item]


def toc(*entries: tuple[str, str]) -> str:
    items = "".join(f'<li><a href="{href}">{title}</a></li>' for href, title in entries)
    return f'<nav epub:type="toc"><h1>Contents</h1><ol>{items}</ol></nav>'


def test_chapters_are_the_books_own_contents_and_headings_below_are_text() -> None:
    pages = {
        "a.xhtml": f"<h1>The Storm</h1>{STORM}<h2>A Section</h2><p>It went on.</p>",
        "b.xhtml": f'<h2><a id="two"></a>II</h2>{STORM}<h3 id="three">The Door</h3>'
        "<p>It opened.</p>",
    }
    entries = ("a.xhtml", "1. The Storm"), ("b.xhtml#two", "II: The Key"), ("b.xhtml#three", "Exit")
    page_list = '<nav epub:type="page-list"><ol><li><a href="a.xhtml#p9">9</a></li></ol></nav>'
    found = imported("a.epub", book(pages, toc(*entries) + page_list))
    assert found.script.chapters == ("1. The Storm", "II: The Key", "Exit")
    spoken = [(found.script.chapters[line.chapter], line.text) for line in found.script.lines]
    assert spoken == [
        ("1. The Storm", "1. The Storm"),
        ("1. The Storm", "It rained for a week, and nobody came to the door."),
        ("1. The Storm", "A Section"),
        ("1. The Storm", "It went on."),
        ("II: The Key", "II: The Key"),
        ("II: The Key", "It rained for a week, and nobody came to the door."),
        ("Exit", "The Door"),  # says another thing than the contents, whose title is not spoken
        ("Exit", "It opened."),
    ]
    assert left(found, "contents") == ["Contents\n\n1. The Storm\n\nII: The Key\n\nExit\n\n9"]


def test_title_authors_language_and_cover_come_from_the_package() -> None:
    metadata = (
        "<dc:title>The Key</dc:title><dc:title>A Novel</dc:title>"
        "<dc:creator id='x'>Ann Doe</dc:creator>"
        "<meta refines='#x' property='role'>ill</meta><dc:creator id='y'>Ben Roe &lt;b@x.org&gt;"
        "</dc:creator><meta refines='#y' property='role'>aut</meta><dc:language>de-AT</dc:language>"
    )
    drawn = io.BytesIO()
    Image.new("RGBA", (3000, 2000), (200, 30, 30, 128)).save(drawn, "PNG")
    found = imported(
        "a.epub", book({"a.xhtml": STORM}, "", metadata, {"OEBPS/c.png": drawn.getvalue()})
    )
    assert (found.book.title, found.book.author, found.book.language) == (
        "The Key",
        "Ben Roe",
        "de-AT",
    )
    with Image.open(io.BytesIO(base64.b64decode(found.cover))) as cover:
        assert (cover.format, cover.size) == ("JPEG", (1200, 800))
    bad = imported("a.epub", book({"a.xhtml": STORM}, "", metadata, {"OEBPS/c.png": b"\x89PNG no"}))
    assert bad.cover == ""
    assert lines(bad)


NOTED = {
    "epub:type": '<p>A word<a epub:type="noteref" href="#n">1</a> here.</p>'
    '<aside epub:type="footnote" id="n"><p>The note.</p></aside><p>More.</p>',
    "role": '<p>A word<a role="doc-noteref" href="#n">1</a> here.</p>'
    '<div role="doc-endnotes"><h2>Notes</h2><div role="doc-endnote" id="n">The note.</div></div>'
    "<p>More.</p>",
    "DocBook": '<p>A word<a href="#n" class="footnote" id="r"><sup class="footnote">[1]</sup></a>'
    " here.</p>"
    '<div class="footnotes"><br/><hr/><div class="footnote" id="n"><p>'
    '<a href="#r"><sup>[1] </sup></a>'
    "The note.</p></div></div><p>More.</p>",
    "plain links": '<p>A word<sup><a id="r" href="#n">1</a></sup> here.</p>'
    '<p id="n">[<a href="#r">1</a>] The note.</p><p>More.</p>',
}


def test_bodies_of_notes_are_left_out_in_every_form() -> None:
    for form, page in NOTED.items():
        found = imported("a.epub", book({"a.xhtml": page}))
        assert lines(found) == ["A word here.", "More."], form
        assert "The note." in left(found, "notes")[-1], form


def test_links_to_chapters_are_no_numbers_of_notes() -> None:
    page = '<p>See chapter <a href="#c3">3</a> for more.</p><p id="c3">3 doors were open.</p>'
    assert lines(imported("a.epub", book({"a.xhtml": page}))) == [
        "See chapter 3 for more.",
        "3 doors were open.",
    ]


def test_copyright_page_numbers_and_index_are_left_out_and_can_be_taken_in() -> None:
    pages = {
        "c.xhtml": '<section epub:type="copyright-page"><p>© 2020 A. Doe</p>'
        "<p>All rights.</p></section>",
        "a.xhtml": '<h1>One</h1><p>It was <span class="pagenum">[Pg 12]</span>late.</p>'
        '<span epub:type="pagebreak" id="p13" title="13"></span><p>It rained.</p>',
        "b.xhtml": "<h1>Two</h1><p>It was over.</p>",
        "x.xhtml": "<h1>Index</h1><p>door, 12</p><p>rain, 13</p>",
    }
    entries = [
        ("c.xhtml", "Copyright"),
        ("a.xhtml", "One"),
        ("b.xhtml", "Two"),
        ("x.xhtml", "Index"),
    ]
    found = imported("a.epub", book(pages, toc(*entries)))
    assert lines(found) == ["One", "It was late.", "It rained.", "Two", "It was over."]
    assert found.script.chapters == ("One", "Two")
    assert left(found, "copyright") == ["© 2020 A. Doe\n\nAll rights."]
    assert left(found, "pages") == ["[Pg 12]"]
    assert left(found, "index") == ["Index\n\ndoor, 12\n\nrain, 13"]
    everything = range(len(found.left_out))
    script, rest = take_in(found.script, found.left_out, everything)
    texts = [line.text for line in script.lines]
    assert not rest
    assert texts.index("© 2020 A. Doe") < texts.index("One") < texts.index("[Pg 12]")
    assert texts.index("It was over.") < texts.index("door, 12") < texts.index("rain, 13")
    assert len({line.id for line in script.lines}) == len(texts)


def test_a_notes_brackets_are_no_line_of_it() -> None:
    """As Sphinx writes it in Debian's developers-reference.epub."""
    page = (
        '<p>It rained.<a class="footnote-reference" href="#n" role="doc-noteref">1</a></p>'
        '<aside class="footnote" id="n" role="doc-footnote"><span class="label"><span>[</span>'
        '<a role="doc-backlink" href="#r">1</a><span>]</span></span><p>For a week.</p></aside>'
    )
    found = imported("a.epub", book({"a.xhtml": page}))
    assert lines(found) == ["It rained."]
    assert left(found, "notes") == ["For a week."]


def test_the_numbers_that_sisu_writes_beside_paragraphs_are_left_out() -> None:
    """As in Debian's live-manual."""
    beside = (
        '<div><label class="ocn"><a href="#o{0}" class="lnkocn">{0}</a></label><p>{1}</p></div>'
    )
    page = beside.format(7, "It rained.") + beside.format(8, "It was over.")
    found = imported("a.epub", book({"a.xhtml": page}))
    assert lines(found) == ["It rained.", "It was over."]
    assert left(found, "pages") == ["7", "8"]


def test_a_book_that_is_all_contents_is_read() -> None:
    links = "".join(
        f'<p><a href="#x">A long story, number {number}</a></p>' for number in range(12)
    )
    assert len(lines(imported("a.epub", epub({"a.xhtml": links})))) == 12


def test_tables_are_read_row_by_row_and_those_for_layout_as_text() -> None:
    table = (
        "<table><thead><tr><th>Port</th><th>Depth</th></tr></thead><tbody>"
        "<tr><td>Cork</td><td><p>11 m</p></td></tr><tr><td>Kiel</td><td></td></tr></tbody></table>"
    )
    layout = (
        "<table><tr><td><p>It was late.</p><p>It rained.</p></td><td>Nobody came.</td></tr></table>"
    )
    found = imported("a.epub", epub({"a.xhtml": f"<p>Ports are deep.</p>{table}{layout}"}))
    assert [line.text for line in found.script.lines] == [
        "Ports are deep.", "Port, Depth.", "Cork, 11 m.", "Kiel",
        "It was late.", "It rained.", "Nobody came.",
    ]  # fmt: skip


def test_a_play_in_rows_is_cast() -> None:
    rows = "".join(
        f'<tr><td epub:type="z3998:persona">{who}</td><td>{each}</td></tr>'
        for who, each in [("Lane", "Yes, sir."), ("Algernon", "Tea: at once."), ("Lane", "Sir.")]
    )
    found = imported("a.epub", epub({"a.xhtml": f"<table>{rows}</table>"}))
    spoken = [(line.speaker, line.text) for line in found.script.lines]
    assert spoken == [("Lane", "Yes, sir."), ("Algernon", "Tea: at once."), ("Lane", "Sir.")]


CORE = (
    '<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>The Key</dc:title><dc:creator>Ann Doe'
    "</dc:creator><dc:language>fr-FR</dc:language></cp:coreProperties>"
)
NOTES = (
    f'<w:footnotes xmlns:w="{WORD}"><w:footnote w:type="separator" w:id="0"><w:p/></w:footnote>'
    '<w:footnote w:id="2"><w:p><w:r><w:t>The note.</w:t></w:r></w:p></w:footnote></w:footnotes>'
)
STYLES = (
    f'<w:styles xmlns:w="{WORD}">'
    + "".join(
        f'<w:style w:styleId="{id}"><w:name w:val="{name}"/></w:style>'
        for id, name in [("T", "Title"), ("H1", "heading 1"), ("H2", "heading 2"), ("C", "toc 1")]
    )
    + "</w:styles>"
)


def test_a_word_document_has_properties_notes_contents_and_rows() -> None:
    cell = "<w:tc>{}</w:tc>".format
    row = "<w:tr>" + cell(paragraph("Cork")) + cell(paragraph("11 m")) + "</w:tr>"
    body = (
        paragraph("The Key", "T")
        + paragraph("One 3", "C") + paragraph("Two 7", "C")
        + paragraph("One", "H1") + paragraph("A Section", "H2")
        + '<w:p><w:r><w:t>It was late.</w:t><w:footnoteReference w:id="2"/></w:r></w:p>'
        + paragraph("Two", "H1") + f"<w:tbl>{row}</w:tbl>"
    )  # fmt: skip
    files = {"docProps/core.xml": CORE, "word/footnotes.xml": NOTES, "word/styles.xml": STYLES}
    found = imported("a.docx", docx(body, files))
    assert (found.book.title, found.book.author, found.book.language) == (
        "The Key",
        "Ann Doe",
        "fr-FR",
    )
    assert found.script.chapters == ("The Key", "One", "Two")
    assert lines(found) == ["The Key", "One", "A Section", "It was late.", "Two", "Cork, 11 m."]
    assert left(found, "contents") == ["One 3\n\nTwo 7"]
    assert left(found, "notes") == ["The note."]


def test_a_pdfs_title_takes_no_words_of_the_paragraph_before_it() -> None:
    """As in Debian's libtasn1.pdf: "tifier. 2.5 Future developments"."""
    page = ["Nobody knows this iden-", "tifier.", "2.5 Future developments", "It will rain."]
    found = imported(
        "a.pdf", pdf([["1 Now", "It rains."], page], {0: "Now", 1: "Future developments"})
    )
    assert found.script.chapters == ("1 Now", "2.5 Future developments")
    assert "Nobody knows this identifier." in lines(found)


def _described(data: bytes) -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(data))
    writer.add_metadata({"/Title": "The Book of Rain", "/Author": "Ann Doe"})
    described = io.BytesIO()
    writer.write(described)
    return described.getvalue()


def test_a_pdf_has_its_outline_as_chapters_where_they_begin_and_its_information() -> None:
    listed = ["Contents", "1 The Storm . . . . . . . . . . 2", "2 The Door . . . . . . . . . . . 2"]
    text = ["Chapter 1", "The Storm", "It rained for a week, and nobody came to the door at all.",
            "Chapter 2", "The Door", "It opened in the night, and nobody had been there.",
            "2"]  # fmt: skip
    data = pdf([listed, text], {1: "The Storm"})
    found = imported("a.pdf", _described(data))
    assert (found.book.title, found.book.author) == ("The Book of Rain", "Ann Doe")
    assert lines(found)[0] == "Chapter 1 The Storm"
    assert found.script.chapters == ("Chapter 1 The Storm",)
    assert left(found, "pages") == ["2"]
    assert any("1 The Storm" in part for part in left(found, "contents"))


SPELLINGS = {  # of OEBPS/Ü bung.xhtml, as archivers write it
    "without a word of its encoding": "OEBPS/Ü bung.xhtml".encode(),
    "with letters taken apart": "OEBPS/U\u0308 bung.xhtml".encode(),
    "in small letters": "oebps/ü bung.xhtml".encode(),
    "as Windows writes it": "OEBPS\\Ü bung.xhtml".encode(),
}


@pytest.mark.parametrize("how", SPELLINGS)
def test_a_page_is_found_by_other_spellings_of_its_name(how: str) -> None:
    name, place = SPELLINGS[how], "OEBPS/Ü bung.xhtml"
    with ZipFile(io.BytesIO(epub({"Ü bung.xhtml": "<p>It rained.</p>"}))) as archive:
        files = {each: archive.read(each) for each in archive.namelist()}
    files["x" * len(name)] = files.pop(place)
    renamed = zipped(files).replace(b"x" * len(name), name)
    assert lines(imported("a.epub", renamed)) == ["It rained."]
