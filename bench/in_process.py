"""Runs jobs on an engine in this process."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from statistics import median

from bench.reference_sound import hum, marked
from bench.workload import DESCRIPTION, TRANSCRIPT, Job, Kind
from engine import Design, Engine, Pcm, Preset, SpeechRequest, Voice


class InProcess:
    """Has a voice of each kind; references are encoded before the measurement."""

    def __init__(self, engine: Engine, kinds: tuple[Kind, ...], speaker: str | None) -> None:
        self._engine = engine
        self._hum = hum()
        self._steps: dict[int, list[float]] = defaultdict(list)
        self._voices = {kind: self._voice(kind, speaker) for kind in kinds if kind != "cold"}

    async def listen(self, job: Job) -> AsyncIterator[Pcm]:
        voice = await self._cold(job) if job.kind == "cold" else self._voices[job.kind]
        async with self._engine.submit(self._request(job, voice)) as stream:
            async for chunk in stream:
                yield chunk.pcm
        self._look()

    def step_ms(self) -> dict[int, float]:
        """A step's median milliseconds by running requests, sampled at the end of each job."""
        return {count: 1e3 * median(seconds) for count, seconds in sorted(self._steps.items())}

    def _look(self) -> None:
        stats = self._engine.stats()
        if stats.running:
            self._steps[stats.running].append(stats.step_seconds)

    async def _cold(self, job: Job) -> Voice:
        """A clone of a recording that is not cached."""
        sound = marked(self._hum, job.seed)
        return await asyncio.to_thread(self._engine.clone, sound, TRANSCRIPT)

    def _request(self, job: Job, voice: Voice) -> SpeechRequest:
        return SpeechRequest(
            text=job.text,
            voice=voice,
            seed=job.seed,
            max_frames=job.frames if job.fixed else None,
            ignore_end=job.fixed,
        )

    def _voice(self, kind: Kind, speaker: str | None) -> Voice:
        if kind == "design":
            return Design(DESCRIPTION)
        if kind == "preset":
            return self._preset(speaker)
        return self._engine.clone(self._hum, TRANSCRIPT if kind == "context" else "")

    def _preset(self, speaker: str | None) -> Voice:
        """The named preset, or a checkpoint's first one."""
        every = [name for able in self._engine.capabilities().values() for name in able.speakers]
        return Preset(speaker or every[0]) if speaker or every else Design(DESCRIPTION)
