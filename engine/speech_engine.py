"""The protocol of an engine, as page, API and command line use it.

`Engine` runs in this process, `ProcessEngine` in one of its own, `ZeroGpuEngine` in a process that
gets a device for each request, `ClusterEngine` in many processes that each have one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, TypeAlias

from engine.config import EngineSettings
from engine.plan import Checkpoint
from engine.stats import Stats
from engine.stream import Postprocess, SpeechStream
from engine.types import Capabilities, Clone, SpeechRequest, Voice, Waveform
from engine.voices.routing import Routed

# Called before each request in its caller's thread; may raise Busy. The function that it returns is
# called with the stream once the request is admitted.
AdmissionHook: TypeAlias = Callable[[], Callable[[SpeechStream], object]]


def admit_all() -> Callable[[SpeechStream], object]:
    """The default hook: admits every request."""
    return lambda stream: None


class SpeechEngine(Protocol):
    """Generates speech for many requests at the same time. Any thread may call anything."""

    settings: EngineSettings
    admission_hook: AdmissionHook
    postprocess: Postprocess | None  # applied to all audio, for example a watermark

    def submit(self, request: SpeechRequest) -> SpeechStream:
        """Start a request and return at once.

        Raises RequestError for what cannot be served, Busy when too many wait, EngineClosed.
        """

    def clone(self, audio: Waveform, transcript: str = "", model: str | None = None) -> Clone:
        """Make a voice from checked reference audio, in the caller's thread."""

    def resolve(self, voice: Voice, model: str | None = None) -> Routed:
        """The checkpoint for a voice, and the voice with a blend resolved to one vector."""

    @property
    def alive(self) -> bool:
        """Whether requests are admitted."""

    @property
    def ended(self) -> bool:
        """Whether it has stopped for good: only a new process admits requests again."""

    @property
    def restarting(self) -> bool:
        """Whether what speaks has stopped answering, and is being replaced."""

    def capabilities(self) -> Mapping[str, Capabilities]:
        """What each checkpoint can do, by its name."""

    def checkpoints(self) -> Mapping[str, Checkpoint]:
        """Checkpoints by name, loaded or not."""

    def load(self, model: str) -> None:
        """Load a checkpoint's talker, and wait for it."""

    def unload(self, model: str) -> None:
        """Free the memory of a talker that no request uses."""

    def add(self, name: str, checkpoint: Checkpoint) -> None:
        """Add a checkpoint and load it."""

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> None:
        """Replace a checkpoint that no request uses with another one, which is not loaded."""

    def stats(self) -> Stats:
        """A snapshot of state and totals."""

    def drain(self, grace: float) -> bool:
        """Admit no new request, wait `grace` seconds for the others, then close.

        False when a request was cut off.
        """

    def close(self) -> None:
        """Stop now; open requests end with an error."""

    def __enter__(self) -> SpeechEngine: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
