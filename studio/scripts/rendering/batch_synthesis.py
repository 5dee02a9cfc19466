"""Speaks a script: all lines as one batch, played in order, saved as they are done.

    jobs ── at most `at_once` in flight ──▶ engine ──▶ Track ──▶ Sounds (on disk, whole)
                                                         └─────▶ play(): pieces in order

Lines are spoken as files, with low priority; only the line that is played next is live. A rendering
ends when every line is done or has failed, or when its `async with` block is left; finished lines
are kept, so the next rendering continues there. One event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import Protocol

import numpy as np

from engine import (
    SAMPLE_RATE,
    Busy,
    InvalidAudio,
    Message,
    Pcm,
    SpeechRequest,
    SpeechStream,
    TimbreError,
)
from studio.scripts.line_audio import LineAudio, silence
from studio.scripts.line_requests import Job
from studio.scripts.rendering.concurrency import Pace
from studio.scripts.rendering.progress import Forecast, Progress
from studio.scripts.tracks import Status, Track, problem_of, status_of
from studio.time_stretch import Stretch, stretch

AT_ONCE = 8
HEARTBEAT = 0.4  # seconds between empty pieces of `play` while it waits
LONGEST_WAIT = 5.0  # seconds before a retry when the engine is busy
PIECE = SAMPLE_RATE  # samples

UNEXPECTED = Message("Something went wrong while this line was spoken. Press Regenerate.")
LOST = Message("The locked sound of this line is gone. Unlock the line, then press Regenerate.")

log = logging.getLogger(__name__)


class Speaker(Protocol):
    """The part of the engine that a rendering uses."""

    def submit(self, request: SpeechRequest) -> SpeechStream: ...


@dataclass(frozen=True, eq=False)
class Piece:
    """Audio of a line, or the silence after it. Empty: nothing is ready yet."""

    line: int
    pcm: Pcm
    spoken: bool = False  # the line's own sound is over


class BatchSynthesis:
    """Speaks jobs. Use it in an `async with` block; leaving the block stops it."""

    def __init__(
        self,
        speaker: Speaker,
        jobs: Sequence[Job],
        sounds: LineAudio,
        *,
        at_once: int = AT_ONCE,
        listening: bool = True,
        only: Collection[int] | None = None,
        yields: Callable[[Collection[int]], bool] = lambda streams: False,
    ) -> None:
        """`listening`: it is played while it is spoken. `only`: speak only these lines. `yields`:
        whether to begin no further line now, since others than its streams are in a hurry."""
        self._speaker, self._sounds, self._listening = speaker, sounds, listening
        self._jobs = {job.line: job for job in jobs}
        self._only, self._yields = only, yields
        wanted = [job for job in jobs if only is None or job.line in only]
        waiting = [job for job in wanted if status_of(job, sounds) == "waiting"]
        self._tracks = {job.key: Track(job) for job in reversed(waiting)}
        self._order = list(dict.fromkeys(job.key for job in waiting))
        self._queue = deque(self._order)
        self._forecast = Forecast(sum(job.size for job in waiting), monotonic)
        self._change = asyncio.Event()
        self._at_once = max(1, at_once)
        self._in_flight = 0
        self._pace = self._new_pace() if listening else None
        self._task: asyncio.Task[None] | None = None

    # State.

    def status(self, line: int) -> Status:
        job = self._jobs[line]
        track = self._tracks.get(job.key)
        return track.status if track else status_of(job, self._sounds)

    def error(self, line: int) -> str:
        """Why a line failed, and what to do; empty otherwise."""
        job = self._jobs[line]
        if job.key in self._tracks:
            return self._tracks[job.key].error
        return LOST if status_of(job, self._sounds) == "failed" else ""

    def status_of_key(self, key: str) -> tuple[Status, str] | None:
        """The status of the audio with this key, and its error; None if it is not in this batch."""
        track = self._tracks.get(key)
        return (track.status, track.error) if track else None

    def failures(self) -> dict[str, str]:
        """Errors by key."""
        return {key: each.error for key, each in self._tracks.items() if each.status == "failed"}

    def __contains__(self, line: object) -> bool:
        return line in self._jobs

    @property
    def first_error(self) -> str:
        """The error of the first failed line; empty if none failed."""
        errors = (self.error(line) for line in self._jobs if self.status(line) == "failed")
        return next(errors, "")

    def progress(self) -> Progress:
        statuses = [self.status(line) for line in self._jobs]
        done = statuses.count("done") + statuses.count("locked")
        return self._forecast.progress(done, statuses.count("failed"), len(statuses))

    @property
    def heard_next(self) -> SpeechStream | None:
        """The stream of the line that is played next, once it is submitted."""
        key = self._first_unfinished()
        return self._tracks[key].stream if key else None

    @property
    def complete(self) -> bool:
        """Whether every wanted line is done or has failed."""
        return all(track.status in ("done", "failed") for track in self._tracks.values())

    @property
    def over(self) -> bool:
        return self._task is not None and self._task.done()

    # Running.

    async def __aenter__(self) -> BatchSynthesis:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cancel()

    def start(self) -> None:
        """Start; the caller must call `cancel`."""
        self._forecast.start()
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Cancel lines in flight; finished lines are kept."""
        if self._task:
            self._task.cancel()

    async def cancel(self) -> None:
        """Stop, and wait until it has stopped."""
        self.stop()
        if self._task:
            with suppress(asyncio.CancelledError):
                await self._task

    def listen(self, listening: bool) -> None:
        """Tell whether the rendering has a listener now."""
        if listening != self._listening:
            self._listening = listening
            self._pace = self._new_pace() if listening else None
            self._notify()

    def replan(self, jobs: Sequence[Job]) -> None:
        """Take other jobs for the same script: lines that are not done are spoken as they are
        planned now, new lines too. A line that is just spoken is ended and kept as it was begun,
        then spoken anew; what is done stays as it is."""
        if self.over:
            return
        queued, known = set(self._queue), self._jobs
        begun = {key: self._tracks[key] for key in self._order if key not in queued}
        undone = queued | {key for key, track in begun.items() if not track.ended}
        open_ = [job for job in jobs if job.line not in known or known[job.line].key in undone]
        wanted = [job for job in open_ if self._only is None or job.line in self._only]
        waiting = [job for job in wanted if status_of(job, self._sounds) == "waiting"]
        fresh = {job.key: Track(job) for job in reversed(waiting) if job.key not in begun}
        for key in queued - fresh.keys():
            self._tracks[key].ended = True  # a waiting listener goes on with what is planned now
        self._jobs = {job.line: job for job in jobs}
        self._tracks = {**begun, **fresh}
        self._queue = deque(dict.fromkeys(job.key for job in waiting if job.key in fresh))
        self._order = [*begun, *self._queue]
        self._forecast.expect(_size_of([*begun.values(), *fresh.values()]))
        if self._pace:
            self._pace = self._new_pace()
        self._notify()

    async def ended(self, timeout: float | None = None) -> bool:
        """Wait until it has completed or was stopped; False after the timeout."""
        if self._task:
            await asyncio.wait({self._task}, timeout=timeout)
        return self.over

    async def wait(self) -> Progress:
        """Wait until every line is done or has failed."""
        if self._task:
            await asyncio.shield(self._task)
        return self.progress()

    async def changed(self, timeout: float = HEARTBEAT) -> bool:
        """Wait for a change; False after the timeout."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._change.wait(), timeout)
            return True
        return False

    async def play(
        self, start: int | None = None, heartbeat: float = HEARTBEAT
    ) -> AsyncIterator[Piece]:
        """The audio from line `start` on, in order, as soon as it is ready.

        Failed lines are skipped. A line is played as it is planned when its turn comes.
        """
        line = next(iter(self._jobs), None) if start is None else start
        while line is not None:
            job, planned, heard = self._jobs[line], self._jobs, 0
            async for pcm in self._audio_of(job, heartbeat):
                heard += len(pcm)
                yield Piece(line, pcm)
            if not heard and line in self._jobs and self._jobs[line].key != job.key:
                continue  # planned anew while it was waited for
            for pcm in _pieces(silence(job.pause)):
                yield Piece(line, pcm, bool(job.key))
            line = _following(line, planned, self._jobs)

    async def _audio_of(self, job: Job, heartbeat: float) -> AsyncIterator[Pcm]:
        track, heard = self._tracks.get(job.key), 0
        if track and not track.ended:
            chunks = track.chunks
            while not track.ended or heard < len(chunks):
                for chunk in chunks[heard:]:
                    heard += 1
                    yield chunk
                if not track.ended and heard == len(chunks) and not await self.changed(heartbeat):
                    yield silence(0)
        if not heard:
            for pcm in _pieces(await self._read(job.key)):
                yield pcm

    async def _read(self, key: str) -> Pcm:
        if key in self._sounds:
            with suppress(InvalidAudio):
                return await asyncio.to_thread(self._sounds.read, key)
        return silence(0)

    # Speaking.

    async def _run(self) -> None:
        workers = [asyncio.create_task(self._work()) for _ in range(self._at_once)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for track in self._tracks.values():
                track.ended = True
            self._notify()

    async def _work(self) -> None:
        while self._queue:
            crowded = self._pace and 0 < self._in_flight >= self._pace.allowed()
            if crowded or (not self._is_awaited() and self._yields(self._streams())):
                await self.changed()
                continue
            track = self._tracks[self._queue.popleft()]
            if track.job.key in self._sounds:  # spoken by another rendering meanwhile
                self._end(track, "done")
                continue
            self._in_flight += 1
            try:
                await self._speak(track)
            except asyncio.CancelledError:
                track.status = "waiting"
                raise
            except (TimbreError, OSError) as error:
                self._end(track, "failed", getattr(error, "message", str(error)))
            except Exception:
                log.exception("a line could not be spoken")
                self._end(track, "failed", UNEXPECTED)
            finally:
                self._in_flight -= 1

    async def _speak(self, track: Track) -> None:
        if track.job.natural in self._sounds:
            await self._change_speed(track)
            return
        pace = None if track.job.speed == 1 else Stretch(track.job.speed)
        async with await self._submit(track) as stream:
            track.status, track.stream = "speaking", stream
            self._notify()
            async for chunk in stream:
                self._add(track, pace.feed(chunk.pcm) if pace else chunk.pcm)
        if pace:
            self._add(track, pace.finish())
        problem = problem_of(stream.end, track)
        if problem:
            self._end(track, "failed", problem)
            return
        pcm = np.concatenate(track.chunks)
        await asyncio.to_thread(self._sounds.keep, track.job.key, pcm)
        self._forecast.made(track.job.size, len(pcm) / SAMPLE_RATE)
        self._end(track, "done")

    async def _change_speed(self, track: Track) -> None:
        """Stretch audio of the line's natural speed that exists; the engine is not used."""
        pcm = await asyncio.to_thread(self._sounds.read, track.job.natural)
        paced = await asyncio.to_thread(stretch, pcm, track.job.speed)
        await asyncio.to_thread(self._sounds.keep, track.job.key, paced)
        self._forecast.dropped(track.job.size)
        self._end(track, "done")

    def _add(self, track: Track, pcm: Pcm) -> None:
        track.chunks.append(pcm)
        track.samples += len(pcm)
        self._notify()

    def _new_pace(self) -> Pace:
        in_order = [self._tracks[key] for key in self._order]
        return Pace(in_order, self._at_once, monotonic)

    async def _submit(self, track: Track) -> SpeechStream:
        request = track.job.request
        assert request is not None
        while True:
            try:
                return self._speaker.submit(replace(request, live=self._is_next(track)))
            except Busy as busy:
                await asyncio.sleep(min(busy.retry_after, LONGEST_WAIT))

    def _streams(self) -> set[int]:
        """Ids of the lines in flight."""
        return {each.stream.id for each in self._tracks.values() if each.stream}

    def _is_awaited(self) -> bool:
        """Whether a listener waits for the line that would begin now."""
        return self._listening and self._first_unfinished() == self._queue[0]

    def _is_next(self, track: Track) -> bool:
        """Whether it is the line that is played next."""
        return self._listening and self._first_unfinished() == track.job.key

    def _first_unfinished(self) -> str | None:
        return next((key for key in self._order if not self._tracks[key].ended), None)

    def _end(self, track: Track, status: Status, error: str = "") -> None:
        if status == "failed":
            self._forecast.dropped(track.job.size)
        track.status, track.error, track.ended = status, error, True
        track.stream, track.chunks = None, []  # a listener keeps its own reference to the list
        self._notify()

    def _notify(self) -> None:
        self._change.set()
        self._change = asyncio.Event()


def _following(line: int, planned: Mapping[int, Job], now: Mapping[int, Job]) -> int | None:
    """The line after `line` as it is planned now; where it is gone, as it was planned before."""
    lines = iter(now if line in now else planned)
    next((each for each in lines if each == line), None)
    return next((each for each in lines if each in now), None)


def _size_of(tracks: Iterable[Track]) -> int:
    """Letters of tracks that have not ended."""
    return sum(track.job.size for track in tracks if not track.ended)


def _pieces(pcm: Pcm) -> Iterator[Pcm]:
    for start in range(0, len(pcm), PIECE):
        yield pcm[start : start + PIECE]
