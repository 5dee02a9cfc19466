"""Renderings of scripts on the server, and playback of what they make.

    speak() ─▶ Render ── lines as one batch ──▶ audio on disk
                  └── Listener: a player that hears the lines in order

A render belongs to the server: it goes on when its page is closed and is shown again at the next
visit. It ends when all lines are done, when a user presses Stop, or, unattended, at a bound.
A crash leaves a mark in the project, by which the page tells that the rendering was interrupted.
One event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from engine import InvalidText, Message, RequestError, SpeechEngine, SpeechRequest, TimbreError
from studio.scripts import BatchSynthesis, Job, Progress, ScriptStream, Status, status_of
from studio.scripts.edits import redo
from studio.scripts.open_script import OpenScript
from studio.scripts.rendering.batch_synthesis import LOST
from studio.scripts.rendering.word_takes import redo_words
from studio.scripts.store import ScriptStore
from studio.scripts.words.line_words import line_words, word_at
from studio.scripts.words.word_splice import Spliced
from studio.takes.event_transport import Payload, refusal
from studio.takes.live_take import About, Part
from studio.takes.live_takes import LiveTakes
from studio.takes.take_store import random_seed
from studio.voices.voice_catalog import PHRASE

MARKS = 100  # of a take that is heard; more than lie ahead of a listener
HEARD = 120.0  # seconds that a take is known after all of it was sent
SOON = 10.0  # seconds in which a press of Speak must have begun to prepare a rendering
MOST_UNATTENDED = 16  # renders that go on without a page; the one left first is stopped
GUESTS_UNATTENDED = 3600.0  # seconds that a guest's render goes on without a page
BEAT = 0.4  # seconds after which a closed page is noticed
CHECK = 5.0  # seconds between checks of a render
StatusOf: TypeAlias = Callable[[Job], tuple[Status, str]]
Payloads: TypeAlias = AsyncIterator[Payload | None]  # None: nothing new for the player


class Said(NamedTuple):
    """Speaker and text of a line, for the player bar."""

    who: str
    text: str


@dataclass(eq=False)
class Render:
    """A batch of a script's lines that is being rendered."""

    batch: BatchSynthesis
    whole: bool  # all of the script, not one line
    listeners: int = 0  # events of open pages
    stopped: bool = False  # by a user
    attended: float = field(default_factory=time.monotonic)  # when a page last looked
    task: asyncio.Task[None] | None = None
    changes: int = 0  # of the script since it has begun
    replanning: asyncio.Task[None] | None = None
    loop: asyncio.AbstractEventLoop | None = None  # once it has begun


@dataclass(eq=False)
class Listener:
    """A take in a player, and where its lines begin."""

    stream: ScriptStream
    render: Render
    lines: Mapping[int, Said]
    take: str = ""
    ended: float | None = None  # when all was sent; much of it may still be played

    def parts(self) -> list[Part]:
        """Where lines begin, with speaker and text, for the player bar."""
        begun = ((start, self.lines.get(line)) for start, line in self.stream.marks[-MARKS:])
        return [Part(start, *each) for start, each in begun if each]


class ScriptPlayback:
    """All renders of a store's scripts, and who listens to them. `guests`: a render that no page
    looks at is stopped after a while."""

    def __init__(
        self, store: ScriptStore, engine: SpeechEngine, live: LiveTakes, guests: bool = False
    ) -> None:
        self._store = store
        self._engine = engine
        self._live = live
        self._guests = guests
        self._renders: dict[str, list[Render]] = defaultdict(list)
        self._listeners: dict[str, list[Listener]] = defaultdict(list)
        self._failures: dict[str, dict[str, str]] = defaultdict(dict)  # by script, by key
        self._asked: dict[str, float] = {}
        self._begun: Counter[str] = Counter()  # renderings that are prepared
        store.on_change = self._changed

    # State.

    def expect(self, number: str) -> None:
        """A user has pressed Speak: `busy` holds for a short while."""
        now = time.monotonic()
        self._asked = {each: when for each, when in self._asked.items() if now - when < SOON}
        self._asked[number] = now

    def busy(self, number: str) -> bool:
        """Whether lines of this script are being rendered or heard, or soon will be."""
        pressed = self._asked.get(number, -SOON)
        spoken = self._begun[number] or self._renders.get(number) or self.listening(number)
        return bool(spoken) or time.monotonic() - pressed < SOON

    def progress(self, number: str) -> Progress | None:
        """The progress of the whole script, while it is being rendered."""
        render = self._whole(number)
        return render.batch.progress() if render else None

    def listening(self, number: str) -> bool:
        return any(listener.ended is None for listener in self._listeners.get(number, []))

    def heard(self, number: str) -> dict[str, list[tuple[int, int]]]:
        """For each take that is played: the samples where its latest lines begin, and the lines."""
        return {
            listener.take: listener.stream.marks[-MARKS:]
            for listener in self._listeners.get(number, [])
        }

    def line_status(self, opened: OpenScript) -> StatusOf:
        """The status of each line, and why it has failed."""
        batches = [render.batch for render in self._renders.get(opened.number, [])]
        failures = self._failures.get(opened.number, {})

        def of(job: Job) -> tuple[Status, str]:
            assert opened.sounds is not None
            stands = status_of(job, opened.sounds)
            for status in (each.status_of_key(job.key) for each in batches):
                if status and stands == "waiting":
                    return status
            if stands == "waiting" and job.key in failures:
                return "failed", failures[job.key]
            return stands, LOST if stands == "failed" else ""

        return of

    # Rendering and playback.

    async def speak(
        self, number: str, aloud: bool, start: int | None = None, at: int | None = None
    ) -> Payloads:
        """Render what is not rendered, from line `start` on, and play it in order: from the word
        at character `at` of that line, where it has sound."""
        with self._preparing(number):
            try:
                opened = await asyncio.to_thread(self._ready, number)
                first = _first(opened, self.line_status(opened)) if start is None else start
                after = opened.script.lines[opened.script.place(first) :]
                wanted = None if start is None else {line.id for line in after}
                skip = 0 if at is None else await asyncio.to_thread(_begins, opened, first, at)
            except TimbreError as error:
                yield refusal(error.message)
                return
            render = await self._render_of(opened, first, aloud, wanted)
            bed = await asyncio.to_thread(opened.bed, first)
            stream = ScriptStream(render.batch, first, owner=False, skip=skip, music=bed)
            listener = Listener(stream, render, await asyncio.to_thread(self._spoken, opened))
        async with self._joined(number, render, aloud):
            if aloud:
                async for payload in self._heard(number, listener):
                    yield payload
                return  # played to its end or replaced in its player: the render goes on
            yield None  # the page shows at once that this is rendered
            while not await render.batch.ended(BEAT):
                yield None  # not for each chunk: the page polls the lines

    @contextmanager
    def _preparing(self, number: str) -> Iterator[None]:
        """A long script takes seconds before it is rendered: the page looks again meanwhile."""
        self._begun[number] += 1
        try:
            yield
        finally:
            self._begun[number] -= 1
            self._begun += Counter()  # without what is none

    async def listen(self, number: str, line: int, aloud: bool = True) -> Payloads:
        """Render one line where it has no audio, and play it if `aloud`."""
        async for payload in self._line(number, lambda: self._heard_line(number, line), aloud):
            yield payload

    async def take(self, number: str, line: int, key: str) -> Payloads:
        """Play a take of a line, also one that is not in use."""

        def kept() -> Job:
            opened = self._store.open(number)
            takes = opened.takes(opened.script.line(line))
            if all(each.key != key for each in takes):
                raise InvalidText("This take is gone. Press Regenerate to make another.")
            return Job(line, key, None, 0, 0.0)

        async for payload in self._line(number, kept):
            yield payload

    async def redo(self, number: str, line: int, aloud: bool = True) -> Payloads:
        """Render a line once more with another seed, and play it if `aloud`."""

        def anew() -> Job:
            seed = random_seed()
            self._ready(number, line)
            place = self._store.look(number).script.place(line) + 1
            name = Message("the take of line {place}", place=place)
            self._store.edit(number, lambda script: redo(script, line, seed), name)
            return self._ready(number, line).job(line)

        async for payload in self._line(number, anew, aloud):
            yield payload

    async def redo_words(
        self,
        number: str,
        line: int,
        words: range,
        tell: Callable[[Spliced], object],
        aloud: bool = True,
    ) -> Payloads:
        """Take the words at characters `words` of a line from another take of it, and play the
        line if `aloud`; `tell` is called with how they were joined."""
        try:
            tell(await redo_words(self._store, self._engine, number, line, words))
        except TimbreError as error:
            yield refusal(error.message)
            return
        async for payload in self.listen(number, line, aloud):
            yield payload

    async def audition(self, number: str, who: str) -> Payloads:
        """Play a sentence in a speaker's voice."""

        try:
            project = (await asyncio.to_thread(self._store.look, number)).project
        except TimbreError as error:
            yield refusal(error.message)
            return
        key = project.casting.voice_of(who)

        def phrase() -> SpeechRequest:
            voice = self._store.resolve(key)
            return SpeechRequest(
                PHRASE, voice, project.delivery.language, seed=project.delivery.seed
            )

        async for payload in self._live.speak(
            self._engine, phrase, self._store.choices().shown(key)
        ):
            yield payload

    def stop(self, number: str) -> None:
        """Stop rendering; finished lines are kept."""
        for render in self._renders.get(number, []):
            _stop(render)

    async def resume(self) -> None:
        """Go on with what the server's last end has broken off; called when the server begins."""
        titles = await asyncio.to_thread(self._store.titles)
        broken = [number for number in titles if self._store.is_rendering(number)]
        with ExitStack() as prepared:
            for number in broken:
                prepared.enter_context(self._preparing(number))
            while not self._engine.capabilities():  # no model yet
                await asyncio.sleep(CHECK)
            for number in broken:
                with suppress(TimbreError, OSError):
                    await self._resume(number)

    async def _resume(self, number: str) -> None:
        opened = await asyncio.to_thread(self._ready, number)
        done = sum(status in ("done", "locked") for status in self._statuses(opened))
        if await asyncio.to_thread(self._store.resume_rendering, number, done):
            render = await self._render_of(opened, opened.jobs[0].line, False, None)
            async with self._joined(number, render, aloud=False):
                pass  # nobody listens

    def _statuses(self, opened: OpenScript) -> list[Status]:
        standing = self.line_status(opened)
        return [standing(job)[0] for job in opened.jobs]

    def _changed(self, number: str) -> None:
        """A script was changed, in whatever thread: its running render takes the lines as they
        are now."""
        for render in [each for each in self._renders.get(number, ()) if each.whole]:
            if render.loop and not render.loop.is_closed():
                render.loop.call_soon_threadsafe(self._replan_soon, number, render)

    def _replan_soon(self, number: str, render: Render) -> None:
        render.changes += 1
        if render.replanning is None or render.replanning.done():
            render.replanning = asyncio.create_task(self._replan(number, render))

    async def _replan(self, number: str, render: Render) -> None:
        """Plan again until the plan is that of the latest change."""
        planned = 0
        while planned != render.changes:
            planned = render.changes
            with suppress(TimbreError):  # a voice is gone: what was planned goes on
                opened = await asyncio.to_thread(self._store.ready, number)
                render.batch.replan(opened.jobs)

    def stop_take(self, take: str) -> None:
        """Stop the rendering that a stopped player played, unless others listen to it."""
        for listener in [one for each in self._listeners.values() for one in each]:
            if listener.take == take:
                listening = listener.ended is None  # whether its event still counts as a listener
                if listener.render.listeners == listening:
                    _stop(listener.render)

    def interrupted(self, opened: OpenScript) -> bool:
        """Whether a rendering ended before its last line without being stopped, and does not go on
        by itself."""
        runs = self._renders.get(opened.number) or self._begun[opened.number]
        return self._store.is_rendering(opened.number) and not runs

    def attend(self, number: str) -> None:
        """A page shows this script."""
        for render in self._renders.get(number, []):
            render.attended = time.monotonic()

    async def _line(self, number: str, prepare: Callable[[], Job], aloud: bool = True) -> Payloads:
        try:
            job = _sounding(await asyncio.to_thread(prepare))
        except TimbreError as error:
            yield refusal(error.message)
            return
        opened = await asyncio.to_thread(self._store.look, number)
        assert opened.sounds is not None
        batch = BatchSynthesis(self._engine, [job], opened.sounds, listening=aloud)
        render = Render(batch, whole=False)
        stream = ScriptStream(render.batch, owner=False)
        listener = Listener(stream, render, await asyncio.to_thread(self._spoken, opened))
        async with self._joined(number, render, aloud):
            if aloud:
                async for payload in self._heard(number, listener):
                    yield payload
                return
            while not await batch.ended(BEAT):
                yield None  # what plays in the page plays on

    def _spoken(self, opened: OpenScript) -> dict[int, Said]:
        """For each line its speaker, with the voice, and its text."""
        script, casting, choices = opened.script, opened.project.casting, self._store.choices()
        cast = casting.voices_of(script.speakers)
        voices = {who: choices.shown(voice) for who, voice in cast.items()}
        names = {who: " · ".join(filter(None, (who, voices[who]))) for who in voices}
        return {
            line.id: Said(names[line.speaker], job.said)
            for line, job in zip(script.lines, opened.jobs, strict=True)
            if line.text
        }

    async def _heard(self, number: str, listener: Listener) -> AsyncIterator[Payload]:
        now = time.monotonic()
        known = [
            listener
            for listener in self._listeners[number]
            if now - (listener.ended or now) < HEARD
        ]
        self._listeners[number] = [*known, listener]
        try:
            about = About("", "", listener.parts)
            async for payload in self._live.play(lambda: listener.stream, about=about):
                listener.take = payload["id"]
                yield payload
        finally:
            listener.ended = time.monotonic()

    async def _render_of(
        self, opened: OpenScript, first: int, aloud: bool, wanted: Collection[int] | None
    ) -> Render:
        """The running render, if it has all lines that will be played; else a new one."""
        assert opened.sounds is not None
        running = self._whole(opened.number)
        if running:
            after = opened.jobs[opened.script.place(first) :]
            unrendered = [job for job in after if status_of(job, opened.sounds) == "waiting"]
            if all(running.batch.status_of_key(job.key) for job in unrendered):
                return running
            await running.batch.cancel()
        batch = BatchSynthesis(
            self._engine,
            opened.jobs,
            opened.sounds,
            at_once=self._at_once(),
            listening=aloud,
            only=wanted,
            yields=self._engine.hurried,
        )
        return Render(batch, whole=True)

    @asynccontextmanager
    async def _joined(self, number: str, render: Render, aloud: bool = True) -> AsyncIterator[None]:
        """A listener's event; the first one starts the render."""
        render.listeners += 1
        if render.task is None:
            if render.whole:
                with suppress(TimbreError):  # rendering works without the mark
                    self._store.begin_rendering(number)
            self._renders[number].append(render)
            render.loop = asyncio.get_running_loop()
            render.batch.start()
            render.task = asyncio.create_task(self._supervise(number, render))
        elif aloud:
            render.batch.listen(True)
        try:
            yield
        finally:
            render.listeners -= 1
            render.attended = time.monotonic()
            if render.batch.over:
                self._finish(number, render)
            elif not render.listeners:
                render.batch.listen(False)
                self._bound_unattended()

    async def _supervise(self, number: str, render: Render) -> None:
        """Wait for the end of a render; stop a guest's that no page has polled for long."""
        try:
            while not await render.batch.ended(CHECK):
                alone = time.monotonic() - render.attended
                if self._guests and not render.listeners and alone > GUESTS_UNATTENDED:
                    render.batch.stop()
        finally:
            self._finish(number, render)

    def _finish(self, number: str, render: Render) -> None:
        """Remember its failures. The mark of a render that broke off stays."""
        if render not in self._renders[number]:
            return
        self._renders[number].remove(render)
        self._failures[number].update(render.batch.failures())
        self._asked.pop(number, None)
        if render.whole and (render.stopped or render.batch.complete):
            self._store.end_rendering(number)

    def _bound_unattended(self) -> None:
        renders = [
            each for render in self._renders.values() for each in render if not each.listeners
        ]
        for render in sorted(renders, key=lambda each: each.attended)[:-MOST_UNATTENDED]:
            render.batch.stop()

    def _at_once(self) -> int:
        """The number of slots that the engine gives to files."""
        settings = self._engine.settings
        return max(2, int(settings.max_num_seqs * settings.file_share))

    def _ready(self, number: str, line: int | None = None) -> OpenScript:
        if not number:
            raise InvalidText("There is nothing to speak yet. Write or paste a text first.")
        return self._store.ready(number, line)

    def _heard_line(self, number: str, line: int) -> Job:
        """The job of a line; a line that has audio needs no voice."""
        opened = self._store.open(number)
        return opened.job(line) if opened.take(line) else self._ready(number, line).job(line)

    def _whole(self, number: str) -> Render | None:
        running = (render for render in self._renders.get(number, []) if render.whole)
        return next((render for render in running if not render.batch.over), None)


def _begins(opened: OpenScript, line: int, at: int) -> int:
    """The sample at which the word at a character of a line's text begins; 0 without sound."""
    key = opened.take(line)
    if not key or opened.sounds is None:
        return 0
    words = line_words(opened.script.line(line).text, opened.sounds.read(key))
    return words[word_at(words, at)].begins if words else 0


def _stop(render: Render) -> None:
    render.stopped = True
    render.batch.stop()


def _sounding(job: Job) -> Job:
    """The line alone, without the silence after it."""
    if not job.key:
        raise RequestError("There is nothing to speak in this line.")
    return replace(job, pause=0.0)


def _first(opened: OpenScript, standing: StatusOf) -> int:
    """The line where playback begins: the first unrendered one, else the first."""
    unrendered = (job.line for job in opened.jobs if standing(job)[0] in ("waiting", "failed"))
    return next(unrendered, opened.jobs[0].line)
