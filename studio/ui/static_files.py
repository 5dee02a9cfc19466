"""The page's JavaScript modules and style sheets: their addresses, and the route that serves them.

The files of FOLDERS are read once. Their address holds a digest of all of them, so browsers keep
them for good, and imports between modules are relative, as on disk. Knows no component.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response

from studio.accepted_coding import takes_gzip

ROOT: Final = Path(__file__).parent
FOLDERS: Final = ("static", "gradio_compat")
TYPES: Final = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
PREFIX: Final = "timbre/static"
ENTRY: Final = "static/page.js"
EARLY: Final = "gradio_compat/early.js"
HIDDEN: Final = ".timbre-opening gradio-app * { visibility: hidden !important; }"  # see opening.js
FOR_GOOD: Final = "public, max-age=31536000, immutable"


def _read() -> Iterator[tuple[str, bytes]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in TYPES:
                yield path.relative_to(ROOT).as_posix(), path.read_bytes()


FILES: Final[Mapping[str, bytes]] = dict(_read())
DIGEST: Final = blake2b(repr(FILES).encode(), digest_size=8).hexdigest()


def address(name: str) -> str:
    """Relative to the page, as a proxy may serve it under a prefix. Raises KeyError."""
    if name not in FILES:
        raise KeyError(name)
    return f"{PREFIX}/{DIGEST}/{name}"


def script() -> str:
    """The elements that run the page's modules, and what must run before they have come."""
    early = f"<style>{HIDDEN}</style><script>{FILES[EARLY].decode()}</script>"
    return f'{early}<script type="module" src="{address(ENTRY)}"></script>'


def preloads() -> str:
    """Elements that have a browser load all modules at once, not one after the other."""
    return "".join(
        f'<link rel="modulepreload" href="{address(name)}">'
        for name in FILES
        if name.endswith(".js") and name not in NOT_MODULES
    )


# Bodies of functions that Gradio calls, and what only the audio thread imports.
NOT_MODULES: Final = frozenset(
    (EARLY, "gradio_compat/on_load.js", "gradio_compat/on_event.js", "static/player/worklet.js")
)


@cache
def _packed(name: str) -> bytes:
    return gzip.compress(FILES[name], mtime=0)


def router() -> APIRouter:
    """`GET timbre/static/{digest}/{name}`. Needs no login: the files are the same for everybody."""
    routes = APIRouter()

    @routes.get(f"/{PREFIX}/{{digest}}/{{name:path}}", include_in_schema=False)
    def static(digest: str, name: str, request: Request) -> Response:
        if digest != DIGEST or name not in FILES:
            raise HTTPException(404, "There is no such file. Reload the page.")
        headers = {"Cache-Control": FOR_GOOD, "Vary": "Accept-Encoding"}
        content = FILES[name]
        if takes_gzip(request.headers):
            content, headers["Content-Encoding"] = _packed(name), "gzip"
        return Response(content, media_type=TYPES[Path(name).suffix], headers=headers)

    return routes
