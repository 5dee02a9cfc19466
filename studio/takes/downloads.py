"""Downloads of takes, encoded on request.

A take's id cannot be guessed and is the permission to download it.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from urllib.parse import quote

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

from engine import RequestError
from studio.takes.take_store import Take, Takes

Kind: TypeAlias = Literal["wav", "mp3", "ogg", "flac"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PATH = "timbre/takes"
_MEDIA = {"wav": "audio/wav", "mp3": "audio/mpeg", "ogg": "audio/ogg", "flac": "audio/flac"}


def link(number: str, kind: Kind) -> str:
    """A relative link, so that it works behind a proxy's prefix."""
    return f"{PATH}/{number}.{kind}"


def router(takes: Takes) -> APIRouter:
    """`GET timbre/takes/{id}.{kind}`."""
    routes = APIRouter()

    @routes.get(f"/{PATH}/{{number}}.{{kind}}", include_in_schema=False)
    def download(number: str, kind: Kind) -> Response:  # not async: FastAPI runs it in a thread
        try:
            content = _encoded(takes, number, kind)
        except RequestError as error:
            raise HTTPException(404, str(error)) from error
        name = quote(f"{file_name(takes.get(number))}.{kind}")
        named = f"attachment; filename=\"timbre-{number}.{kind}\"; filename*=UTF-8''{name}"
        return Response(content, media_type=_MEDIA[kind], headers={"Content-Disposition": named})

    return routes


def file_name(take: Take) -> str:
    """How the text begins and who says it: `Where-have-you-been-Clara`."""
    text = "-".join(re.findall(r"\w+", take.text))[:48].strip("-_")
    voice = "-".join(re.findall(r"\w+", take.voice))[:24].strip("-_")
    return "-".join(filter(None, (text, voice))) or f"timbre-{take.id}"


def _encoded(takes: Takes, number: str, kind: Kind) -> bytes:
    take = takes.get(number)
    with tempfile.TemporaryDirectory() as folder:
        return takes.export(take.id, Path(folder) / f"take.{kind}").read_bytes()
