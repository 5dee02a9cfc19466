"""ElevenLabs' speech routes, for its SDK with a `base_url`.

The voice is in the path, the format in the query. Voice settings that have no equivalent are
ignored and listed in a header.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from studio.api.api_context import Shared
from studio.api.bodies.format_names import read_format
from studio.api.bodies.json_body import BoundedJson
from studio.api.bodies.schemas import Body, Language, SpeechBody
from studio.api.compat.elevenlabs_account import described
from studio.api.errors import ApiError
from studio.api.routes.speech import speech

router = APIRouter(tags=["elevenlabs"], route_class=BoundedJson)
DEFAULT_FORMAT = "mp3_44100_128"
FormatName = Annotated[str, Query(max_length=64)]


class VoiceSettings(Body):
    speed: float = Field(1.0, ge=0.25, le=4.0)


class SpeechText(Body):
    """POST /v1/text-to-speech/{voice}."""

    OTHERS = frozenset({"apply_language_text_normalization"})

    text: str
    model_id: Annotated[str, Field(max_length=512)] = ""
    language_code: Language = "auto"
    seed: int | None = Field(None, ge=0, lt=2**63)
    voice_settings: VoiceSettings = VoiceSettings()
    apply_text_normalization: Literal["auto", "on", "off"] = "auto"


@router.get("/v1/voices")
@router.get("/v2/voices")
async def voices(context: Shared) -> dict[str, Any]:
    saved = await anyio.to_thread.run_sync(context.library.list)
    listed = [(name, name, "premade") for name in context.voices.speakers()]
    listed += [(each.id, each.card.name, each.card.kind) for each in saved]
    described_voices = [described(*each) for each in listed]
    return {
        "voices": described_voices,
        "has_more": False,
        "total_count": len(described_voices),
        "next_page_token": None,
    }


@router.post("/v1/text-to-speech/{voice}")
@router.post("/v1/text-to-speech/{voice}/stream")
async def text_to_speech(
    voice: str, body: SpeechText, context: Shared, output_format: FormatName = DEFAULT_FORMAT
) -> Response:
    """Always streamed, since the SDK joins the pieces."""
    answer: Response = await speech(speech_body(voice, body, output_format), context)
    return answer


def speech_body(voice: str, body: SpeechText, output_format: str) -> SpeechBody:
    """The same as a request of ours. Raises ApiError."""
    try:
        output = read_format(output_format)
    except ValueError as error:
        raise ApiError(400, str(error), "invalid_value", "output_format") from None
    return SpeechBody(
        input=body.text,
        voice=voice,
        model=body.model_id,
        language=body.language_code,
        seed=body.seed,
        speed=body.voice_settings.speed,
        response_format=output.format,
        sample_rate=output.sample_rate,
        bit_rate=output.bit_rate,
        stream=True,
        spell_out=body.apply_text_normalization != "off",
    )
