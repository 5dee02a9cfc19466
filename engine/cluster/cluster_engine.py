"""An engine whose requests are spoken by replicas: engines in other processes, on any machine.

    here    ClusterEngine.submit ──▶ one event loop ──▶ Replicas.speak ─┐ any transport
    there   an Engine ◀── Replica.speak ◀───────────────────────────────┘
            taken, chunks, one end come back; appended text follows the request

Here requests are checked and streams returned. A replica that is full is passed over. A request
that nobody has heard yet is tried again elsewhere when its replica is lost; one that is heard ends
with an error, since another replica would go on with another voice print. Knows no transport.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn, Protocol, TypeVar
from uuid import uuid4

from engine.base_engine import CLOSED, BaseEngine
from engine.cluster.cluster_stats import add_up
from engine.cluster.replica import Parts, Refused, Taken
from engine.config import EngineSettings
from engine.errors import Busy, EngineClosed, EngineError, NotCapable, TimbreError
from engine.messages import Message
from engine.plan import Checkpoint
from engine.requests.output_queue import OutputQueue
from engine.requests.sequence import Sequence
from engine.requests.streaming_text import StreamingText
from engine.scheduler.admission import joined
from engine.stats import Counters, Stats
from engine.stream import Handles, SpeechStream
from engine.types import Chunk, Clone, End, SpeechRequest, Waveform
from engine.voices.routing import cloner, restrict

MOST_LOSSES = 3  # replicas that one request may lose before it is given up
LOOK_SECONDS = 1.0  # between two looks at the replicas
STALE_SECONDS = 10.0  # after which what was seen of them counts no more
CALL_SECONDS = 300.0  # for loading a model, or encoding a recording
LONGEST_PAUSE = 2.0  # seconds after which replicas that are full are asked again

LOST = Message("The replica that spoke this has stopped. Start it again.")
UNREACHED = Message("No replica could take this. Try again in a minute.")

_T = TypeVar("_T")


class ReplicaLost(Exception):
    """A replica ended, or could not be reached, before it had said how a request ends."""


class Replicas(Protocol):
    """The transport. Used from one event loop."""

    def speak(self, key: str, request: SpeechRequest, avoid: frozenset[str]) -> Parts:
        """See `Replica.speak`, on any replica; on one of `avoid` only if there is no other.

        Raises ReplicaLost. Closing it early cancels the request there.
        """

    async def append(self, key: str, text: str | None) -> None:
        """See `Replica.append`."""

    async def clone(
        self, audio: Waveform, transcript: str, model: str | None
    ) -> Clone | TimbreError: ...

    async def load(self, model: str, wanted: bool) -> TimbreError | None:
        """Load or unload a model on every replica."""

    async def look(self) -> Mapping[str, Stats]:
        """The statistics of each replica, by its name."""

    @property
    def dashboard(self) -> str:
        """Where an operator sees the processes; empty: nowhere."""


@dataclass(eq=False)
class Relay:
    """One request on its way through the cluster. Used from the event loop alone."""

    key: str
    request: SpeechRequest
    sequence: Sequence
    refused: set[str] = field(default_factory=set)  # replicas that have not taken it, or lost it
    losses: int = 0
    holder: str = ""  # the replica that took it last
    texts: list[str | None] = field(default_factory=list)  # appended so far; None closes
    arrived: asyncio.Event = field(default_factory=asyncio.Event)  # further text
    task: asyncio.Task[None] | None = None


class ClusterEngine(BaseEngine):
    """Serves each request by one of many replicas."""

    def __init__(
        self,
        checkpoints: Mapping[str, Checkpoint],
        settings: EngineSettings,
        replicas: Replicas,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(checkpoints, settings, clock)
        self._counters = Counters()
        self._replicas = replicas
        self._seen: Mapping[str, Stats] = {}
        self._seen_at = clock()
        self._taken: set[int] = set()  # requests that a replica has
        self._taken_then = 0  # of them, when the replicas were seen
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="timbre-cluster", daemon=True)
        self._thread.start()

    # Requests.

    def submit(self, request: SpeechRequest) -> SpeechStream:
        """Start a request and return at once. Raises Busy where the replicas are full.

        One that was admitted waits here while none of them takes it.
        """
        self._registry.check_open()
        on_admitted = self.admission_hook()
        accepted = self._input_processor.process(request)
        sequence, output = accepted.sequence, OutputQueue()
        self._registry.register(sequence, output, partial(self._check, sequence))
        relay = Relay(uuid4().hex, replace(request, seed=sequence.seed), sequence)
        text = accepted.text and RemoteText(
            accepted.text, sequence, self._clock, partial(self._call_soon, self._add_text, relay)
        )
        handles = Handles(partial(self._call_soon, self._cancel, relay), text or None)
        stream = SpeechStream(output, sequence, handles, self.postprocess)
        self._call_soon(self._start, relay)  # before anybody can cancel it
        on_admitted(stream)
        return stream

    def clone(self, audio: Waveform, transcript: str = "", model: str | None = None) -> Clone:
        """Make a voice from checked reference audio; on one of the replicas."""
        self._registry.check_open()
        name = cloner(self._checkpoints, model)
        clone = self._wait(self._replicas.clone(audio, transcript, name))
        if isinstance(clone, TimbreError):
            raise clone
        return clone

    # Models.

    def load(self, model: str, wanted: bool = True) -> None:
        """Load a model on every replica, and wait for it."""
        restrict(self._checkpoints, model)
        if error := self._wait(self._replicas.load(model, wanted)):
            raise error

    def unload(self, model: str) -> None:
        self.load(model, wanted=False)

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> NoReturn:
        raise NotCapable(
            "The models of a cluster are part of its configuration: change them there and deploy "
            "it again. Replicas are exchanged one after another, and no stream is lost."
        )

    def add(self, name: str, checkpoint: Checkpoint) -> NoReturn:
        self.exchange("", name, checkpoint)

    def stats(self) -> Stats:
        """What the replicas said last, added up. Latencies and gaps are those of this side."""
        fresh = self._clock() - self._seen_at < STALE_SECONDS
        total = add_up(self._seen if fresh else {}, self._counters, self._registry.refused)
        return replace(total, dashboard=self._replicas.dashboard)

    # The end.

    def close(self) -> None:
        """Stop now; the replicas stay."""
        self._registry.end_all(CLOSED)
        self._call_soon(self._stop)
        self._thread.join(5)

    def _check(self, new: Sequence, ahead: list[Sequence]) -> None:
        """By what was seen of the replicas, less what the clients of their own APIs take up."""
        seen = tuple(self._seen.values())
        known = joined([stats.admission for stats in seen])
        others = max(0, sum(each.running + each.waiting for each in seen) - self._taken_then)
        places = known.places or max(1, len(seen)) * self.settings.max_num_seqs
        free = replace(known, places=places - others, slots=max(1, known.slots - others))
        free.check(new, ahead, self.settings)

    # The event loop's thread.

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.create_task(self._look())
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        with suppress(Exception):
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def _stop(self) -> None:
        self._loop.stop()

    def _call_soon(self, act: Callable[..., object], *values: object) -> None:
        """Also called from finalisers; takes no lock."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(act, *values)

    def _wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Wait in the caller's thread for what the event loop does."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_SECONDS)
        except (ReplicaLost, TimeoutError) as error:
            raise EngineError(UNREACHED) from error
        except RuntimeError as error:  # the loop is closed
            work.close()
            raise EngineClosed(CLOSED) from error

    async def _look(self) -> None:
        while True:
            with suppress(Exception):  # then there is no replica, or it does not answer
                taken = len(self._taken)
                self._seen = await asyncio.wait_for(self._replicas.look(), STALE_SECONDS)
                self._taken_then = max(taken, len(self._taken))
                self._seen_at = self._clock()
            await asyncio.sleep(LOOK_SECONDS)

    def _start(self, relay: Relay) -> None:
        relay.task = self._loop.create_task(self._serve(relay))

    def _cancel(self, relay: Relay) -> None:
        if relay.task is None or relay.task.done():
            return
        relay.task.cancel()
        sequence = relay.sequence
        self._taken.discard(sequence.id)
        self._deliver(sequence, End("cancelled", sequence.delivered, sequence.seed))

    def _add_text(self, relay: Relay, text: str | None) -> None:
        relay.texts.append(text)
        relay.arrived.set()

    async def _serve(self, relay: Relay) -> None:
        """Ask replicas until one has spoken it, or there is an end that another cannot better."""
        sequence = relay.sequence
        try:
            end = await self._attempt(relay)
            while end is None:
                end = await self._attempt(relay)
        except Exception as error:
            failed = error if isinstance(error, TimbreError) else EngineError(str(error))
            end = End("error", sequence.delivered, sequence.seed, failed)
        self._taken.discard(sequence.id)
        self._deliver(sequence, end)

    async def _attempt(self, relay: Relay) -> End | None:
        """Have one replica speak it; None: another one should."""
        sending = None
        try:
            async with aclosing(self._speak(relay)) as parts:
                async for part in parts:
                    if isinstance(part, End):
                        return part
                    if isinstance(part, Refused):
                        return await self._refuse(relay, part)
                    if isinstance(part, Taken):
                        self._take(relay, part)
                        if relay.request.open_text and sending is None:
                            sending = asyncio.create_task(self._send_texts(relay))
                    else:
                        self._hear(relay, part)
            raise ReplicaLost
        except ReplicaLost as error:
            return self._lose(relay, error)
        finally:
            if sending:
                sending.cancel()

    def _speak(self, relay: Relay) -> Parts:
        avoid = frozenset(relay.refused) | self._without(relay)
        return self._replicas.speak(relay.key, relay.request, avoid)

    def _without(self, relay: Relay) -> frozenset[str]:
        """Replicas that would load its model first, while one that may be asked has it."""
        talker, seen = relay.sequence.talker, self._seen
        having = {name for name, stats in seen.items() if talker in stats.talkers}
        return frozenset(seen.keys() - having if having - relay.refused else ())

    def _take(self, relay: Relay, part: Taken) -> None:
        sequence = relay.sequence
        sequence.position, sequence.estimate = part.position, part.estimate
        sequence.placed, relay.holder = part.position is None, part.replica
        self._taken.add(sequence.id)

    def _hear(self, relay: Relay, chunk: Chunk) -> None:
        sequence = relay.sequence
        sequence.position, sequence.placed = None, True
        sequence.delivered += chunk.frames
        excused = relay.request.open_text  # its text may have been late
        sequence.playback.deliver(chunk.seconds, self._clock(), excused)
        self._deliver(sequence, chunk)

    async def _refuse(self, relay: Relay, part: Refused) -> End | None:
        """None: another replica is asked, or the same ones again once each has refused it."""
        everywhere = not part.replica or part.replica in relay.refused
        relay.refused.add(part.replica)
        if not isinstance(part.error, Busy | EngineClosed):
            return End("error", 0, relay.sequence.seed, part.error)
        if not everywhere:
            return None
        if isinstance(part.error, EngineClosed):
            return End("error", 0, relay.sequence.seed, part.error)
        relay.sequence.position, relay.sequence.estimate = 0, part.error.retry_after
        await asyncio.sleep(min(part.error.retry_after, LONGEST_PAUSE))
        relay.refused.clear()
        return None

    def _lose(self, relay: Relay, error: ReplicaLost) -> End | None:
        sequence = relay.sequence
        relay.losses += 1
        self._taken.discard(sequence.id)
        sequence.placed = False
        if sequence.delivered:
            return End("error", sequence.delivered, sequence.seed, EngineError(LOST))
        if relay.losses >= MOST_LOSSES:
            return End("error", 0, sequence.seed, EngineError(UNREACHED))
        if relay.holder:
            relay.refused.add(relay.holder)
        return None

    async def _send_texts(self, relay: Relay) -> None:
        """Send the text so far, and what is appended, in order."""
        sent = 0
        with suppress(ReplicaLost):  # which ends the attempt as well
            while True:
                relay.arrived.clear()
                for text in relay.texts[sent:]:
                    await self._replicas.append(relay.key, text)
                    sent += 1
                await relay.arrived.wait()

    def _deliver(self, sequence: Sequence, item: Chunk | End) -> None:
        self._counters.record(sequence, item)
        self._registry.deliver(sequence, item)


class RemoteText:
    """Takes text for an open request: checked here, spoken there by the same rules."""

    def __init__(
        self,
        checked: StreamingText,
        sequence: Sequence,
        clock: Callable[[], float],
        send: Callable[[str | None], object],
    ) -> None:
        self._checked, self._send = checked, send
        checked.connect(lambda piece: sequence.append(piece, clock()))  # counts its ids

    def append(self, text: str) -> None:
        """Raises InvalidText; the replica drops the same text."""
        try:
            self._checked.append(text)
        finally:
            self._send(text)

    def close(self) -> None:
        self._checked.close()
        self._send(None)
