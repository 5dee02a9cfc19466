"""The description of the API for machines: also audio, errors, keys and forms.

A client that is generated from it gets bytes where audio is answered, and one type of error.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from studio.api.responses.encoding import MEDIA_TYPES

DESCRIPTION: Final = "Speech in OpenAI's shape. docs/api.md says all of it in words."
OPEN_PATHS: Final = ("/health", "/ready")
# What every operation may answer besides its success, in the one shape of all errors.
STATUSES: Final = {
    400: "Not well formed, or out of range",
    401: "A key is needed",
    403: "A page of another site asks",
    404: "No such voice, model or path",
    405: "The path has no such method",
    409: "The name is taken, or the library is full",
    413: "Too large",
    415: "Not JSON, not a form, or no audio",
    422: "Well formed, but these models cannot do it",
    429: "Too many: see Retry-After",
    500: "A fault of the server",
    503: "Loading, closing or out of memory: see Retry-After",
    507: "Not saved",
}
BINARY: Final = {"type": "string", "format": "binary"}
# Generated clients know bytes by this name, and not by those of sounds. They take the first kind
# that they know of an answer, so it comes before text/event-stream, which would be read as text.
BYTES: Final = "application/octet-stream"
EVENTS: Final = "text/event-stream"
SCHEMAS: Final = "#/components/schemas/"
ERRORS: Final = {
    "Error": {
        "title": "Error",
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"$ref": SCHEMAS + "ErrorDetail"}},
    },
    "ErrorDetail": {
        "title": "ErrorDetail",
        "type": "object",
        "required": ["message", "type", "param", "code"],
        "properties": {
            "message": {"type": "string"},
            "type": {"type": "string"},
            "param": {"type": ["string", "null"]},
            "code": {"type": "string"},
            "retry_after": {"type": "integer"},
        },
    },
}
SPOKEN: Final = {
    ("/v1/audio/speech", "post"): (*MEDIA_TYPES.values(), EVENTS),
    ("/v1/audio/speech/design", "post"): tuple(MEDIA_TYPES.values()),
    ("/v1/audio/speech/upload", "post"): tuple(MEDIA_TYPES.values()),
    ("/openai/v1/audio/speech", "post"): tuple(MEDIA_TYPES.values()),
    ("/openai/deployments/{deployment}/audio/speech", "post"): tuple(MEDIA_TYPES.values()),
    ("/v1/text-to-speech/{voice}", "post"): tuple(MEDIA_TYPES.values()),
    ("/v1/text-to-speech/{voice}/stream", "post"): tuple(MEDIA_TYPES.values()),
    ("/v1/audio/voices/{name}/preview", "get"): ("audio/wav",),
}
_AUDIO_FIELDS: Final = {
    "audio": {**BINARY, "description": "WAV, AIFF, FLAC, OGG, MP3, M4A or WebM, 1 to 60 s"},
    "model": {"type": "string"},
    "consent": {"type": "string", "description": "true: its owner has agreed"},
}
FORMS: Final[dict[str, dict[str, Any]]] = {
    "/v1/audio/voices": {
        "title": "NewVoice",
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            **_AUDIO_FIELDS,
            "transcript": {"type": "string"},
            "embedding": {"type": "string", "description": "a JSON list of numbers"},
            "note": {"type": "string"},
            "type": {"type": "string", "enum": ["audio_sample", "prompt"]},
            "prompt": {"type": "string", "description": "a description, for type prompt"},
            "script_hint": {"type": "string", "description": "what the described voice says"},
        },
    },
    "/v1/audio/voice_consents": {
        "title": "NewConsent",
        "type": "object",
        "required": ["name", "language", "recording"],
        "properties": {
            "name": {"type": "string"},
            "language": {"type": "string", "description": "as en-US"},
            "recording": _AUDIO_FIELDS["audio"],
        },
    },
    "/v1/audio/speech/upload": {
        "title": "SpeechLike",
        "type": "object",
        "required": ["input", "voice_file"],
        "properties": {
            **{name: {"type": "string"} for name in ("input", "language", "response_format")},
            **{name: {"type": "string"} for name in ("ref_text", "x_vector_only", "seed")},
            "voice_file": _AUDIO_FIELDS["audio"],
            "consent": _AUDIO_FIELDS["consent"],
        },
    },
    "/v1/audio/embeddings": {
        "title": "Recording",
        "type": "object",
        "required": ["audio"],
        "properties": _AUDIO_FIELDS,
    },
    "/v1/audio/voices/{name}/moods": {
        "title": "MoodRecording",
        "type": "object",
        "required": ["mood", "audio", "consent"],
        "properties": {
            "mood": {"type": "string"},
            **_AUDIO_FIELDS,
            "transcript": {"type": "string"},
        },
    },
}
KEYS: Final = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "xi-api-key": {"type": "apiKey", "in": "header", "name": "xi-api-key"},
}


def describe(api: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; made once."""
    if api.openapi_schema is None:
        document = get_openapi(
            title=api.title, version=api.version, description=DESCRIPTION, routes=api.routes
        )
        parts = document.setdefault("components", {})
        schemas = parts.setdefault("schemas", {})
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        schemas |= ERRORS
        schemas |= {form["title"]: form for form in FORMS.values()}
        parts["securitySchemes"] = KEYS
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                _complete(path, method, operation)
        api.openapi_schema = document
    return api.openapi_schema


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    error = {"application/json": {"schema": {"$ref": SCHEMAS + "Error"}}}
    for status, text in STATUSES.items():
        if str(status) not in responses or status == 422:
            responses[str(status)] = {"description": text, "content": error}
    if path not in OPEN_PATHS:
        operation["security"] = [{}, *({name: []} for name in KEYS)]  # {}: servers without keys
    if path == "/metrics":
        plain = {"text/plain": {"schema": {"type": "string"}}}
        responses["200"] = {"description": "Prometheus' format", "content": plain}
    if kinds := SPOKEN.get((path, method)):
        content = {kind: {"schema": BINARY} for kind in (BYTES, *kinds)}
        if EVENTS in kinds:
            content[EVENTS] = {"schema": {"type": "string"}}
        responses["200"] = {"description": "The audio", "content": content}
    if method == "post" and path in FORMS:
        form = {"multipart/form-data": {"schema": {"$ref": SCHEMAS + FORMS[path]["title"]}}}
        operation["requestBody"] = {"required": True, "content": form}
