"""EPUB, DOCX and PDF as scripts: text in order, chapters from headings, nothing left over."""

from __future__ import annotations

from io import BytesIO
from zipfile import ZipFile

import pytest

from engine import InvalidText
from studio.imports.reader import imported
from studio.scripts import Script
from tests.studio.imports.books.book_makers import WORD, docx, epub, paragraph, pdf, zipped
from tests.support.script_makers import script_of_file

NCX = (
    '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>The last '
    'one</text></navLabel><content src="c.xhtml#top"/></navPoint></navMap></ncx>'
)


def lines_of(script: Script) -> list[tuple[str, str, str]]:
    return [(script.chapters[line.chapter], line.speaker, line.text) for line in script.lines]


def test_a_book_is_read_in_the_order_of_its_spine() -> None:
    pages = {
        "b b.xhtml": "<h1>Chapter 1</h1>\n<h2>The <em>Storm</em></h2><p>It rained\nfor a&nbsp;"
        "week<a epub:type='noteref' href='#n'>1</a>.</p><script>alert(1)</script><nav>No</nav>"
        "<p>“Who is there?” she asked.<br/>Nobody.</p>",
        "c.xhtml": "<p>Anna: Come in, it is late.</p><p>Ben: I am coming.</p>"
        "<p>Anna: Good, <ruby>漢<rt>han</rt></ruby> it is.</p>",
    }
    book = epub(pages, {"OEBPS/toc.ncx": NCX})
    assert lines_of(script_of_file("Book.EPUB", book)) == [
        ("Chapter 1. The Storm", "", "Chapter 1. The Storm"),
        ("Chapter 1. The Storm", "", "It rained for a week."),
        ("Chapter 1. The Storm", "", "“Who is there?” she asked."),
        ("Chapter 1. The Storm", "", "Nobody."),
        ("The last one", "Anna", "Come in, it is late."),
        ("The last one", "Ben", "I am coming."),
        ("The last one", "Anna", "Good, 漢 it is."),
    ]


def test_an_empty_heading_is_no_title() -> None:
    script = script_of_file("a.epub", epub({"a.xhtml": '<div><h2 id="x"/>It rained.</div>'}))
    assert lines_of(script) == [("", "", "It rained.")]


@pytest.mark.parametrize(
    ("declared", "codec"),
    [("encoding = 'windows-1252'", "cp1252"), ('encoding="Latin1"', "latin-1"),
     ('encoding="iso-8859-12"', "utf-8")],
)  # fmt: skip
def test_a_page_is_read_in_the_encoding_that_it_declares(declared: str, codec: str) -> None:
    page = f"<?xml version='1.0' {declared}?><html><body><p>Grüße.</p></body></html>"
    book = epub({"a.xhtml": ""}, {"OEBPS/a.xhtml": page.encode(codec)})
    assert lines_of(script_of_file("a.epub", book)) == [("", "", "Grüße.")]


def test_a_copy_protected_book_is_refused_in_words() -> None:
    locked = '<encryption><CipherReference URI="OEBPS/a.xhtml"/></encryption>'
    with pytest.raises(InvalidText, match="copy-protected"):
        script_of_file("a.epub", epub({"a.xhtml": "x"}, {"META-INF/encryption.xml": locked}))


def test_a_word_document_has_its_headings_as_chapters_and_no_deleted_text() -> None:
    body = (
        paragraph("One &amp; all", "berschrift1")
        + "<w:p><w:r><w:t>It was late</w:t></w:r><w:del><w:r><w:delText>never</w:delText>"
        "<w:t>gone</w:t></w:r></w:del><w:r><w:tab/><w:t>and dark.</w:t></w:r></w:p>"
        + paragraph("Anna: Who is it?")
        + paragraph("Ben: It is me.")
        + paragraph("Anna: Come in.")
        + '<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>Two</w:t></w:r></w:p>'
        + paragraph("The end.")
    )
    assert lines_of(script_of_file("a.docx", docx(body))) == [
        ("One & all", "", "One & all"),
        ("One & all", "", "It was late and dark."),
        ("One & all", "Anna", "Who is it?"),
        ("One & all", "Ben", "It is me."),
        ("One & all", "Anna", "Come in."),
        ("Two", "", "Two"),
        ("Two", "", "The end."),
    ]


def test_a_pdf_has_paragraphs_without_page_numbers_heads_and_divided_words() -> None:
    page = [
        "The Book of Rain",
        "Chapter one",
        "It had been raining for a whole week when the light-",
        "house keeper saw the ship that he had been waiting for,",
        "and ran down the stairs at once.",
        "It was too late.",
        "Nobody who had been on board could tell them afterwards what",
    ]
    more = ["The Book of Rain", "had happened there that night.", "2"]
    last = ["The Book of Rain", "And that was all that anyone ever said about it.", "- 3 -"]
    script = script_of_file("a.pdf", pdf([page, more, last], {0: "Chapter one"}))
    assert [text for *_, text in lines_of(script)] == [
        "Chapter one",
        "It had been raining for a whole week when the lighthouse keeper saw the ship that he had "
        "been waiting for, and ran down the stairs at once.",
        "It was too late.",
        "Nobody who had been on board could tell them afterwards what had happened there that "
        "night.",
        "And that was all that anyone ever said about it.",
    ]
    assert script.chapters == ("Chapter one",)


@pytest.mark.parametrize("contents", [{}, {"OEBPS/toc.ncx": NCX}])
def test_a_book_of_pictures_says_what_to_do(contents: dict[str, str]) -> None:
    pages = dict.fromkeys(("a.xhtml", "c.xhtml"), "<img src='page.png' alt=''/>")
    for name, book in (("a.epub", epub(pages, contents)), ("a.docx", docx(""))):
        with pytest.raises(InvalidText, match="If its pages are pictures"):
            script_of_file(name, book)


def test_a_pdf_of_pictures_and_a_locked_one_say_what_to_do() -> None:
    with pytest.raises(InvalidText, match="pictures of text"):
        script_of_file("a.pdf", pdf([[""]]))
    locked = pdf([["Hello."]]).replace(b"/Root 1 0 R", b"/Root 1 0 R /Encrypt 9 0 R")
    with pytest.raises(InvalidText, match=r"damaged|password"):
        script_of_file("a.pdf", locked)


@pytest.mark.parametrize("kind", ["epub", "docx", "pdf"])
@pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + bytes(18), b"%PDF-1.7 nothing", b"text"])
def test_what_is_no_book_is_refused(kind: str, data: bytes) -> None:
    with pytest.raises(InvalidText, match="damaged"):
        script_of_file(f"a.{kind}", data)


def test_a_book_without_text_is_refused() -> None:
    with pytest.raises(InvalidText, match="No text was found"):
        script_of_file("a.epub", epub({"a.xhtml": "<p> </p>"}))
    with pytest.raises(InvalidText, match="damaged"):
        script_of_file("a.docx", zipped({"other.xml": "<a/>"}))


def test_a_document_is_found_where_its_package_says() -> None:
    """Word on the web writes document2.xml, with styles and notes beside it."""
    relation = (
        '<Relationship Id="r" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/{}" Target="{}"/>'
    )
    usual = docx(
        paragraph("One", "berschrift1") + paragraph("Two.") + paragraph("3", "berschrift1")
    )
    with ZipFile(BytesIO(usual)) as archive:
        document, styles = map(archive.read, ("word/document.xml", "word/styles.xml"))
    moved = zipped(
        {
            "_rels/.rels": f"<R>{relation.format('officeDocument', '/word/document2.xml')}</R>",
            "word/_rels/document2.xml.rels": f"<R>{relation.format('styles', 'styles2.xml')}</R>",
            "word/document2.xml": document,
            "word/styles2.xml": styles,
        }
    )
    read = script_of_file("a.docx", moved)
    assert read == script_of_file("a.docx", usual)
    assert read.chapters == ("One", "3")


@pytest.mark.parametrize(
    "run",
    [
        "<w:ruby><w:rt><w:r><w:t>にほん</w:t></w:r></w:rt><w:rubyBase><w:r>"
        "<w:t>日本</w:t></w:r></w:rubyBase></w:ruby>",
        "<w:t>日本</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>not</w:t></w:r><w:r>",
    ],
    ids=["ruby", "hidden"],
)
def test_what_word_does_not_show_in_the_line_is_not_spoken(run: str) -> None:
    body = f"<w:p><w:r><w:t>私は</w:t></w:r><w:r>{run}</w:r><w:r><w:t>に行く。</w:t></w:r></w:p>"
    assert lines_of(script_of_file("a.docx", docx(body))) == [("", "", "私は日本に行く。")]


def test_what_libreoffice_writes_has_no_contents_and_boxes_are_lines_of_their_own() -> None:
    body = (
        '<w:sdt><w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/></w:docPartObj>'
        f"</w:sdtPr><w:sdtContent>{paragraph('Contents')}</w:sdtContent></w:sdt>"
        "<w:p><w:r><w:t>Before.</w:t></w:r><w:r><w:drawing><w:txbxContent>"
        f"{paragraph('In a box.')}</w:txbxContent></w:drawing></w:r></w:p>"
    )
    read = imported("a.docx", BytesIO(docx(body)))
    assert [line.text for line in read.script.lines] == ["Before.", "In a box."]
    assert [part.kind for part in read.left_out] == ["contents"]


@pytest.mark.parametrize("kind", ["epub", "docx"])
def test_raised_figures_are_no_part_of_the_number_before_them(kind: str) -> None:
    page = "<p>About 10<sup>6</sup> cells, 10<sup>−9</sup> m.</p>"
    raised = "<w:r><w:rPr><w:{}/></w:rPr><w:t>{}</w:t></w:r>".format
    signs = 'vertAlign w:val="superscript"', 'position w:val="8"'
    run = "<w:r><w:t>{}</w:t></w:r>".format
    body = (
        f"<w:p>{run('About 10')}{raised(signs[0], 6)}{run(' cells, 10')}{raised(signs[1], '−9')}"
        f"{run(' m.')}</w:p>"
    )
    data = epub({"a.xhtml": page}) if kind == "epub" else docx(body)
    (line,) = script_of_file(f"a.{kind}", data).lines
    assert line.text == "About 10⁶ cells, 10⁻⁹ m."


def test_a_note_of_the_normal_type_is_a_note() -> None:
    body = '<w:p><w:r><w:t>Text.</w:t><w:footnoteReference w:id="2"/></w:r></w:p>'
    notes = (
        f'<w:footnotes xmlns:w="{WORD}"><w:footnote w:type="separator" w:id="0"/><w:footnote '
        f'w:type="normal" w:id="2">{paragraph("A note.")}</w:footnote></w:footnotes>'
    )
    read = imported("a.docx", BytesIO(docx(body, {"word/footnotes.xml": notes})))
    assert [part.text for part in read.left_out] == ["A note."]


CHANGED = {  # what Word keeps of the form before a tracked change
    "a heading": '<w:p><w:pPr><w:pPrChange w:id="1"><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr>'
    "</w:pPrChange></w:pPr><w:r><w:t>It was late.</w:t></w:r></w:p>",
    "hidden": '<w:p><w:r><w:rPr><w:rPrChange w:id="1"><w:rPr><w:vanish/></w:rPr></w:rPrChange>'
    "</w:rPr><w:t>It was late.</w:t></w:r></w:p>",
}


@pytest.mark.parametrize("was", CHANGED)
def test_what_a_paragraph_was_before_a_tracked_change_is_nothing(was: str) -> None:
    body = paragraph("One", "berschrift1") + CHANGED[was] + paragraph("Two", "berschrift1")
    script = script_of_file("a.docx", docx(body + paragraph("The end.")))
    assert lines_of(script)[1] == ("One", "", "It was late.")
    assert script.chapters == ("One", "Two")


def test_a_style_is_a_heading_by_its_level_or_by_the_style_that_it_is_based_on() -> None:
    styles = (
        f'<w:styles xmlns:w="{WORD}"><w:style w:styleId="H"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="A"><w:name w:val="Chapter Title"/><w:basedOn w:val="H"/></w:style>'
        '<w:style w:styleId="B"><w:name w:val="Kapitel"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr>'
        '</w:style><w:style w:styleId="C"><w:name w:val="Body"/><w:basedOn w:val="H"/><w:pPr>'
        '<w:outlineLvl w:val="9"/></w:pPr></w:style>'
        '<w:style w:styleId="T"><w:name w:val="Title"/></w:style>'
        '<w:style w:styleId="S"><w:name w:val="Subtitle"/><w:basedOn w:val="T"/></w:style>'
        '<w:style w:styleId="L1"><w:basedOn w:val="L2"/></w:style>'
        '<w:style w:styleId="L2"><w:basedOn w:val="L1"/></w:style></w:styles>'
    )
    body = (
        paragraph("The Book", "T") + paragraph("A story", "S")
        + paragraph("The Storm", "A") + paragraph("It rained.", "C")
        + paragraph("The Sun", "B") + paragraph("It shone.", "L1")
    )  # fmt: skip
    script = script_of_file("a.docx", docx(body, {"word/styles.xml": styles}))
    assert script.chapters == ("The Book", "The Storm", "The Sun")


def test_a_box_in_a_heading_is_text_and_the_heading_one() -> None:
    box = f"<w:r><w:pict><w:txbxContent>{paragraph('In a box.')}</w:txbxContent></w:pict></w:r>"
    before, after = paragraph("One", "berschrift1"), paragraph("Two", "berschrift1")
    body = before.replace("<w:r>", f"{box}<w:r>") + paragraph("It was late and it rained.")
    body += after.replace("</w:r>", f"</w:r>{box}")
    assert lines_of(script_of_file("a.docx", docx(body))) == [
        ("", "", "In a box."),
        ("One", "", "One"), ("One", "", "It was late and it rained."),
        ("Two", "", "Two"), ("Two", "", "In a box."),
    ]  # fmt: skip


def test_heads_of_a_pdf_that_have_the_pages_number_are_no_text() -> None:
    """Before: they were read aloud, in the middle of sentences."""
    long = "It was a dark and stormy night when the rain began to fall on the old house, and"
    heads = [f"{n} | THE STORM" if n % 2 else f"A. N. AUTHOR {n}" for n in range(11, 19)]
    pages = [[head, long, f"so it went {place * 'on and '}on"] for place, head in enumerate(heads)]
    text = " ".join(line.text for line in script_of_file("a.pdf", pdf(pages)).lines)
    assert "STORM" not in text
    assert "AUTHOR" not in text
    assert text.count("so it went") == 8


def test_numbered_first_lines_that_are_no_heads_stay() -> None:
    pages = [
        [f"Chapter {n}", f"It was night number {n} of it.", "7 men came."] for n in range(1, 6)
    ]
    pages += [["30 days went by.", "And 2 men came back.", "It is over."]]
    text = " ".join(line.text for line in script_of_file("a.pdf", pdf(pages)).lines)
    for number in range(1, 6):
        assert f"Chapter {number}" in text
    assert text.count("7 men came.") == 0  # it stands on every page, as before
    assert "30 days went by." in text
