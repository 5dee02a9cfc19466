"""Project files on their way in: streamed to disk under a limit of their own.

A long project is larger than anything else that the page takes. What arrives is bytes until
`import_project` has checked them: they lie under a token that only the sender knows, for one import
or a few minutes, and few lie there at a time. Knows no pages.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request
from starlette.requests import ClientDisconnect

from engine import RequestError
from studio.imports.archives import DAMAGED
from studio.scripts.project_files import MOST_AUDIO, MOST_PARTS
from studio.scripts.projects import MAX_BYTES

PATH = "timbre/projects"
MOST_FILE = MAX_BYTES + MOST_AUDIO + 512 * MOST_PARTS  # bytes of the largest that can be imported
AT_ONCE = 4  # uploads, one of an address
WAITING = 4  # files that are whole
KEPT = 600.0  # seconds that a file waits for its import
SLOWEST = 32 << 10  # bytes a second, on average
PATIENCE = 30.0  # seconds before that rate is required
SPARE = 512 << 20  # bytes that stay free on the disk
BLOCK = 1 << 20
SUFFIX = ".zip"
BROKEN = "The upload broke off. Try again."
LENGTHLESS = "Say how long the file is."
TOO_LARGE = "The file is too large: at most {most} MB."
BUSY = "Another project is being uploaded. Try again in a minute."
NO_SPACE = "There is not enough space on this server's disk."
TOO_SLOW = "The upload is too slow, or longer than it said."
GONE = "The upload is gone. Choose the file again."


class ProjectUploads:
    """The uploads of one server. `most`: bytes of a file."""

    def __init__(self, folder: Path, most: int = MOST_FILE) -> None:
        self.most = most
        self._folder = folder
        self._sending: set[str] = set()  # addresses
        self._whole: dict[str, float] = {}  # by token: since when
        shutil.rmtree(folder, ignore_errors=True)  # left by a server that was killed

    async def receive(self, body: AsyncIterator[bytes], length: int, address: str) -> str:
        """Write a file to disk; its token. Raises HTTPException; then nothing of it is left."""
        self._check(length, address)
        token = secrets.token_hex(16)
        path = self._folder / f"{token}{SUFFIX}"
        self._sending.add(address)
        try:
            await asyncio.to_thread(self._make_room, length)
            if await _written(path, body, length) != length:
                raise HTTPException(400, BROKEN)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            self._sending.discard(address)
        self._whole[token] = time.monotonic()
        return token

    @contextmanager
    def opened(self, token: str) -> Iterator[Path]:
        """The file of a token, once; it is gone afterwards. Raises RequestError."""
        if self._whole.pop(token, None) is None:
            raise RequestError(GONE)
        path = self._folder / f"{token}{SUFFIX}"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def router(self) -> APIRouter:
        """`POST timbre/projects` with the file as its body; returns `{"token": …}`."""
        routes = APIRouter()

        @routes.post(f"/{PATH}", include_in_schema=False)
        async def upload(request: Request) -> dict[str, str]:
            length = request.headers.get("content-length", "")
            address = request.client.host if request.client else ""
            if not length.isdecimal():
                raise HTTPException(411, LENGTHLESS)
            return {"token": await self.receive(request.stream(), int(length), address)}

        return routes

    def _check(self, length: int, address: str) -> None:
        if length <= 0:
            raise HTTPException(400, DAMAGED)
        if length > self.most:
            raise HTTPException(413, TOO_LARGE.format(most=self.most >> 20))
        if address in self._sending or len(self._sending) >= AT_ONCE:
            raise HTTPException(429, BUSY)

    def _make_room(self, length: int) -> None:
        """Delete files not imported in time; the disk must have space for the file twice."""
        self._folder.mkdir(parents=True, exist_ok=True)
        oldest = sorted(self._whole, key=self._whole.__getitem__)
        late = [each for each in oldest if time.monotonic() - self._whole[each] > KEPT]
        for token in dict.fromkeys([*late, *oldest[: max(0, len(oldest) - WAITING + 1)]]):
            self._whole.pop(token, None)
            (self._folder / f"{token}{SUFFIX}").unlink(missing_ok=True)
        if shutil.disk_usage(self._folder).free < 2 * length + SPARE:
            raise HTTPException(507, NO_SPACE)


async def _written(path: Path, body: AsyncIterator[bytes], length: int) -> int:
    """Stream a body to a file; the bytes that came. Raises HTTPException if it is too slow."""
    began, count, block = time.monotonic(), 0, bytearray()
    with path.open("xb") as file:
        while piece := await _next(body):
            count += len(piece)
            block += piece
            passed = time.monotonic() - began
            if count > length or (passed > PATIENCE and count < SLOWEST * passed):
                raise HTTPException(408, TOO_SLOW)
            if len(block) >= BLOCK:
                await asyncio.to_thread(file.write, bytes(block))
                block.clear()
        await asyncio.to_thread(file.write, bytes(block))
    return count


async def _next(body: AsyncIterator[bytes]) -> bytes:
    """The next piece; empty at the end, however it came."""
    try:
        while True:
            if piece := await asyncio.wait_for(anext(body), PATIENCE):
                return piece
    except (StopAsyncIteration, ClientDisconnect, asyncio.TimeoutError):
        return b""
