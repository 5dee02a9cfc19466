"""Small books in the formats that are imported, written by hand."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from zipfile import ZIP_DEFLATED, ZipFile

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
CONTAINER = (
    '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
)


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with ZipFile(data, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def epub(pages: Mapping[str, str], more: Mapping[str, str] = {}) -> bytes:
    """`pages`: bodies by file name, in order. `more`: other files, by path in the archive."""
    items = "".join(
        f'<item id="i{place}" href="{name}" media-type="application/xhtml+xml"/>'
        for place, name in enumerate(pages)
    )
    order = "".join(f'<itemref idref="i{place}"/>' for place in range(len(pages)))
    ncx = '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    package = (
        f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}{ncx}</manifest>'
        f"<spine>{order}</spine></package>"
    )
    head = (
        '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
        "<head><title>Never read</title><style>p { color: red }</style></head><body>"
    )
    documents = {f"OEBPS/{name}": f"{head}{body}</body></html>" for name, body in pages.items()}
    base = {"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": package}
    return zipped({"mimetype": "application/epub+zip", **base, **documents, **more})


def docx(body: str, more: Mapping[str, str] = {}) -> bytes:
    styles = (
        f'<w:styles xmlns:w="{WORD}"><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/>'
        '</w:style><w:style w:styleId="Standard"><w:name w:val="Normal"/></w:style></w:styles>'
    )
    document = f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    return zipped({"word/document.xml": document, "word/styles.xml": styles, **more})


def paragraph(text: str, style: str = "Standard") -> str:
    return (
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t xml:space="preserve">{text}'
        "</w:t></w:r></w:p>"
    )


def pdf(pages: Sequence[Sequence[str]], outline: Mapping[int, str] = {}) -> bytes:
    """`pages`: lines of text. `outline`: titles by page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>", "", ""]
    objects[2] = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    first = 5  # the number of the first page; 4 is the outline
    kids = " ".join(f"{first + 2 * place} 0 R" for place in range(len(pages)))
    objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"
    entries = first + 2 * len(pages)
    last = entries + len(outline) - 1
    tree = f"/First {entries} 0 R /Last {last} 0 R /Count {len(outline)}" if outline else ""
    objects.append(f"<< /Type /Outlines {tree} >>")
    for lines in pages:
        content = "BT /F1 12 Tf 14 TL 50 780 Td " + " T* ".join(f"({line}) Tj" for line in lines)
        content += " ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents "
            f"{len(objects) + 2} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    for place, (page, title) in enumerate(outline.items()):
        before = f"/Prev {entries + place - 1} 0 R" if place else ""
        after = f"/Next {entries + place + 1} 0 R" if entries + place < last else ""
        target = f"/Dest [{first + 2 * page} 0 R /Fit]"
        objects.append(f"<< /Title ({title}) /Parent 4 0 R {target} {before} {after} >>")
    return _numbered(objects)


def _numbered(objects: Sequence[str]) -> bytes:
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{each}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n"
    end = f"<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + (head + end).encode()
