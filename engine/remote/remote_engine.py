"""An engine that is elsewhere: requests are checked here, and something else speaks them.

    here    RemoteEngine.submit ──▶ Transport.speak ──▶ Engine.take     there
            SpeechStream ◀── output queue ◀── RemoteEngine.hear ◀── taken, chunks, one end

There is a process of its own, a device that is lent for a call, or many replicas. A request that
nobody has heard yet is begun again when what speaks it is lost; one that is heard ends with an
error, since another voice print would go on. Knows no way to get there.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from engine.config import EngineSettings
from engine.errors import EngineClosed, NotCapable
from engine.plan import Checkpoint
from engine.remote.protocol import Lost, Part, Taken
from engine.requests.output_queue import Output
from engine.requests.registry import Check
from engine.requests.sequence import Sequence, TextPiece
from engine.scheduler.admission import Admission
from engine.speech_engine import SpeechEngine
from engine.stats import Counters, Stats, add_up
from engine.stream import SpeechStream
from engine.types import Chunk, Clone, End, SpeechRequest, Waveform
from engine.voices.routing import cloner, restrict

MOST_LOSSES = 3  # of one request, before it is given up


class Transport:
    """The way to what speaks. Any thread may call anything."""

    near: RemoteEngine  # is called with what happens there
    open_text = True  # whether text may be appended

    @property
    def alive(self) -> bool:
        """Whether what speaks answers."""
        return True

    @property
    def ended(self) -> bool:
        """Whether it has stopped for good."""
        return False

    @property
    def admission(self) -> Admission:
        """What is known of it."""
        raise NotImplementedError

    def connect(self, near: RemoteEngine) -> None:
        """Called once, before all else."""
        self.near = near

    def speak(self, sequence: Sequence, avoid: frozenset[str]) -> None:
        """Have it spoken as it is now; text that is appended later follows by `append`.

        `avoid`: where it was lost.
        """
        raise NotImplementedError

    def append(self, id: int, piece: TextPiece) -> None:
        """Add text to a request that is spoken there."""
        raise NotImplementedError

    def cancel(self, id: int) -> None:
        """`Lost` or an end follows. Also called from finalisers, so it must not take a lock."""

    def note_lag(self, seconds: float) -> None:
        """A chunk reached its reader so long after it was made."""

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the engine there, and wait for it."""
        raise NotImplementedError

    def stats(self, here: Counters, refused: int) -> Stats:
        """`here`: what was heard on this side."""
        return add_up({}, here, refused)

    def close(self) -> None:
        """Close the transport; all requests have ended."""


class RemoteEngine(SpeechEngine):
    """Serves many requests at the same time. Use it in a `with` block, or close it."""

    def __init__(
        self,
        checkpoints: Mapping[str, Checkpoint],
        settings: EngineSettings,
        transport: Transport,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(checkpoints, settings, clock)
        self.transport = transport
        self._lost: defaultdict[int, list[str]] = defaultdict(list)  # where, by request
        self._counters = Counters()
        self._delivering, self._model_changes = Lock(), Lock()
        self._text = Lock()  # of open requests: it is sent once, with them or after them
        transport.connect(self)

    # Requests.

    def submit(self, request: SpeechRequest) -> SpeechStream:
        """Start a request and return at once.

        Raises RequestError for what cannot be served, Busy and EngineClosed.
        """
        if request.open_text and not self.transport.open_text:
            self._registry.check_open()
            raise NotCapable("Text that is still being written cannot be spoken here. Send it all.")
        return super().submit(request)

    @property
    def admission(self) -> Admission:
        return self.transport.admission

    def start(self, sequence: Sequence, output: Output, check: Check) -> None:
        self._registry.register(sequence, output, check)
        self._speak(sequence)

    def add_text(self, sequence: Sequence, piece: TextPiece) -> None:
        with self._text:
            sequence.append(piece, self._clock())
            self.transport.append(sequence.id, piece)

    def cancel(self, sequence: Sequence, output: Output) -> None:
        if not output.end:
            self.transport.cancel(sequence.id)

    def note_lag(self, seconds: float) -> None:
        self.transport.note_lag(seconds)

    def clone(self, audio: Waveform, transcript: str = "", model: str | None = None) -> Clone:
        self._registry.check_open()
        clone: Clone = self.transport.call(
            "clone", audio, transcript, cloner(self._checkpoints, model)
        )
        return clone

    # Models.

    def load(self, model: str) -> None:
        restrict(self._checkpoints, model)
        self.transport.call("load", model)

    def unload(self, model: str) -> None:
        restrict(self._checkpoints, model)
        self.transport.call("unload", model)

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> None:
        with self._model_changes:
            self._check_new(name)
            restrict(self._checkpoints, out)
            self.transport.call("exchange", out, name, checkpoint)
            self._replace_checkpoints(self._exchanged(out, name, checkpoint))

    def add(self, name: str, checkpoint: Checkpoint) -> None:
        with self._model_changes:
            self._check_new(name)
            self.transport.call("add", name, checkpoint)
            self._replace_checkpoints({**self._checkpoints, name: checkpoint})

    def remove(self, model: str) -> None:
        with self._model_changes:
            others = self._without(model)
            self.transport.call("remove", model)
            self._replace_checkpoints(others)

    # State.

    @property
    def alive(self) -> bool:
        return super().alive and self.transport.alive

    @property
    def ended(self) -> bool:
        return super().ended or self.transport.ended

    @property
    def restarting(self) -> bool:
        return (self._registry.is_paused or not self.transport.alive) and not self.ended

    def stats(self) -> Stats:
        return self.transport.stats(self._counters, self._registry.refused)

    def close(self) -> None:
        super().close()
        self.transport.close()

    # What the transport reports.

    def hear(self, id: int, part: Part) -> None:
        """What is said of one request."""
        sequence = self._registry.sequence(id)
        if sequence is None:  # it has ended here
            if isinstance(part, Chunk):
                self.transport.cancel(id)
        elif isinstance(part, Taken):
            sequence.placed = part.position is None
            sequence.position, sequence.estimate = part.position, part.estimate
            sequence.made = part.made
        elif isinstance(part, Lost):
            if not self._is_over(sequence, part):
                self._speak(sequence)
        elif isinstance(part, Chunk):
            sequence.placed, sequence.position = True, None
            late_text = sequence.prompt.open_text
            self._deliver(sequence, sequence.deliver(part, self._clock(), excused=late_text))
        else:
            self._deliver(sequence, part)

    def lose(self, error: EngineClosed) -> None:
        """The remote engine is gone and is being started again: `resume` or `end` follows."""
        self._registry.hold(error.message)
        for sequence in self._registry.sequences():
            self._is_over(sequence, Lost(error))

    def resume(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        self._replace_checkpoints(checkpoints)
        for sequence in self._registry.sequences():
            self._speak(sequence)
        self._registry.resume()

    def end(self, reason: str) -> None:
        """The remote engine does not come back."""
        self._registry.end_all(reason)

    def _speak(self, sequence: Sequence) -> None:
        with self._text:
            self.transport.speak(sequence, frozenset(self._lost.get(sequence.id, ())))
        if sequence.left:  # while nobody could be told
            self.transport.cancel(sequence.id)

    def _is_over(self, sequence: Sequence, lost: Lost) -> bool:
        """Note the loss; whether it is the end of the request."""
        losses = self._lost[sequence.id]
        losses.append(lost.where)
        sequence.placed, sequence.position, sequence.made = False, None, 0
        if sequence.left:
            self._deliver(sequence, End("cancelled", sequence.delivered, sequence.seed))
        elif sequence.delivered or len(losses) >= MOST_LOSSES:
            self._deliver(sequence, End("error", sequence.delivered, sequence.seed, lost.error))
        else:
            return False
        return True

    def _deliver(self, sequence: Sequence, item: Chunk | End) -> None:
        with self._delivering:
            self._counters.record(sequence, item)
        if isinstance(item, End):
            self._lost.pop(sequence.id, None)
        self._registry.deliver(sequence, item)
