"""Live takes, and the two ways in which their audio reaches a browser.

    stream ── LiveTake ─┬─▶ play()           a Gradio event: base64 PCM16 and state
                        └─▶ GET timbre/live   the studio's route: raw PCM16

Both read the same take by sample position, so a browser may use either, both, or switch in the
middle and drop what it has. While the raw route is read the event carries state only. The event
owns the take: cancelling it cancels the request. Where its connection broke, a take that was read
on the raw route goes on for RESUME seconds, and as long as it is read again: its player goes on
where it was. A page that is left says so: the request is cancelled at once, what was made is kept.

Messages in payloads are data, which a page translates. Knows no page.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from typing import TypeAlias

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import StreamingResponse

from engine import End, Message, Pcm, SpeechEngine, SpeechRequest, TimbreError
from studio.takes.event_transport import Ended, EventTransport, Payload, ending, refusal
from studio.takes.live_take import HEARTBEAT, UNNAMED, About, LiveTake, Stream

RAW_PATH = "timbre/live"
KEPT_SECONDS = 60.0  # seconds for which a finished take can be read
RESUME = 20.0  # seconds for which a take whose listener's connection broke waits for him

log = logging.getLogger(__name__)

# Saves a finished take and returns its id; told whether its listener stopped it. Runs in a thread.
Keep: TypeAlias = Callable[[Pcm, End, bool], str]


class LiveTakes:
    """Live takes by an id that cannot be guessed and is the permission to listen."""

    def __init__(self, raw: bool = True, speed: Callable[[], float | None] = lambda: None) -> None:
        self._speed = speed  # of this machine: audio seconds a second, if known
        self._raw = raw  # off if the studio's own route cannot be reached, as on ZeroGPU
        self._takes: dict[str, LiveTake] = {}
        self._keeping: dict[str, asyncio.Task[Ended]] = {}  # by take
        self._left: set[asyncio.Task[None]] = set()  # keeps references to the tasks

    async def play(
        self,
        submit: Callable[[], Stream],
        keep: Keep | None = None,
        about: About = UNNAMED,
        early: bool = False,
    ) -> AsyncGenerator[Payload, None]:
        """Submit a request and yield payloads for a player; used by a tab's handler. `early`: the
        player does not wait for what a slow machine has not made yet."""
        try:  # in a thread: a long text takes a while, and the engine may be in another process
            stream, speed = await asyncio.to_thread(lambda: (submit(), self._speed()))
        except TimbreError as error:
            yield refusal(error.message)
            return
        take = LiveTake(stream, about, speed, early)
        self._takes[take.id] = take
        try:
            async for payload in self._tell(take, keep):
                yield payload
        finally:
            if take.ended or take.left or (take.read_last is None and not take.readers):
                self._end(take)
            else:
                waiting = asyncio.create_task(self._await_listener(take))
                self._left.add(waiting)
                waiting.add_done_callback(self._left.discard)

    async def _await_listener(self, take: LiveTake) -> None:
        """Its event is gone; its listener may only have lost the connection."""
        try:
            while not (take.ended or take.left or take.unheard > RESUME):
                await take.change(HEARTBEAT)
        finally:
            self._end(take)

    def _end(self, take: LiveTake) -> None:
        take.cancel()
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self._forget, take.id)

    def _forget(self, id: str) -> None:
        self._takes.pop(id, None)
        self._keeping.pop(id, None)

    async def speak(
        self, engine: SpeechEngine, prepare: Callable[[], SpeechRequest], voice: str = ""
    ) -> AsyncGenerator[Payload, None]:
        """`play` a request that `prepare` makes in a thread; its refusal is a payload too."""
        try:
            request = await asyncio.to_thread(prepare)
        except TimbreError as error:
            yield refusal(error.message)
            return
        about = About(voice, str(request.text))
        async for payload in self.play(lambda: engine.submit(request), about=about):
            yield payload

    async def _tell(self, take: LiveTake, keep: Keep | None) -> AsyncGenerator[Payload, None]:
        telling = EventTransport(take, f"{RAW_PATH}/{take.id}" if self._raw else None)
        kept = self._kept(take, keep) if keep else None
        yield telling.payload()
        while not telling.complete:
            await telling.wait()
            yield telling.payload()
        ended = ending(take)
        if kept is not None:
            yield telling.payload(ended)
            ended = await asyncio.shield(kept)
        yield {**telling.payload(ended), "state": "done"}

    def _kept(self, take: LiveTake, keep: Keep) -> asyncio.Task[Ended]:
        """Save it when it has ended, also if its listener left early."""
        work = self._keeping[take.id] = asyncio.create_task(_kept(take, keep))
        return work

    def missing(self, id: str, start: int) -> Payload | None:
        """Audio from a sample on, and how it has ended, for a browser that has a gap."""
        take = self._takes.get(id)
        if take is None:
            return None
        telling, kept = EventTransport(take, start=start), self._keeping.get(id)
        if not take.ended or (kept and not kept.done()):
            return telling.payload()
        return {**telling.payload(kept.result() if kept else ending(take)), "state": "done"}

    def leave(self, id: str) -> None:
        """The listener has stopped it: cancel the request."""
        if take := self._takes.get(id):
            take.left = not take.ended
            take.cancel()

    def router(self) -> APIRouter:
        """The raw route: `GET timbre/live/{id}?from=sample` returns PCM16, 24 kHz, mono."""
        router = APIRouter()

        @router.get(f"/{RAW_PATH}/{{id}}", include_in_schema=False)
        async def listen(id: str, start: int = Query(0, alias="from", ge=0)) -> StreamingResponse:
            take = self._takes.get(id)
            if take is None or not self._raw:
                raise HTTPException(404, "This take is over. Speak it again.")
            headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            return StreamingResponse(take.read(start), media_type="audio/pcm", headers=headers)

        @router.post(f"/{RAW_PATH}/{{id}}/leave", status_code=204, include_in_schema=False)
        async def gone(id: str) -> None:
            """Its page was closed or loaded again: nobody stopped it, so what was made is kept."""
            if take := self._takes.get(id):
                take.cancel()

        return router


async def _kept(take: LiveTake, keep: Keep) -> Ended:
    """The end with the id of the saved take; an error is reported, not raised."""
    await take.over()
    ended = ending(take)
    if take.end is None or not take.made:
        return ended
    try:
        return {**ended, "take": await asyncio.to_thread(keep, take.pcm(), take.end, take.left)}
    except Exception:
        log.exception("a take could not be kept")
        return {
            **ended,
            "message": Message("This take could not be saved. Is the disk full?"),
        }
