"""Downloads of takes, encoded on request.

A take's id cannot be guessed and is the permission to download it.
"""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response, StreamingResponse

from engine import SOUND_FORMATS, RequestError
from studio.ranged_response import RecentSounds, ranged_response
from studio.takes.take_store import Take, Takes

PATH = "timbre/takes"
MOST = 200  # takes in a .zip
LONGEST = 3600.0  # seconds of them together: 173 MB
PIECE = 1 << 20  # bytes
KEPT = 32 << 20  # bytes of files that were downloaded last


def link(number: str, kind: str) -> str:
    """A relative link, so that it works behind a proxy's prefix."""
    return f"{PATH}/{number}.{kind}"


def router(takes: Takes) -> APIRouter:
    """`GET timbre/takes/{id}.{kind}`, and `.pcm` for the page's player: PCM16, 24 kHz, mono."""
    routes, recent = APIRouter(), RecentSounds(KEPT)

    @routes.get(f"/{PATH}/{{number}}.pcm", include_in_schema=False)
    def samples(
        request: Request, number: str, start: int = Query(0, alias="from", ge=0)
    ) -> Response:
        try:
            pcm = takes.pcm(takes.get(number).id)
        except RequestError as error:
            raise HTTPException(404, str(error)) from error
        content = pcm[start:].astype("<i2", copy=False).tobytes()
        headers = {"Cache-Control": "private"}
        return ranged_response(request, content, "audio/pcm", headers=headers)

    @routes.get(f"/{PATH}.zip", include_in_schema=False)
    def several(number: Annotated[list[str], Query(alias="id", max_length=MOST)]) -> Response:
        try:
            chosen = [takes.get(each) for each in dict.fromkeys(number)]
            if sum(take.seconds for take in chosen) > LONGEST:
                raise HTTPException(413, "These takes are too long for one file. Choose fewer.")
            packed = _packed(takes, chosen)
        except RequestError as error:
            raise HTTPException(404, str(error)) from error
        named = f'attachment; filename="timbre-takes-{len(chosen)}.zip"'
        headers = {"Content-Disposition": named, "Content-Length": str(_size(packed))}
        return StreamingResponse(_pieces(packed), media_type="application/zip", headers=headers)

    @routes.get(f"/{PATH}/{{number}}.{{kind}}", include_in_schema=False)
    def download(request: Request, number: str, kind: str) -> Response:
        # not async: FastAPI runs it in a thread
        if kind not in SOUND_FORMATS:
            raise HTTPException(404, "Takes have no such format.")
        try:
            content = _encoded(takes, number, kind, recent)
        except RequestError as error:
            raise HTTPException(404, str(error)) from error
        name = quote(f"{file_name(takes.get(number))}.{kind}")
        named = f"attachment; filename=\"timbre-{number}.{kind}\"; filename*=UTF-8''{name}"
        headers = {"Content-Disposition": named, "Cache-Control": "private, no-cache"}
        return ranged_response(request, content, SOUND_FORMATS[kind].media_type, headers=headers)

    return routes


def file_name(take: Take) -> str:
    """A file name: the beginning of the text, and the voice: `Where-have-you-been-Clara`."""
    text = "-".join(re.findall(r"\w+", take.said or take.text))[:48].strip("-_")
    voice = "-".join(re.findall(r"\w+", take.voice))[:24].strip("-_")
    return "-".join(filter(None, (text, voice))) or f"timbre-{take.id}"


def _packed(takes: Takes, chosen: Sequence[Take]) -> IO[bytes]:
    """A .zip on disk with a WAV file of each take, gone when it is closed."""
    packed = tempfile.TemporaryFile()  # noqa: SIM115  # closed when it was sent
    try:
        with zipfile.ZipFile(packed, "w") as pack, tempfile.TemporaryDirectory() as folder:
            for place, take in enumerate(reversed(chosen), 1):  # the list has the newest first
                sound = takes.export(take.id, Path(folder) / "take.wav")
                pack.write(sound, f"{place:02}-{file_name(take)}.wav")
    except BaseException:
        packed.close()
        raise
    return packed


def _size(file: IO[bytes]) -> int:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return size


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE):
            yield piece


def _encoded(takes: Takes, number: str, kind: str, recent: RecentSounds) -> bytes:
    """Kept for a while, since encoders do not make the same file twice."""
    take = takes.get(number)
    content = recent.get((take.id, kind))
    if content is None:
        with tempfile.TemporaryDirectory() as folder:
            content = takes.export(take.id, Path(folder) / f"take.{kind}").read_bytes()
        recent.add((take.id, kind), content)
    return content
