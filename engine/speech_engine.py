"""An engine, as page, API and command line use it; requests are checked and turned into ids here.

`Engine` runs in this process; `RemoteEngine` passes requests on to another one, to one that gets a
device for each request, or to many. They bring the requests to a device; this part knows none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from typing_extensions import Self

from engine.config import EngineSettings
from engine.errors import InvalidSetting
from engine.messages import Message
from engine.plan import Checkpoint
from engine.requests.output_queue import Output, OutputQueue
from engine.requests.registry import Check, RequestRegistry
from engine.requests.sequence import Sequence, TextPiece
from engine.scheduler.admission import Admission
from engine.stats import Stats
from engine.stream import Handles, Postprocess, SpeechStream
from engine.thresholds import SPARE
from engine.types import Capabilities, Clone, SpeechRequest, Voice, Waveform
from engine.voices.routing import Routed, restrict, route_voice

if TYPE_CHECKING:
    from engine.requests.input_processor import InputProcessor
    from engine.requests.streaming_text import StreamingText

CLOSED = Message("The engine is closed. Start it again.")
DRAINING = Message("The engine is shutting down and takes no new requests. Try again in a minute.")


# Called before each request in its caller's thread; may raise Busy. The function that it returns is
# called once: with the stream when the request is admitted, with None when it is refused.
AdmissionHook: TypeAlias = Callable[[], Callable[[SpeechStream | None], object]]


def admit_all() -> Callable[[SpeechStream | None], object]:
    """The default hook: admits every request."""
    return lambda stream: None


class SpeechEngine(ABC):
    """Generates speech for many requests at the same time. Any thread may call anything.

    Use it in a `with` block, or close it.
    """

    def __init__(
        self,
        checkpoints: Mapping[str, Checkpoint],
        settings: EngineSettings,
        clock: Callable[[], float],
    ) -> None:
        self.settings = settings
        self.admission_hook: AdmissionHook = admit_all
        self.postprocess: Postprocess | None = None  # of all audio, for example a watermark
        self._checkpoints, self._clock = dict(checkpoints), clock
        self._processor: InputProcessor | None = None
        self._making = Lock()
        self._registry = RequestRegistry()

    @property
    def _input_processor(self) -> InputProcessor:
        """Imported when it is needed: not where requests come as sequences."""
        if self._processor is not None:
            return self._processor
        from engine.requests.input_processor import InputProcessor

        with self._making:
            if self._processor is None:
                self._processor = InputProcessor(self._checkpoints, self.settings, self._clock)
            return self._processor

    def resolve(self, voice: Voice, model: str | None = None) -> Routed:
        """The checkpoint for a voice, and the voice with a blend resolved to one vector."""
        return route_voice(voice, self._checkpoints, model)

    @property
    def alive(self) -> bool:
        """Whether requests are admitted."""
        return self._registry.is_open

    @property
    def ended(self) -> bool:
        """Whether it has stopped for good: only a new process admits requests again."""
        return self._registry.is_ended

    @property
    def restarting(self) -> bool:
        """Whether what speaks has stopped answering, and is being replaced."""
        return self._registry.is_paused and not self.ended

    def capabilities(self) -> Mapping[str, Capabilities]:
        """What each checkpoint can do, by its name."""
        return {name: each.capabilities for name, each in self._checkpoints.items()}

    def checkpoints(self) -> Mapping[str, Checkpoint]:
        """Checkpoints by name, loaded or not."""
        return self._checkpoints

    def _check_new(self, name: str) -> None:
        """Raises InvalidSetting if there is a model of this name."""
        if name in self._checkpoints:
            raise InvalidSetting("{name} is in the list of models already.", name=name)

    def _exchanged(self, out: str, name: str, checkpoint: Checkpoint) -> dict[str, Checkpoint]:
        """The checkpoints with a new one in the place of `out`."""
        return {
            name if each == out else each: checkpoint if each == out else there
            for each, there in self._checkpoints.items()
        }

    def _without(self, model: str) -> dict[str, Checkpoint]:
        """The other checkpoints. Raises InvalidSetting where there are none."""
        restrict(self._checkpoints, model)
        others = {name: each for name, each in self._checkpoints.items() if name != model}
        if not others:
            raise InvalidSetting("{name} is the only model. Add another one first.", name=model)
        return others

    def _replace_checkpoints(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        """Put a new mapping in place; a mapping is never modified, as other threads read it."""
        self._checkpoints = dict(checkpoints)
        self._input_processor.checkpoints = self._checkpoints

    def drain(self, grace: float) -> bool:
        """Admit no new request, wait `grace` seconds for the others, then close.

        False when a request was cut off.
        """
        self._registry.close(DRAINING)
        finished = self._registry.wait_empty(grace)
        self.close()
        return finished

    def close(self) -> None:
        """Stop now; open requests end with an error."""
        self._registry.end_all(CLOSED)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hurried(self, apart_from: Collection[int] = ()) -> bool:
        """Whether a live request has no sound yet, or is generated hardly faster than it is heard:
        work that nobody waits for should begin later. `apart_from`: ids of streams."""
        now = self._clock()
        open_ = (each for each in self._registry.sequences() if each.id not in apart_from)
        return any(each.hurried(now, SPARE) for each in open_)

    # Requests.

    def submit(self, request: SpeechRequest) -> SpeechStream:
        """Start a request and return at once.

        Raises RequestError for what cannot be served, Busy and EngineClosed.
        """
        self._registry.check_open()
        decided = self.admission_hook()
        stream = None
        try:
            accepted = self._input_processor.process(request)
            sequence, text = accepted.sequence, accepted.text
            stream = self._open(sequence, self._check_admission(sequence), text)
            if text:
                text.connect(partial(self.add_text, sequence))
        finally:
            decided(stream)
        return stream

    def take(self, sequence: Sequence) -> SpeechStream:
        """Start a request that another engine has checked.

        Raises Busy, EngineClosed, and InvalidSetting where its model is unknown.
        """
        restrict(self._checkpoints, sequence.talker)
        self._input_processor.adopt(sequence)
        return self._open(sequence, self._check_admission(sequence))

    def _open(
        self, sequence: Sequence, check: Check, text: StreamingText | None = None
    ) -> SpeechStream:
        output = OutputQueue()
        self.start(sequence, output, check)
        handles = Handles(partial(self._leave, sequence, output), text, self.note_lag)
        return SpeechStream(output, sequence, handles, self.postprocess)

    def _check_admission(self, new: Sequence) -> Check:
        """Refuse a request for which there is no place. One that was left counts no longer, even
        if a step still delays its end."""

        def check(ahead: list[Sequence]) -> None:
            self.admission.check(new, [each for each in ahead if not each.left], self.settings)

        return check

    def _leave(self, sequence: Sequence, output: Output) -> None:
        """Also called from finalisers, so it must not take a lock."""
        sequence.left = True
        self.cancel(sequence, output)

    @abstractmethod
    def clone(self, audio: Waveform, transcript: str = "", model: str | None = None) -> Clone:
        """Make a voice from checked reference audio; the caller waits."""

    # What an engine brings.

    @abstractmethod
    def load(self, model: str) -> None:
        """Load a checkpoint's talker, and wait for it."""

    @abstractmethod
    def unload(self, model: str) -> None:
        """Free the memory of a talker that no request uses."""

    @abstractmethod
    def add(self, name: str, checkpoint: Checkpoint) -> None:
        """Add a checkpoint and load it. If that fails, nothing has changed."""

    @abstractmethod
    def remove(self, model: str) -> None:
        """Forget a checkpoint that no request uses. Raises InvalidSetting for the only one."""

    @abstractmethod
    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> None:
        """Replace a checkpoint that no request uses with another one, which is not loaded."""

    @abstractmethod
    def stats(self) -> Stats:
        """A snapshot of state and totals."""

    @property
    @abstractmethod
    def admission(self) -> Admission:
        """What decides whether one more request is admitted."""

    @abstractmethod
    def start(self, sequence: Sequence, output: Output, check: Check) -> None:
        """Start a request that was checked. Raises EngineClosed, and what `check` raises."""

    @abstractmethod
    def add_text(self, sequence: Sequence, piece: TextPiece) -> None:
        """Add text to a request that was started."""

    @abstractmethod
    def cancel(self, sequence: Sequence, output: Output) -> None:
        """Also called from finalisers, so it must not take a lock."""

    @abstractmethod
    def note_lag(self, seconds: float) -> None:
        """A chunk reached its reader so long after it was made."""
