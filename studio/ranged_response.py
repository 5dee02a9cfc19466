"""Sounds with a validator, of which a client may have seen a part: ETag, Range, 304 and 206.

A player asks for parts of a file, and again for what it has. One range is answered; a request for
several gets the whole, as HTTP allows. Parts must be of the same bytes, so what is made on request
is kept for a while. Knows no routes.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping

from starlette.requests import Request
from starlette.responses import Response

_RANGE = re.compile(r"bytes=(\d{1,15})?-(\d{1,15})?")


class RecentSounds:
    """The sounds that were used last, as long as they are few enough bytes together."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._sounds: OrderedDict[Hashable, bytes] = OrderedDict()

    def get(self, key: Hashable) -> bytes | None:
        with self._lock:
            if key in self._sounds:
                self._sounds.move_to_end(key)
            return self._sounds.get(key)

    def add(self, key: Hashable, sound: bytes) -> None:
        with self._lock:
            self._sounds[key] = sound
            self._sounds.move_to_end(key)
            while sum(map(len, self._sounds.values())) > self._most:
                self._sounds.popitem(last=False)


def etag_of(*parts: bytes) -> str:
    """A strong validator: equal for equal parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return f'"{digest.hexdigest()[:32]}"'


def is_known(request: Request, etag: str) -> bool:
    """Whether the client has it already."""
    sent = request.headers.get("if-none-match", "")
    return any(each.strip().removeprefix("W/") in (etag, "*") for each in sent.split(","))


def unchanged(etag: str) -> Response:
    return Response(status_code=304, headers={"ETag": etag, "Cache-Control": "no-cache"})


def ranged_response(
    request: Request,
    content: bytes,
    media_type: str,
    etag: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The content, the part of it that was asked for, or that the client has it."""
    etag = etag or etag_of(content)
    if is_known(request, etag):
        return unchanged(etag)
    fields = {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "no-cache",
        **(headers or {}),
    }
    wanted = request.headers.get("range", "")
    if wanted and request.headers.get("if-range", etag) == etag:
        span = _span(wanted, len(content))
        if span == (0, 0):
            fields["Content-Range"] = f"bytes */{len(content)}"
            return Response(status_code=416, headers=fields)
        if span:
            first, last = span
            fields["Content-Range"] = f"bytes {first}-{last - 1}/{len(content)}"
            return Response(content[first:last], 206, fields, media_type)
    return Response(content, 200, fields, media_type)


def _span(wanted: str, length: int) -> tuple[int, int] | None:
    """The bytes of one range; (0, 0) if there are none there, None for what is not one range."""
    match = _RANGE.fullmatch(wanted.strip().lower())
    if not match or not (match[1] or match[2]):
        return None
    if match[1] is None:  # the last so many
        first, last = max(0, length - int(match[2])), length
    else:
        first, last = int(match[1]), min(length, int(match[2] or length) + 1)
        if match[2] and int(match[2]) < first:
            return None
    return (first, last) if first < last else (0, 0)
