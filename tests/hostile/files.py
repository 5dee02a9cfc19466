"""Files that strangers might send: one unit repeated, with and without what closes it."""

from __future__ import annotations

from tests.studio.imports.books import book_makers as makers

MARKUP = (
    *("<p>x</p>", "<p>", "<", "<!--", "</", "&", "&amp", "&#9", "<a ", "<a b='", "a=a ", "<?"),
    *("<![CDATA[", "<![<!", "<!DOCTYPE ", "<svg>", "<script>", "<h1>x</h1>", "<i></i>", "x "),
)
BOOK_TAILS, DOCUMENT_TAILS = ["", "></body></html>"], ["", "</w:body></w:document>"]


def page(unit: str, size: int, tail: str = "") -> bytes:
    """A book of one page."""
    item = '<item id="i" href="a.xhtml" media-type="application/xhtml+xml"/>'
    package = f'<package><manifest>{item}</manifest><spine><itemref idref="i"/></spine></package>'
    body = f"<html><body><p>Hello there.</p>{unit * (size // len(unit))}{tail}"
    files = {"META-INF/container.xml": makers.CONTAINER, "OEBPS/book.opf": package}
    return makers.zipped({**files, "OEBPS/a.xhtml": body})


def document(unit: str, size: int, tail: str = "") -> bytes:
    body = f"<w:document><w:body><w:p>{unit * (size // len(unit))}{tail}"
    return makers.zipped({"word/document.xml": body})


def project(text: str) -> bytes:
    return makers.zipped({"project.json": text})


def endless_pdf() -> bytes:
    """A thousand pages that all draw the same slow page, which shows next to nothing."""
    line = "x) Tj " + "() Tj " * 5_000 + "(x"  # `pdf` sets the outer parentheses
    kids = " ".join("5 0 R" for _ in range(1_000))
    one = makers.pdf([[line]])
    return one.replace(b"/Kids [5 0 R] /Count 1", f"/Kids [{kids}] /Count 1000".encode())
