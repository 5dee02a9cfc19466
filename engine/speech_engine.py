"""What the studio knows of an engine, wherever it runs.

`Engine` runs in this process, `ZeroGpuEngine` in a process that a device is lent to for each
request. Anything with these members serves page, API and command line.
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

# Called before each request in its caller's thread; may raise Busy. What it returns is given the
# stream once the request is admitted.
AdmissionHook: TypeAlias = Callable[[], Callable[[SpeechStream], object]]


def admit_all() -> Callable[[SpeechStream], object]:
    """The hook of an engine that admits every request."""
    return lambda stream: None


class SpeechEngine(Protocol):
    """Generates speech for many requests at the same time. Any thread may call anything."""

    settings: EngineSettings
    admission_hook: AdmissionHook
    postprocess: Postprocess | None  # applied to all audio; a watermark, for one

    def submit(self, request: SpeechRequest) -> SpeechStream:
        """Start a request and return at once.

        Raises RequestError for what cannot be served, Busy when too many wait, EngineClosed.
        """

    def clone(self, audio: Waveform, transcript: str = "", model: str | None = None) -> Clone:
        """Make a voice from checked reference audio, in the caller's thread."""

    def resolve(self, voice: Voice, model: str | None = None) -> Routed:
        """The checkpoint that speaks a voice, and a blend as the one voice it is."""

    @property
    def alive(self) -> bool:
        """Whether requests are admitted."""

    def capabilities(self) -> Mapping[str, Capabilities]:
        """What each checkpoint can do, by its name."""

    def checkpoints(self) -> Mapping[str, Checkpoint]:
        """Checkpoints by name, loaded or not."""

    def load(self, model: str) -> None:
        """Load a checkpoint's talker, and wait for it."""

    def unload(self, model: str) -> None:
        """Free the memory of a talker that no request uses."""

    def add(self, name: str, checkpoint: Checkpoint) -> None:
        """Load one more checkpoint beside the others."""

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> None:
        """Replace a checkpoint that no request uses by another one, which is not loaded yet."""

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
