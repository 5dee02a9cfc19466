"""Gradio's named endpoints for programs: a finished file, chunks, the voices.

"Use via API" shows the signatures.
"""

from __future__ import annotations

import asyncio
import base64
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np

from engine import SAMPLE_RATE, Chunk, Pcm, SamplingParams, SpeechStream, checked, save_sound
from studio.context import Studio
from studio.ui.i18n import errors_shown
from studio.ui.speech_form import SpeechForm, read_seed


class Endpoints:
    """The endpoint functions; engine errors become gr.Error with the same message."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    async def speak(
        self,
        text: str | None,
        voice: str | None,
        language: str | None,
        instruct: str | None,
        seed: str | None,
        format: str | None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        repetition_penalty: float | None = None,
        predictor_temperature: float | None = None,
        predictor_top_k: int | None = None,
        predictor_top_p: float | None = None,
        longest: float | None = None,
    ) -> AsyncIterator[str]:
        """Speak to a file. Gradio copies it before the generator continues."""
        with errors_shown(str):
            sampling = checked(
                SamplingParams,
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                repetition_penalty=repetition_penalty,
                predictor_temperature=predictor_temperature,
                predictor_top_k=predictor_top_k,
                predictor_top_p=predictor_top_p,
            )
            form = SpeechForm(
                text or "",
                voice or "",
                language or "auto",
                instruct or "",
                read_seed(seed or ""),
                sampling,
                longest,
            )
            pcm = await self._whole(form)
        with tempfile.TemporaryDirectory() as folder:
            yield str(save_sound(Path(folder) / f"take.{format or 'wav'}", pcm))

    async def stream(
        self,
        text: str,
        voice: str | None = "",
        language: str | None = "auto",
        instruct: str | None = "",
    ) -> AsyncIterator[dict[str, Any]]:
        """Speak, and return each chunk as it is generated: PCM16, 24 kHz, mono, in base64."""
        request = SpeechForm(text or "", voice or "", language or "auto", instruct or "")
        with errors_shown(str):
            async with await self._submit(request) as spoken:
                async for chunk in spoken:
                    yield {**_written(chunk), "seed": spoken.seed}

    def voices(self) -> list[dict[str, str]]:
        """The available voices."""
        found = self._studio.choices().list()
        return [{"name": voice.name, "kind": voice.kind, "note": voice.note} for voice in found]

    async def _whole(self, form: SpeechForm) -> Pcm:
        async with await self._submit(form, live=False) as stream:
            parts = [chunk.pcm async for chunk in stream]
        return np.concatenate(parts) if parts else np.zeros(0, np.int16)

    async def _submit(self, form: SpeechForm, live: bool = True) -> SpeechStream:
        """In a thread: a long text takes a while."""
        choices, submit = self._studio.choices, self._studio.engine.submit
        return await asyncio.to_thread(lambda: submit(form.request(choices(), live=live)))


def _written(chunk: Chunk) -> dict[str, Any]:
    pcm = base64.b64encode(chunk.pcm.astype("<i2", copy=False).tobytes()).decode()
    return {"index": chunk.index, "sample_rate": SAMPLE_RATE, "pcm": pcm}
