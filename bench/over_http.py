"""Runs jobs on any server with OpenAI's /v1/audio/speech."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.http_lines import Server, form
from bench.reference_sound import data_url, hum, marked, wav
from bench.workload import DESCRIPTION, TRANSCRIPT, Job, Kind

SPEECH, VOICES = "/v1/audio/speech", "/v1/audio/voices"
SPEAKER = "alloy"  # OpenAI's voice name, which Timbre maps to one of its voices
KEPT: tuple[Kind, ...] = ("vector", "context")


class OverHttp:
    """`extra` is merged into every body; null removes a field."""

    def __init__(self, server: Server, speaker: str | None, extra: dict[str, Any]) -> None:
        self._server, self._speaker, self._extra = server, speaker or SPEAKER, extra
        self._hum = hum()
        self._voice = ""  # the id of a voice that is saved during the run

    async def prepare(self, kinds: tuple[Kind, ...]) -> None:
        """Save a cloned voice on the server if a job needs one."""
        if not set(kinds) & set(KEPT):
            return
        name = f"bench {uuid.uuid4().hex[:8]}"
        fields = {"name": name, "consent": "true", "transcript": TRANSCRIPT}
        body, kind = form(fields, wav(self._hum))
        answer = json.loads(await self._server.whole("POST", VOICES, body, kind))
        self._voice = answer["voice"]["id"]

    async def finish(self) -> None:
        if self._voice:
            await self._server.whole("DELETE", f"{VOICES}/{self._voice}")
        self._server.close()

    async def listen(self, job: Job) -> AsyncIterator[NDArray[np.int16]]:
        rest, body = b"", json.dumps(self.body(job)).encode()
        async for piece in self._server.ask("POST", SPEECH, body):
            data = rest + piece
            whole = len(data) & ~1
            rest = data[whole:]
            yield np.frombuffer(data[:whole], "<i2")

    def body(self, job: Job) -> dict[str, Any]:
        body = {
            "model": "tts-1",
            "input": job.text,
            "language": "english",
            "response_format": "pcm",
            "stream": True,
            "max_new_tokens": job.frames if job.fixed else None,
            "seed": job.seed,
            "ignore_eos": job.fixed or None,
            **self._manner(job),
            **self._extra,
        }
        return {name: value for name, value in body.items() if value is not None}

    def _manner(self, job: Job) -> dict[str, Any]:
        if job.kind == "preset":
            return {"voice": self._speaker}
        if job.kind == "design":
            return {"task_type": "VoiceDesign", "instructions": DESCRIPTION}
        if job.kind == "cold":
            sound = data_url(marked(self._hum, job.seed))
            return {"ref_audio": sound, "ref_text": TRANSCRIPT, "consent": True}
        return {"voice": self._voice, "x_vector_only_mode": True if job.kind == "vector" else None}
