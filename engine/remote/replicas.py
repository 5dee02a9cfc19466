"""Many engines as the far side of one: replicas in other processes, on any machine.

    here    ReplicaPool.speak ──▶ one event loop ──▶ Replicas.speak ─┐ Ray, or anything else
    there   an Engine ◀── Replica.speak ◀────────────────────────────┘

A replica that is full is passed over, and so is one that lost the request before. Knows no
transport between machines.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import TimeoutError as Late
from contextlib import aclosing, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from engine.config import EngineSettings
from engine.errors import Busy, EngineClosed, EngineError, NotCapable, TimbreError
from engine.messages import Message
from engine.remote.protocol import Lost, Refused, Taken, as_timbre_error
from engine.remote.remote_engine import RemoteEngine, Transport
from engine.remote.replica import Parts
from engine.requests.sequence import Sequence, TextPiece
from engine.scheduler.admission import Admission, joined
from engine.speech_engine import CLOSED
from engine.stats import Counters, Stats, add_up
from engine.types import End

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
    """The way between processes. Used from one event loop."""

    @property
    def dashboard(self) -> str:
        """Where an operator sees the processes; empty: nowhere."""

    def speak(self, key: str, sequence: Sequence, avoid: frozenset[str]) -> Parts:
        """See `Replica.speak`, on any replica; on one of `avoid` only if there is no other.

        Raises ReplicaLost. Closing it early cancels the request there.
        """

    async def ask(self, method: str, *arguments: Any, each: bool = True) -> list[Any]:
        """See `Replica.ask`; on each replica, or on any: what those say that answer.

        Raises ReplicaLost if none does.
        """


@dataclass(eq=False)
class Relay:
    """One request on its way to a replica. Used from the event loop alone."""

    sequence: Sequence
    sent: Sequence  # as it was when it was given to the replicas
    refused: set[str]  # replicas that have not taken it, or lost it
    key: str = field(default_factory=lambda: uuid4().hex)
    holder: str = ""  # the replica that took it last
    pieces: list[TextPiece] = field(default_factory=list)  # appended since
    arrived: asyncio.Event = field(default_factory=asyncio.Event)  # further text
    task: asyncio.Task[None] | None = None


class ReplicaPool(Transport):
    """The transport of a `RemoteEngine` to many replicas."""

    def __init__(
        self,
        replicas: Replicas,
        settings: EngineSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._replicas, self._settings, self._clock = replicas, settings, clock
        self._seen: Mapping[str, Stats] = {}
        self._seen_at = clock()
        self._relays: dict[int, Relay] = {}
        self._taken: set[int] = set()  # requests that a replica has
        self._taken_then = 0  # of them, when the replicas were seen
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="timbre-cluster", daemon=True)

    # For the engine.

    @property
    def admission(self) -> Admission:
        """The replicas' free places, less those that clients of the replicas' APIs take up."""
        seen = tuple(self._seen.values())
        known = joined([stats.admission for stats in seen])
        others = max(0, sum(each.running + each.waiting for each in seen) - self._taken_then)
        places = known.places or max(1, len(seen)) * self._settings.max_num_seqs
        return replace(known, places=places - others, slots=max(1, known.slots - others))

    def connect(self, near: RemoteEngine) -> None:
        super().connect(near)
        self._thread.start()

    def speak(self, sequence: Sequence, avoid: frozenset[str]) -> None:
        sent = deepcopy(sequence) if sequence.text_is_open else sequence
        self._call_soon(self._start, Relay(sequence, sent, set(avoid)))

    def append(self, id: int, piece: TextPiece) -> None:
        self._call_soon(self._add_text, id, piece)

    def cancel(self, id: int) -> None:
        self._call_soon(self._cancel, id)

    def call(self, method: str, *arguments: Any) -> Any:
        if method in ("add", "exchange", "remove"):
            raise NotCapable(
                "The models of a cluster are part of its configuration: change them there and "
                "deploy it again. Replicas are exchanged one after another, and no stream is lost."
            )
        answers = self._wait(self._replicas.ask(method, *arguments, each=method != "clone"))
        for error in answers:
            if isinstance(error, TimbreError):
                raise error
        return answers[0]

    def stats(self, here: Counters, refused: int) -> Stats:
        """The replicas' latest statistics, added up; latencies are measured on this side."""
        fresh = self._clock() - self._seen_at < STALE_SECONDS
        total = add_up(self._seen if fresh else {}, here, refused)
        return replace(total, dashboard=self._replicas.dashboard)

    def close(self) -> None:
        """The replicas stay."""
        self._call_soon(self._loop.stop)
        self._thread.join(5)

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

    def _call_soon(self, act: Callable[..., object], *values: object) -> None:
        """Also called from finalisers; takes no lock."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(act, *values)

    def _wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Wait in the caller's thread for what the event loop does."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_SECONDS)
        except (ReplicaLost, Late) as error:
            raise EngineError(UNREACHED) from error
        except RuntimeError as error:  # the loop is closed
            work.close()
            raise EngineClosed(CLOSED) from error

    async def _look(self) -> None:
        while True:
            with suppress(Exception):  # then there is no replica, or it does not answer
                taken = len(self._taken)
                self._seen = dict(await asyncio.wait_for(self._replicas.ask("look"), STALE_SECONDS))
                self._taken_then = max(taken, len(self._taken))
                self._seen_at = self._clock()
            await asyncio.sleep(LOOK_SECONDS)

    def _start(self, relay: Relay) -> None:
        self._relays[relay.sequence.id] = relay
        relay.task = self._loop.create_task(self._serve(relay))

    def _cancel(self, id: int) -> None:
        relay = self._relays.get(id)
        if relay and relay.task:
            relay.task.cancel()
            self._end(relay, Lost(EngineError(LOST)))

    def _add_text(self, id: int, piece: TextPiece) -> None:
        if relay := self._relays.get(id):
            relay.pieces.append(piece)
            relay.arrived.set()

    async def _serve(self, relay: Relay) -> None:
        """Ask replicas until one has spoken it, or has lost it."""
        sequence = relay.sequence
        end: End | Lost | None = None
        try:
            while end is None:
                end = await self._attempt(relay)
        except ReplicaLost:
            why = LOST if sequence.delivered else UNREACHED
            end = Lost(EngineError(why), relay.holder)
        except Exception as error:
            end = End("error", sequence.delivered, sequence.seed, as_timbre_error(error))
        self._end(relay, end)

    def _end(self, relay: Relay, end: End | Lost) -> None:
        id = relay.sequence.id
        del self._relays[id]
        self._taken.discard(id)
        self.near.hear(id, end)

    async def _attempt(self, relay: Relay) -> End | None:
        """Have one replica speak it; None: another one should. Raises ReplicaLost."""
        sending = None
        avoid = frozenset(relay.refused) | self._without(relay)
        try:
            async with aclosing(self._replicas.speak(relay.key, relay.sent, avoid)) as parts:
                async for part in parts:
                    if isinstance(part, End):
                        return part
                    if isinstance(part, Refused):
                        return await self._refuse(relay, part)
                    if isinstance(part, Taken):
                        relay.holder = part.where
                        self._taken.add(relay.sequence.id)
                        if relay.sequence.prompt.open_text and sending is None:
                            sending = asyncio.create_task(self._send_texts(relay))
                    self.near.hear(relay.sequence.id, part)
            raise ReplicaLost
        finally:
            if sending:
                sending.cancel()

    def _without(self, relay: Relay) -> frozenset[str]:
        """Replicas that would load its model first, while one that may be asked has it."""
        talker, seen = relay.sequence.talker, self._seen
        having = {name for name, stats in seen.items() if talker in stats.talkers}
        return frozenset(seen.keys() - having if having - relay.refused else ())

    async def _refuse(self, relay: Relay, part: Refused) -> End | None:
        """None: another replica is asked, or the same ones again once each has refused it."""
        everywhere = not part.where or part.where in relay.refused
        relay.refused.add(part.where)
        busy = isinstance(part.error, Busy)
        if not busy and (everywhere or not isinstance(part.error, EngineClosed)):
            return End("error", 0, relay.sequence.seed, part.error)
        if isinstance(part.error, Busy) and everywhere:
            wait = part.error.retry_after
            self.near.hear(relay.sequence.id, Taken(0, wait))
            await asyncio.sleep(min(wait, LONGEST_PAUSE))
            relay.refused.clear()
        return None

    async def _send_texts(self, relay: Relay) -> None:
        """Send what was appended, in order."""
        sent = 0
        with suppress(ReplicaLost):  # which ends the attempt as well
            while True:
                relay.arrived.clear()
                for piece in relay.pieces[sent:]:
                    await self._replicas.ask("append", relay.key, piece)
                    sent += 1
                await relay.arrived.wait()
