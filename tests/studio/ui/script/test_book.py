"""A book in the Script tab: what it says of itself, what is left out, what an export has of it."""

from __future__ import annotations

import io

import av
import pytest
from PIL import Image

from studio.imports.cover import is_jpeg
from studio.scripts.export.script_files import ExportOptions, export, save_project
from studio.ui.tabs.script.handlers import ScriptTab
from tests.studio.imports.books.book_makers import docx, paragraph
from tests.studio.imports.books.test_real_books import book, toc
from tests.support.script_tab_makers import act, html, page, spoken
from tests.support.tab_makers import make_studio

METADATA = (
    "<dc:title>The Key &amp; the Door</dc:title><dc:creator>Ann Doe</dc:creator>"
    "<dc:language>en-GB</dc:language>"
)
PAGES = {
    "c.xhtml": '<section epub:type="copyright-page"><p>All rights &lt;reserved&gt;.</p></section>',
    "a.xhtml": '<h1>One</h1><p>It rained<a epub:type="noteref" href="#n">1</a>.</p>'
    '<aside epub:type="footnote" id="n">For a week.</aside>',
    "b.xhtml": "<h1>Two</h1><p>It was over.</p>",
}


@pytest.fixture
def opened(tmp_path):
    drawn = io.BytesIO()
    Image.new("RGB", (60, 80), (200, 30, 30)).save(drawn, "PNG")
    contents = toc(("a.xhtml", "One"), ("b.xhtml", "Two"))
    path = tmp_path / "file.epub"
    path.write_bytes(book(PAGES, contents, METADATA, {"OEBPS/c.png": drawn.getvalue()}))
    studio = make_studio(tmp_path / "studio")
    with studio.engine:
        tab = ScriptTab(studio)
        tab.receive(str(path), "")
        yield tab, tab.store.listed()[0][1], tmp_path


def texts(tab, number):
    return [line.text for line in tab.store.open(number).script.lines]


def test_a_book_has_its_own_title_and_language_and_shows_what_was_left_out(opened):
    tab, number, _ = opened
    project = tab.store.open(number).project
    assert project.title == "The Key & the Door"
    assert project.delivery.language == "english"
    shown = html(page(tab, number).lines)
    for each in (
        "Ann Doe",
        "English",
        "Notes (1)",
        "Copyright pages",
        "For a week.",
        "&lt;reserved&gt;",
    ):
        assert each in shown
    assert texts(tab, number) == ["One", "It rained.", "Two", "It was over."]


def test_what_was_left_out_is_taken_in_one_by_one_or_by_kind_and_taken_back(opened):
    tab, number, _ = opened
    shown = html(page(tab, number).lines)
    key = shown.split("For a week.")[1].split('data-part="')[1].split('"')[0]
    act(tab, number, do="take-in", part=key)
    assert texts(tab, number) == ["One", "It rained.", "For a week.", "Two", "It was over."]
    with pytest.warns(UserWarning, match="read already"):
        act(tab, number, do="take-in", part=key)
    act(tab, number, do="take-in", part="copyright")
    assert texts(tab, number)[0] == "All rights <reserved>."
    act(tab, number, do="undo")
    act(tab, number, do="undo")
    assert texts(tab, number) == ["One", "It rained.", "Two", "It was over."]
    act(tab, number, do="forget-parts")
    assert not tab.store.open(number).project.left_out


@pytest.mark.parametrize("kind", ["m4b", "mp3"])
def test_an_export_has_author_language_cover_and_the_books_chapters(opened, kind):
    tab, number, folder = opened
    spoken(tab, number, aloud=False)
    path = export(tab.store.open(number), ExportOptions(kind), folder, lambda *_: None)[0]
    with av.open(str(path)) as file:
        tags = file.metadata
        assert (tags["title"], tags["artist"]) == ("The Key & the Door", "Ann Doe")
        assert "eng" in (tags.get("language"), file.streams.audio[0].metadata.get("language"))
        assert [each["metadata"]["title"] for each in file.chapters()] == ["One", "Two"]
        assert is_jpeg(bytes(next(file.demux(file.streams.video[0]))))


def test_a_saved_project_keeps_cover_author_and_what_was_left_out(opened):
    tab, number, folder = opened
    first = tab.store.open(number)
    tab.receive(str(save_project(tab.store, number, folder)), "")
    again = tab.store.open(tab.store.listed()[0][1])
    assert again.number != number
    assert (again.project.book, again.project.left_out) == (
        first.project.book,
        first.project.left_out,
    )
    assert again.cover is not None
    assert is_jpeg(again.cover.read_bytes())


def test_a_language_that_nobody_here_speaks_is_told_before_it_is_spoken(tmp_path):
    studio = make_studio(tmp_path / "studio")
    dutch = "Het was een mooie dag, en de zee was niet koud. Wij zijn naar het strand gegaan."
    with studio.engine:
        tab = ScriptTab(studio)
        for text, each in ((dutch, True), ("The sea was calm, and that was all.", False)):
            path = tmp_path / "text.txt"
            path.write_text(text)
            tab.receive(str(path), "")
            newest = tab.store.listed()[0][1]
            assert ("No model here speaks this language" in html(page(tab, newest).lines)) is each


def test_a_book_says_its_language_whatever_its_first_pages_say(tmp_path):
    contents = toc(("a.xhtml", "One"))
    path = tmp_path / "file.epub"
    pages = {"a.xhtml": "<h1>Debian</h1><p>Copyright 2023.</p><p>Capítulo.</p>"}
    path.write_bytes(book(pages, contents, "<dc:language>es-MX</dc:language>", {}))
    studio = make_studio(tmp_path / "studio")
    with studio.engine:
        tab = ScriptTab(studio)
        tab.receive(str(path), "")
        shown = html(page(tab, tab.store.listed()[0][1]).lines)
    assert "Spanish" in shown
    assert "No model here speaks this language" in shown


@pytest.mark.parametrize("kind", ["docx", "md"])
def test_any_note_is_read_again_from_a_saved_project(kind, tmp_path):
    note = "A\tnote\u0085 of\u007f it"
    body = '<w:p><w:r><w:t>Text.</w:t><w:footnoteReference w:id="2"/></w:r></w:p>'
    notes = f'<w:footnotes><w:footnote w:id="2">{paragraph(note)}</w:footnote></w:footnotes>'
    files = {
        "docx": docx(body, {"word/footnotes.xml": notes}),
        "md": f"Text.[^1]\n\n[^1]: {note}\n".encode(),
    }
    path = tmp_path / f"file.{kind}"
    path.write_bytes(files[kind])
    studio = make_studio(tmp_path / "studio")
    with studio.engine:
        store = ScriptTab(studio).store
        first = store.receive(path)
        again = store.receive(save_project(store, first.number, tmp_path))
    assert all("\t" not in part.text for part in first.project.left_out)
    assert "note" in first.project.left_out[0].text
    assert again.project.left_out == first.project.left_out
