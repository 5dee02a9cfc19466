"""What is being spoken now, script by script, and what a listener is told of it.

Making and listening are two things: all lines are made as one batch, as fast as the engine can,
while a listener hears them in order. Who listens to another line meanwhile stops nothing. The
events that began or joined it hold it: when the last of their pages is closed, the engine stops.
One event loop.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from engine import InvalidText, RequestError, SpeechRequest, TimbreError
from studio.context import Studio
from studio.scripts import BatchSynthesis, Job, Progress, ScriptStream, Status, status_of
from studio.scripts.batch_synthesis import LOST
from studio.scripts.edits import redo
from studio.ui.player.event_transport import Payload, refusal
from studio.ui.speech_form import SEED_DIGITS
from studio.ui.tabs.script.store import Opened, ScriptStore
from studio.ui.tabs.voice_form import PHRASE, speaking

MARKS = 100  # of a take that is heard; more than lie ahead of a listener
HEARD = 120.0  # seconds that a take is remembered after all of it was handed over
SOON = 2.0  # seconds in which a press of Speak must have become a rendering
Standing: TypeAlias = Callable[[Job], tuple[Status, str]]
Told: TypeAlias = AsyncIterator[Payload | None]  # None: nothing new for the player


@dataclass(eq=False)
class Making:
    """A rendering of a script, and how many events hold it."""

    rendering: BatchSynthesis
    whole: bool  # all of the script, not one line
    holders: int = 0


@dataclass(eq=False)
class Hearing:
    """A take that somebody hears, and where its lines begin."""

    stream: ScriptStream
    making: Making
    take: str = ""
    stopped: bool = False  # by the listener
    ended: float | None = None  # when all was handed over; much of it may still be heard


class ScriptPlayback:
    """Everything that is being spoken for the Script tab."""

    def __init__(self, studio: Studio, store: ScriptStore) -> None:
        self._studio = studio
        self._store = store
        self._makings: dict[str, list[Making]] = defaultdict(list)
        self._hearings: dict[str, list[Hearing]] = defaultdict(list)
        self._failures: dict[str, dict[str, str]] = defaultdict(dict)  # by script, by key
        self._asked: dict[str, float] = {}

    # What is known.

    def expect(self, number: str) -> None:
        """Somebody has pressed Speak: look again soon."""
        now = time.monotonic()
        self._asked = {own: when for own, when in self._asked.items() if now - when < SOON}
        self._asked[number] = now

    def busy(self, number: str) -> bool:
        """Is something of this script being spoken, or about to be?"""
        asked = self._asked.get(number, -SOON)
        spoken = self._makings.get(number) or self.listening(number)
        return bool(spoken) or time.monotonic() - asked < SOON

    def progress(self, number: str) -> Progress | None:
        """Of the whole script, while it is being made."""
        making = self._whole(number)
        return making.rendering.progress() if making else None

    def listening(self, number: str) -> bool:
        return any(own.ended is None for own in self._hearings.get(number, []))

    def heard(self, number: str) -> dict[str, list[tuple[int, int]]]:
        """For each take that is heard: the samples where its latest lines begin, and the lines."""
        return {own.take: own.stream.marks[-MARKS:] for own in self._hearings.get(number, [])}

    def standing(self, opened: Opened) -> Standing:
        """How each line stands now, and why it has failed."""
        renderings = [own.rendering for own in self._makings.get(opened.number, [])]
        failures = self._failures.get(opened.number, {})

        def of(job: Job) -> tuple[Status, str]:
            assert opened.sounds is not None
            stands = status_of(job, opened.sounds)
            for told in (each.standing(job.key) for each in renderings):
                if told and stands == "waiting":
                    return told
            if stands == "waiting" and job.key in failures:
                return "failed", failures[job.key]
            return stands, LOST if stands == "failed" else ""

        return of

    # Speaking.

    async def speak(self, number: str, aloud: bool, start: int | None = None) -> Told:
        """Make all that is not made, from line `start` on, and let it be heard in order."""
        try:
            opened = await asyncio.to_thread(self._ready, number)
            first = _first(opened, self.standing(opened)) if start is None else start
            after = opened.script.lines[opened.script.place(first) :]
            wanted = None if start is None else {line.id for line in after}
        except TimbreError as error:
            yield refusal(error.message)
            return
        making = await self._making(opened, first, aloud, wanted)
        hearing = Hearing(ScriptStream(making.rendering, first, owner=False), making)
        async with self._held(number, making):
            if aloud:
                async for payload in self._heard(number, hearing):
                    yield payload
            while not (making.rendering.over or hearing.stopped):
                await making.rendering.news()
                yield None

    async def listen(self, number: str, line: int) -> Told:
        """One line, made first when it has no sound."""
        async for payload in self._line(number, lambda: self._heard_line(number, line)):
            yield payload

    async def take(self, number: str, line: int, key: str) -> Told:
        """A take of a line, whichever the line has now."""

        def kept() -> Job:
            opened = self._store.open(number)
            takes = opened.takes(opened.script.line(line))
            if all(each.key != key for each in takes):
                raise InvalidText("This take is gone. Press Regenerate to make another.")
            return Job(line, key, None, 0, 0.0)

        async for payload in self._line(number, kept):
            yield payload

    async def redo(self, number: str, line: int) -> Told:
        """The line once more, with a seed of its own."""

        def anew() -> Job:
            seed = secrets.randbelow(10**SEED_DIGITS)
            self._ready(number, line)
            self._store.edit(number, lambda script: redo(script, line, seed))
            return self._ready(number, line).job(line)

        async for payload in self._line(number, anew):
            yield payload

    async def audition(self, number: str, who: str) -> Told:
        """How a speaker sounds."""

        def phrase() -> SpeechRequest:
            own = self._store.open(number).project
            voice = self._store.resolve(own.casting.voice_of(who))
            return SpeechRequest(PHRASE, voice, own.delivery.language, seed=own.delivery.seed)

        async for payload in speaking(self._studio, phrase):
            yield payload

    def stop(self, number: str) -> None:
        """Stop making; what is done stays."""
        for making in self._makings.get(number, []):
            making.rendering.stop()

    def stop_take(self, take: str) -> None:
        """A player was stopped: so is what it was playing, unless others hear it too."""
        for hearing in [each for own in self._hearings.values() for each in own]:
            if hearing.take == take:
                hearing.stopped = True
                if hearing.making.holders == 1:
                    hearing.making.rendering.stop()

    async def _line(self, number: str, prepare: Callable[[], Job]) -> Told:
        try:
            job = _sounding(await asyncio.to_thread(prepare))
        except TimbreError as error:
            yield refusal(error.message)
            return
        sounds = (await asyncio.to_thread(self._store.look, number)).sounds
        assert sounds is not None
        making = Making(BatchSynthesis(self._studio.engine, [job], sounds), whole=False)
        hearing = Hearing(ScriptStream(making.rendering, owner=False), making)
        async with self._held(number, making):
            async for payload in self._heard(number, hearing):
                yield payload

    async def _heard(self, number: str, hearing: Hearing) -> AsyncIterator[Payload]:
        now = time.monotonic()
        known = [own for own in self._hearings[number] if now - (own.ended or now) < HEARD]
        self._hearings[number] = [*known, hearing]
        try:
            async for payload in self._studio.live.play(lambda: hearing.stream):
                hearing.take = payload["id"]
                yield payload
        finally:
            hearing.ended = time.monotonic()

    async def _making(
        self, opened: Opened, first: int, aloud: bool, wanted: Collection[int] | None
    ) -> Making:
        """The rendering that runs already, if it makes all that is to be heard; else a new one."""
        assert opened.sounds is not None
        running = self._whole(opened.number)
        if running:
            after = opened.jobs[opened.script.place(first) :]
            unmade = [job for job in after if status_of(job, opened.sounds) == "waiting"]
            if all(running.rendering.standing(job.key) for job in unmade):
                return running
            await running.rendering.cancel()
        rendering = BatchSynthesis(
            self._studio.engine,
            opened.jobs,
            opened.sounds,
            at_once=self._at_once(),
            listening=aloud,
            only=wanted,
        )
        return Making(rendering, whole=True)

    @asynccontextmanager
    async def _held(self, number: str, making: Making) -> AsyncIterator[None]:
        """The rendering runs while anybody holds it, and is known meanwhile."""
        making.holders += 1
        if making.holders == 1:
            self._makings[number].append(making)
            making.rendering.start()
        try:
            yield
        finally:
            making.holders -= 1
            if not making.holders:
                self._makings[number].remove(making)
                await making.rendering.cancel()
                self._failures[number].update(making.rendering.failures())
                self._asked.pop(number, None)

    def _at_once(self) -> int:
        """As many lines as the engine gives to files."""
        settings = self._studio.engine.settings
        return max(2, int(settings.max_num_seqs * settings.file_share))

    def _ready(self, number: str, line: int | None = None) -> Opened:
        if not number:
            raise InvalidText("There is nothing to speak yet. Write or paste a text first.")
        return self._store.ready(number, line)

    def _heard_line(self, number: str, line: int) -> Job:
        """A line that has its sound needs no voice any more."""
        opened = self._store.open(number)
        return opened.job(line) if opened.take(line) else self._ready(number, line).job(line)

    def _whole(self, number: str) -> Making | None:
        running = (own for own in self._makings.get(number, []) if own.whole)
        return next((own for own in running if not own.rendering.over), None)


def _sounding(job: Job) -> Job:
    """The line alone, without the silence after it."""
    if not job.key:
        raise RequestError("There is nothing to speak in this line.")
    return replace(job, pause=0.0)


def _first(opened: Opened, standing: Standing) -> int:
    """The line that a listener hears first: one that is still to be made, else the very first."""
    unmade = (job.line for job in opened.jobs if standing(job)[0] in ("waiting", "failed"))
    return next(unmade, opened.jobs[0].line)
