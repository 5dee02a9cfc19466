"""Makes voices and keeps them: the rules for names, and a voice out of a description.

Knows no routes. Consent is the caller's to check: what is described is nobody's voice.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import anyio.to_thread

from engine import (
    Clone,
    Design,
    Library,
    NotCapable,
    SavedVoice,
    SpeechEngine,
    SpeechRequest,
    SpeechStream,
    folded,
)
from studio.api.errors import ApiError
from studio.api.responses.streaming_response import whole
from studio.api.voice_resolver import NO_NAMES, VoiceResolver
from studio.voices.voice_catalog import PHRASE

MARKS: Final = ":+,()"  # separators of a written blend


class VoiceMakers:
    def __init__(self, engine: SpeechEngine, library: Library, voices: VoiceResolver) -> None:
        self._engine, self._library, self._voices = engine, library, voices

    async def new_name(self, name: str) -> str:
        """A name that is not in use, before any work; the library looks again when it saves."""
        plain = " ".join(name.split())
        if not plain or plain.casefold() in NO_NAMES or any(mark in plain for mark in MARKS):
            message = f"A voice's name is one or more words without any of {' '.join(MARKS)}"
            raise ApiError(400, message, "invalid_name", "name")
        speakers = map(folded, self._voices.speakers())
        saved = await anyio.to_thread.run_sync(self._library.named, plain)
        if saved or folded(plain) in speakers:
            message = f"There is a voice called '{plain}' already. Delete it, or choose another."
            raise ApiError(409, message, "name_taken", "name")
        await anyio.to_thread.run_sync(self._library.check_room)
        return plain

    async def save(
        self,
        name: str,
        voice: Clone | Design,
        beside: Mapping[str, bytes] | None = None,
        **details: Any,
    ) -> SavedVoice:
        kept = {"beside": beside} if beside else {}
        work = partial(self._library.save, name, voice, **kept, **details)
        return await anyio.to_thread.run_sync(work)

    async def described(
        self, name: str, description: str, script: str = "", model: str | None = None
    ) -> SavedVoice:
        """Speak with a described voice and keep what was heard, so that it stays the same.

        Where no model clones, the description is kept. Raises NotCapable or ApiError.
        """
        able = self._engine.capabilities()
        if not any(model_able.design for each, model_able in able.items() if model in (None, each)):
            message = "No model here makes a voice out of a description. Send a recording instead."
            raise NotCapable(message)
        name = await self.new_name(name)
        details: dict[str, Any] = {"kind": "design", "made_from": f"Designed: {description}"[:400]}
        if not any(model_able.clone for model_able in able.values()):
            return await self.save(name, Design(description), **details)
        text = script.strip() or PHRASE
        request = SpeechRequest(text, Design(description), live=False, model=model)
        stream: SpeechStream = self._engine.submit(request)
        async with stream:
            pcm = await whole(stream)
        voice = await self._voices.clone_take(pcm, text)
        return await self.save(name, voice, instruct=description, **details)
