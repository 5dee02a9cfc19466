"""Speech at the paths of other servers: Azure's deployments, and servers for Qwen3-TTS that take a
recording or a description at a path of its own (zaphodvox asks so).
"""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from pydantic import AliasChoices, Field
from starlette.responses import Response

from studio.api.api_context import Shared
from studio.api.bodies.forms import read_form
from studio.api.bodies.json_body import BoundedJson
from studio.api.bodies.schemas import SpeechBody
from studio.api.routes.speech import speech

router = APIRouter(tags=["other paths"], route_class=BoundedJson)
SAME: Final = (
    "input",
    "language",
    "response_format",
    "ref_text",
    "seed",
    "temperature",
    "consent",
    "model",
    "speed",
)
_UPLOAD: Final = {
    **{name: (name,) for name in SAME},
    "x_vector_only_mode": ("x_vector_only", "x_vector_only_mode"),
    "audio": ("voice_file", "audio", "file"),
}


class Described(SpeechBody):
    """POST /v1/audio/speech/design."""

    instructions: str = Field(
        min_length=1,
        max_length=4000,
        validation_alias=AliasChoices("voice_description", "instructions", "instruct"),
    )


@router.post("/openai/deployments/{deployment}/audio/speech", response_class=Response)
@router.post("/openai/v1/audio/speech", response_class=Response)
async def azure(
    body: SpeechBody,
    context: Shared,
    deployment: Annotated[str, Field(max_length=512)] = "",
) -> Any:
    """Azure's path: the deployment in it is the model."""
    wanted = body.model_copy(update={"model": deployment}) if deployment else body
    return await speech(wanted, context)


@router.get("/v1/test")
async def test() -> dict[str, str]:
    """Kokoro-FastAPI's path, by which wyoming_openai recognises it; it then requests the voices."""
    return {"status": "ok"}


@router.post("/v1/audio/speech/design", response_class=Response)
async def design(body: Described, context: Shared) -> Any:
    """Speak with a voice out of a description."""
    return await speech(body.model_copy(update=_whole(task_type="VoiceDesign")), context)


@router.post("/v1/audio/speech/upload", response_class=Response)
async def upload(request: Request, context: Shared) -> Any:
    """Speak with the voice of a recording (multipart: input, voice_file, ref_text, …)."""
    form = await read_form(request, _UPLOAD, context.settings.audio_bytes)
    recording = b64encode(form.need_audio()).decode()
    fields = {**form.fields, "ref_audio": f"data:application/octet-stream;base64,{recording}"}
    return await speech(SpeechBody.model_validate({**fields, **_whole()}), context)


def _whole(**fields: str) -> dict[str, Any]:
    """These clients write the answer to a file, so it has its length."""
    return {"stream": False, **fields}
