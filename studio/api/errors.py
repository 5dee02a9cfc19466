"""Errors in OpenAI's form: {"error": {"message", "type", "param", "code"}}.

    ApiError            an error of the API, with its status
    explain(exception)  converts the engine's errors and validation errors

Responses never contain stack traces, nor details of unexpected exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from engine import (
    Busy,
    CheckpointError,
    EngineClosed,
    InvalidAudio,
    InvalidSetting,
    InvalidText,
    InvalidVoice,
    LibraryFull,
    NameTaken,
    NotCapable,
    NotSaved,
    OutOfMemory,
    StepFailed,
    TimbreError,
    UnknownLanguage,
    UnknownVoice,
)
from studio.api.json_text import to_json


@dataclass(eq=False)
class ApiError(Exception):
    """An error response. `param` names the wrong field."""

    status: int
    message: str
    code: str
    param: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message

    @property
    def type(self) -> str:
        return _TYPES.get(self.status, _BAD if self.status < 500 else "server_error")

    @property
    def retry_after(self) -> int | None:
        """Seconds after which to retry; None where a retry does not help."""
        header = self.headers.get("Retry-After", "")
        return int(header) if header.isdecimal() else None

    def body(self) -> dict[str, Any]:
        fields = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        if self.retry_after is not None:  # WebSocket messages have no headers
            return {"error": {**fields, "retry_after": self.retry_after}}
        return {"error": fields}

    def response(self, path: str = "") -> Response:
        """`path`: of the request. On ElevenLabs' paths its form is there as well, on the page's
        the words that its client shows."""
        body = self.body()
        if path.startswith(PAGE_PATHS):
            body["detail"] = self.message
        if path.startswith(ELEVENLABS_PATHS):
            body["detail"] = {"status": self.code, "message": self.message}
        return Response(to_json(body), self.status, self.headers, media_type="application/json")


PAGE_PATHS = "/gradio_api/"
ELEVENLABS_PATHS = ("/v1/text-to-speech/", "/v1/voices", "/v2/voices")
_BAD = "invalid_request_error"
_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
_KNOWN: tuple[tuple[type[TimbreError], int, str, str | None], ...] = (
    (InvalidText, 400, "invalid_text", "input"),
    (InvalidSetting, 400, "invalid_setting", None),
    (UnknownVoice, 404, "voice_not_found", "voice"),
    (UnknownLanguage, 400, "unknown_language", "language"),
    (NotCapable, 422, "not_capable", None),
    (InvalidAudio, 422, "invalid_audio", "ref_audio"),
    (NameTaken, 409, "name_taken", "name"),
    (LibraryFull, 409, "library_full", None),
    (InvalidVoice, 422, "invalid_voice", "voice"),
    (CheckpointError, 503, "model_unavailable", "model"),
    (StepFailed, 500, "step_failed", None),
    (OutOfMemory, 503, "out_of_memory", None),
    (EngineClosed, 503, "engine_closed", None),
    (NotSaved, 507, "not_saved", None),
)
_WORDS = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "media_type"}
# For the metrics: nobody is there to read it.
BROKEN_OFF = ApiError(400, "The body ended early. Send all of it.", "incomplete_body")
UNFORESEEN = ApiError(
    500, "Something went wrong on the server; its log says what. Try again.", "internal_error"
)


def explain(error: BaseException) -> ApiError:
    """The error response for an exception."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ClientDisconnect):
        return BROKEN_OFF
    if isinstance(error, Busy):
        return too_many(str(error), "queue_full", error.retry_after)
    if isinstance(error, (RequestValidationError, ValidationError)):
        return _misfit(error.errors())
    if isinstance(error, HTTPException):
        code = _WORDS.get(error.status_code, "http_error")
        return ApiError(error.status_code, str(error.detail), code, headers=_headers(error))
    return _engine(error)


def too_many(message: str, code: str, retry_after: float) -> ApiError:
    """429, with `Retry-After` rounded up to whole seconds."""
    seconds = max(1, -int(-retry_after // 1))
    return ApiError(429, message, code, headers={"Retry-After": str(seconds)})


def _engine(error: BaseException) -> ApiError:
    for kind, status, code, param in _KNOWN:
        if isinstance(error, kind):
            headers = {"Retry-After": "5"} if status == 503 else {}
            return ApiError(status, str(error), code, param, headers)
    return UNFORESEEN


def _headers(error: HTTPException) -> dict[str, str]:
    return dict(error.headers or {})


def _misfit(problems: Sequence[Any]) -> ApiError:
    """The first validation error of a body."""
    first = problems[0]
    param = _field(first["loc"])
    if first["type"] == "extra_forbidden":
        return ApiError(400, f"Unknown key '{param}'. Leave it out.", "unknown_key", param)
    if first["type"] in ("json_invalid", "json_type", "model_attributes_type"):
        at = None if first["type"] == "json_invalid" else param  # a position is not a field
        return ApiError(400, "The body is no JSON object.", "invalid_json", at)
    if first["type"] == "missing":
        return ApiError(400, f"'{param}' is missing. Add it.", "missing", param)
    if first["type"] == "too_short" and first["ctx"]["min_length"] == 1:
        return ApiError(400, f"'{param}' is empty: send a non-empty list.", "invalid_value", param)
    problem = first["msg"].removeprefix("Value error, ")
    return ApiError(400, f"{param}: {problem}" if param else problem, "invalid_value", param)


def _field(place: Sequence[str | int]) -> str | None:
    """The path to a field, without pydantic's names of union members."""
    parts = [str(part) for part in place if part != "body"]
    return ".".join(part for part in parts if re.fullmatch("[a-z0-9_]+", part)) or None
