"""Hostile files through a running server: refused in words, while it answers as ever.

Each unit of a format is repeated up to the largest size that is read, with and without what closes
it. Few files are small: what is packed may be.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.import_target import ImportTarget, Watch, import_target
from tests.studio.imports import book_makers as makers

MEGABYTES = 300  # that all processes together may grow by
SLOWEST = 0.25  # seconds for the 99th of a hundred answers of /health, on a quiet machine
BUSY = 8  # times that, where the machine is not
MIB = 1 << 20


def page(unit: str, size: int, tail: str) -> bytes:
    item = '<item id="i" href="a.xhtml" media-type="application/xhtml+xml"/>'
    package = f'<package><manifest>{item}</manifest><spine><itemref idref="i"/></spine></package>'
    body = f"<html><body><p>Hello there.</p>{unit * (size // len(unit))}{tail}"
    files = {"META-INF/container.xml": makers.CONTAINER, "OEBPS/book.opf": package}
    return makers.zipped({**files, "OEBPS/a.xhtml": body})


def document(unit: str, size: int, tail: str) -> bytes:
    body = f"<w:document><w:body><w:p>{unit * (size // len(unit))}{tail}"
    return makers.zipped({"word/document.xml": body})


def project(text: str) -> bytes:
    return makers.zipped({"project.json": text})


def endless_pdf() -> bytes:
    """A thousand pages that all draw the same slow page."""
    lines = "(x) Tj " * 12_000
    kids = " ".join("5 0 R" for _ in range(1_000))
    one = makers.pdf([[lines]])
    return one.replace(b"/Kids [5 0 R] /Count 1", f"/Kids [{kids}] /Count 1000".encode())


QUICK = {
    "comments.epub": page("<!--", 40 * MIB, ""),
    "nested.docx": document("<a>", 90 * MIB, ""),
    "comment.docx": document("<!--" + "x" * MIB, 90 * MIB, ""),
    "unknown.zip": project('{"x":[' + "{}," * 20_000_000 + "{}]}"),
    "deep.zip": project("[" * 20_000_000),
    "slow.pdf": endless_pdf(),
}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImportTarget]:
    with import_target(tmp_path_factory.mktemp("studio")) as own:
        assert own.send("first.md", b"Hello there.") == "imported"
        yield own


def attack(target: ImportTarget, name: str, data: bytes) -> str:
    before = target.megabytes()
    with Watch(target) as watch:
        told = target.send(name, data)
    waits = sorted(watch.waits)
    slowest = waits[len(waits) * 99 // 100]
    print(f"\n{name}: {told[:60]!r}, {slowest * 1e3:.0f} ms, {watch.megabytes - before} MB")
    assert watch.megabytes - before < MEGABYTES
    assert slowest < BUSY * SLOWEST
    return told


def test_what_stopped_the_server_is_refused(target: ImportTarget) -> None:
    for name in ("comments.epub", "unknown.zip"):
        told = attack(target, name, QUICK[name])
        assert told == "imported" or told[-1] in ".!"
    assert target.send("after.md", b"Hello there.") == "imported"


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_each_of_the_worst(target: ImportTarget, name: str) -> None:
    assert attack(target, name, QUICK[name])


CLOSED_BOOK, CLOSED_DOCUMENT = ["", "></body></html>"], ["", "</w:body></w:document>"]
UNITS = (
    *("<p>x</p>", "<p>", "<", "<!--", "</", "&", "&amp", "&#9", "<a ", "<a b='", "a=a ", "<?"),
    *("<![CDATA[", "<![<!", "<!DOCTYPE ", "<svg>", "<script>", "<h1>x</h1>", "<i></i>", "x "),
)


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "tail"), [*itertools.product(UNITS, CLOSED_BOOK)])
def test_each_unit_of_a_book(target: ImportTarget, unit: str, tail: str) -> None:
    attack(target, "a.epub", page(unit, 40 * MIB, tail))


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "tail"), [*itertools.product(UNITS, CLOSED_DOCUMENT)])
def test_each_unit_of_a_document(target: ImportTarget, unit: str, tail: str) -> None:
    attack(target, "a.docx", document(unit, 90 * MIB, tail))


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["{},", "[", '"a",', "1", "1,", '{"a":', '\\"', "null,"])
def test_each_unit_of_a_project(target: ImportTarget, unit: str) -> None:
    for text in ('{"x":[' + unit * (31 * MIB // len(unit)), unit * (60 * MIB // len(unit))):
        assert "imported" not in attack(target, "a.zip", project(text))


def test_lines_of_a_project_are_counted(target: ImportTarget, tmp_path: Path) -> None:
    line = {"id": 0, "text": "x"}
    lines = [{**line, "id": number} for number in range(20_001)]
    text = json.dumps({"script": {"lines": lines}, "casting": {"default": "ryan"}})
    assert "imported" not in target.send("a.zip", project(text))
