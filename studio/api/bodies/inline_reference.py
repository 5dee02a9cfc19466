"""Reads a recording from a data: URL. Nothing is ever fetched from an address.

Sizes are checked before decoding; the engine checks the audio itself.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from urllib.parse import unquote_to_bytes

from studio.api.errors import ApiError

_DATA_URL = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.I)
_TYPES = ("audio/", "video/", "application/ogg", "application/octet-stream")


def is_data_url(text: str) -> bool:
    return text[:5].lower() == "data:"


def refuse_address(text: str, param: str) -> None:
    """Refuse addresses and paths, which are never opened."""
    if "://" in text or text.startswith(("/", "\\", "~", ".")):
        raise ApiError(
            400,
            "Audio is never fetched from an address. Send it as a data: URL "
            "(data:audio/wav;base64,…), or upload it as a voice and give its id.",
            "address_refused",
            param,
        )


def audio_of(url: str, limit: int, param: str) -> bytes:
    """The bytes of an audio data: URL."""
    head = _DATA_URL.match(url[:256])
    if not head:
        raise _unreadable(param)
    check_type(head[1], param)
    check_size(len(url) * 3 // 4, limit + 256, param)
    data = _decoded(url[head.end() :], ";base64" in head[2].lower(), param)
    check_size(len(data), limit, param)
    return data


def check_type(media_type: str | None, param: str) -> None:
    """Refuse media types other than audio; none is accepted."""
    if media_type and not media_type.lower().startswith(_TYPES):
        problem = f"'{media_type[:60]}' is no audio. Send wav, flac, ogg or mp3."
        raise ApiError(415, problem, "media_type", param)


def check_size(size: int, limit: int, param: str) -> None:
    if size > limit:
        problem = f"The recording is too large: at most {limit / 2**20:g} MiB."
        raise ApiError(413, problem, "too_large", param)


def _decoded(text: str, base64: bool, param: str) -> bytes:
    if not base64:
        return unquote_to_bytes(text)
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _unreadable(param) from None


def _unreadable(param: str) -> ApiError:
    problem = (
        "The data: URL cannot be read. Write it as data:audio/wav;base64,… in standard base64."
    )
    return ApiError(400, problem, "invalid_data_url", param)
