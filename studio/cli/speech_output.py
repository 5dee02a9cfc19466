"""Writes speech to a file, the loudspeaker or both. Ctrl-C keeps what was generated."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from engine import SAMPLE_RATE, Loudspeaker, Pcm, open_sound
from studio.cli.console import Reporter
from studio.cli.say_options import SayOptions


class Speech(Protocol):
    """An iterable of audio; `seed` and `reason` are known at its end."""

    @property
    def seed(self) -> int | None: ...
    @property
    def reason(self) -> str: ...
    def __iter__(self) -> Iterator[Pcm]: ...


class Sink(Protocol):
    """Takes samples."""

    def write(self, pcm: Pcm) -> None: ...


@dataclass
class Take:
    """A summary of the speech."""

    seed: int | None = None
    first: float | None = None  # seconds until the first audio
    seconds: float = 0.0
    wall: float = 0.0
    ending: str = "cancelled"

    def summary(self, open_text: bool) -> str:
        first = "no sound" if self.first is None else f"first audio {self.first * 1000:.0f} ms"
        parts = [f"{self.seconds:.2f} s", first]
        if self.seconds and not open_text:  # open text depends on the speed of writing
            parts.append(f"RTF {self.wall / self.seconds:.3f}")
        return ", ".join([*parts, f"seed {self.seed}"])


_ENDINGS = {
    "length": "It reached --max-frames or the engine's limit and was cut off.",
    "runaway": "It went on without end and was stopped. Try another --seed.",
    "incomplete": "Part of the text may be missing. Try another --seed.",
    "cancelled": "Stopped; what was made until then is kept.",
}


def speak(options: SayOptions, opening: AbstractContextManager[Speech], tell: Reporter) -> Take:
    """Write a speech to its outputs. `opening` starts it, and leaving that ends it."""
    take = Take()
    with _file(options) as file:
        try:
            with _loudspeaker(options) as speaker, opening as speech:
                _listen(speech, file + speaker, take, tell)
        except KeyboardInterrupt:
            if not take.seconds:
                raise
    if take.ending in _ENDINGS:
        tell.line(_ENDINGS[take.ending])
    return take


@contextmanager
def _file(options: SayOptions) -> Iterator[list[Sink]]:
    if options.out is None:
        yield []
    elif options.piped:
        yield [_Pipe()]
    else:
        with open_sound(options.out) as file:
            yield [file]


class _Pipe:
    """Standard output as a WAV stream of unknown length."""

    def __init__(self) -> None:
        from studio.api.responses.encoding import Coding, open_encoder

        self._encoder = open_encoder(Coding("wav"))

    def write(self, pcm: Pcm) -> None:
        sys.stdout.buffer.write(self._encoder.feed(pcm))
        sys.stdout.buffer.flush()


@contextmanager
def _loudspeaker(options: SayOptions) -> Iterator[list[Sink]]:
    """The loudspeaker, if requested or if there is no other output."""
    if options.out and not options.play:
        yield []
        return
    with Loudspeaker() as speaker:
        yield [speaker]


def check_loudspeaker(options: SayOptions) -> None:
    """Open and close it, if it will be needed, before a model is loaded. Raises NoLoudspeaker."""
    with _loudspeaker(options):
        pass


def _listen(speech: Speech, sinks: list[Sink], take: Take, tell: Reporter) -> None:
    """Write every piece to all outputs and update the summary."""
    take.seed, started = speech.seed, time.perf_counter()
    for pcm in speech:
        take.wall = time.perf_counter() - started
        take.first = take.wall if take.first is None else take.first
        take.seconds += len(pcm) / SAMPLE_RATE
        take.seed = speech.seed
        for sink in sinks:
            sink.write(pcm)
        tell.progress(f"{take.seconds:.1f} s")
    take.seed, take.ending = speech.seed, speech.reason
