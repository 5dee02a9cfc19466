"""Gradio's scripts and styles: mended in one place, compressed once, kept, and announced in the
page's head.

A page loads about a hundred. Gradio compresses each of them for each visit and lets no browser keep
them, and the browser learns of most only when others have run. Their names hold a hash of their
content, so they never change. Knows the folder that Gradio comes with, and no tabs.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import gradio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.accepted_coding import takes_gzip
from studio.ui.gradio_compat.script_mends import mended

FOLDER: Final = Path(gradio.__file__).parent / "templates" / "frontend" / "assets"
ROUTE: Final = "/assets/"
TYPES: Final = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
FOR_GOOD: Final = "public, max-age=31536000, immutable"
ASK: Final = "public, no-cache"  # kept too, but only while the version is the same
# Components that a page shows first; others load theirs when they are needed.
KINDS: Final = re.compile(
    "accordion|button|checkbox|column|dropdown|form|group|html|markdown|number|row|slider|state|"
    "tabitem|tabs|textbox"
)
# The links are inserted after this element: their addresses are relative to it.
_BASE = re.compile(rb"<base [^>]*>")
# With a number behind it where two names were one but for the case of their letters.
_HASHED = re.compile(r"[\w.-]+-[\w-]{8}\d?\.(js|css)")
# How Vite writes a script's list of files, and an import that waits for some of them.
_FILES = re.compile(r"m\.f=\[([^\]]*)\]")
_LATER = r"import\(`\./([\w.-]+)`\).{0,40}?,__vite__mapDeps\(\[([\d,]*)\]\)"
_COMPONENT = re.compile(rf"(\w+):\{{[^{{}}]*?component:\(\)=>\w+\(\(\)=>{_LATER}")


@dataclass(frozen=True)
class _Asset:
    """`version`: of a mended file, which a browser asks for each time; empty: kept for good."""

    body: bytes
    version: str


_KEPT: Final[dict[Path, _Asset]] = {}  # 4 MB if all are requested


class PageAssets:
    """Middleware. `head`: more HTML for the head of the page, after the links to these files."""

    def __init__(self, app: ASGIApp, folder: Path = FOLDER, head: str = "") -> None:
        self._app = app
        self._files = {each.name: each for each in folder.iterdir() if _HASHED.fullmatch(each.name)}
        known = (each for each in opening(folder) if each in self._files)
        self._links = links(known) + head.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self._app(scope, receive, send)
        if scope["path"] == "/":
            return await self._app(scope, receive, _Announced(send, self._links).send)
        folder, _, name = scope["path"].rpartition("/")
        headers = Headers(scope=scope)
        if not takes_gzip(headers) or f"{folder}/" != ROUTE or name not in self._files:
            return await self._app(scope, receive, send)
        path, known = self._files[name], headers.get("if-none-match", "")
        if path not in _KEPT:
            _KEPT[path] = await asyncio.to_thread(_packed, path)
        return await _answer(send, name, _KEPT[path], known)


def opening(folder: Path) -> list[str]:
    """The files that a page loads while it opens, as far as Gradio's scripts list them."""
    try:
        page = (folder.parent / "index.html").read_text(encoding="utf-8")
        first = re.findall(r'"\./assets/([\w.-]+\.(?:js|css))"', page)
        then = [name for entry in first for _, files in _later(folder / entry) for name in files]
        more = [name for each in then for name in _shown(folder / each)]
    except (OSError, ValueError, IndexError):  # another version of Gradio has another form
        return []
    return list(dict.fromkeys([*first, *then, *more]))


def links(names: Iterable[str]) -> bytes:
    """The `link` elements that announce these files."""
    kinds = {"js": 'rel="modulepreload"', "css": 'rel="preload" as="style"'}
    return "".join(
        f'<link {kinds[name.rpartition(".")[2]]} crossorigin href=".{ROUTE}{name}">'
        for name in names
    ).encode()


def _shown(script: Path) -> Iterator[str]:
    """Files that a script imports for the page itself and for components that are shown first."""
    for chunk, files in _later(script):
        if chunk.startswith("Blocks-"):
            yield from files
    text, files = _read(script)
    for kind, _, places in _COMPONENT.findall(text):
        if KINDS.fullmatch(kind):
            yield from (files[int(place)] for place in places.split(",") if place)


def _later(script: Path) -> Iterator[tuple[str, list[str]]]:
    """The dynamic imports of a script: the imported script, and all files that it needs."""
    text, files = _read(script)
    for chunk, places in re.findall(_LATER, text):
        yield chunk, [files[int(place)] for place in places.split(",") if place]


def _read(script: Path) -> tuple[str, list[str]]:
    if script.suffix != ".js":
        return "", []
    text = script.read_text(encoding="utf-8")
    found = _FILES.search(text)
    return text, re.findall(r'"\./([^"]+)"', found[1]) if found else []


def _packed(path: Path) -> _Asset:
    plain = path.read_bytes()
    better = mended(plain)
    version = f'"{hashlib.sha256(better).hexdigest()[:16]}"' if better != plain else ""
    return _Asset(gzip.compress(better, mtime=0), version)


async def _answer(send: Send, name: str, asset: _Asset, known: str) -> None:
    same = bool(asset.version) and asset.version in known
    headers = {
        "content-type": TYPES[name.rpartition(".")[2]],
        "content-encoding": "gzip",
        "content-length": str(len(asset.body)),
        "cache-control": FOR_GOOD,
        "vary": "Accept-Encoding",
    }
    if asset.version:
        headers |= {"cache-control": ASK, "etag": asset.version}
    if same:
        headers = {key: headers[key] for key in ("cache-control", "vary", "etag")}
    raw = [(key.encode(), value.encode()) for key, value in headers.items()]
    status = 304 if same else 200
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": b"" if same else asset.body})


class _Announced:
    """Adds links to the head of a page of known length; other responses pass unchanged."""

    def __init__(self, send: Send, links: bytes) -> None:
        self._send, self._links = send, links
        self._held: Message | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            if "content-length" in headers and "text/html" in headers.get("content-type", ""):
                self._held = message
                return None
        elif self._held is not None:
            start, self._held = self._held, None
            body, headers = message.get("body", b""), MutableHeaders(raw=start["headers"])
            if base := _BASE.search(body, 0, 4096):
                whole = body[: base.end()] + self._links + body[base.end() :]
                message = {**message, "body": whole}
                length = int(headers["content-length"]) + len(self._links)
                headers["content-length"] = str(length)
                start["headers"] = headers.raw
            await self._send(start)
        return await self._send(message)
