"""Multipart bodies: known fields under any of their names, at most one audio file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import UploadFile
from starlette.requests import Request

from studio.api.bodies.inline_reference import check_size, check_type
from studio.api.errors import ApiError

Names = Mapping[str, tuple[str, ...]]
_MOST_FIELDS = 16
_FIELD_BYTES = 256 * 1024


@dataclass(frozen=True)
class Form:
    fields: dict[str, str]
    audio: bytes | None = None
    filename: str = ""

    def text(self, name: str) -> str:
        return self.fields.get(name, "")

    def need(self, name: str) -> str:
        if name not in self.fields:
            raise ApiError(400, f"The field '{name}' is missing.", "missing", name)
        return self.fields[name]

    def need_audio(self) -> bytes:
        if self.audio is None:
            raise ApiError(400, "The file 'audio' is missing.", "missing", "audio")
        return self.audio


async def read_form(request: Request, names: Names, audio_limit: int) -> Form:
    """Raises ApiError for other bodies, unknown fields and large files."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise ApiError(415, "Send a form: multipart/form-data (curl -F).", "media_type")
    known = {alias: name for name, aliases in names.items() for alias in aliases}
    fields: dict[str, str] = {}
    audio, filename = None, ""
    async with request.form(
        max_files=1, max_fields=_MOST_FIELDS, max_part_size=_FIELD_BYTES
    ) as form:
        for key, value in form.multi_items():
            if key not in known:
                raise ApiError(400, f"Unknown field '{key}'. Leave it out.", "unknown_key", key)
            if isinstance(value, UploadFile):
                audio, filename = await _audio(value, known[key], audio_limit), value.filename or ""
            else:
                fields[known[key]] = value
    return Form(fields, audio, filename)


async def _audio(file: UploadFile, name: str, limit: int) -> bytes:
    if name != "audio":
        raise ApiError(400, f"'{name}' is text, not a file.", "invalid_value", name)
    check_type(file.content_type, name)
    check_size(file.size or 0, limit, name)
    return await file.read()
