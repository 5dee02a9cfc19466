"""What the commands do: say, voices, info. Reads no arguments, no environment, no terminal:
`app.py` hands in what was asked, the words, and a place to report to.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine import (
    Capabilities,
    Engine,
    InvalidSetting,
    Library,
    Loudspeaker,
    Pcm,
    Recording,
    Sampling,
    SpeechRequest,
    SpeechStream,
    TimbreError,
    Voice,
    check_target,
    describe,
    load_recording,
    open_sound,
)
from studio.choosing import NO_INSTRUCTION, Choices


@dataclass(frozen=True)
class Order:
    """What `say` was asked for. `text` empty and `words` given: text that comes as it is read."""

    text: str = ""
    words: Iterable[str] | None = None
    voice: str = ""
    instruct: str = ""
    reference: Recording | None = None
    transcript: str = ""
    blend: str = ""
    spherical: bool = False
    language: str = "auto"
    seed: int | None = None
    greedy: bool = False
    max_frames: int | None = None
    out: Path | None = None
    play: bool = False


@dataclass
class Take:
    """What was spoken, and how quickly."""

    seed: int | None = None
    first: float | None = None  # seconds until the first sound
    seconds: float = 0.0
    wall: float = 0.0
    ending: str = "cancelled"

    def summary(self, open_text: bool) -> str:
        first = "no sound" if self.first is None else f"first audio {self.first * 1000:.0f} ms"
        parts = [f"{self.seconds:.2f} s", first]
        if self.seconds and not open_text:  # an open text is as slow as whoever writes it
            parts.append(f"RTF {self.wall / self.seconds:.3f}")
        return ", ".join([*parts, f"seed {self.seed}"])


class Sink(Protocol):
    """Where samples go."""

    def write(self, pcm: Pcm) -> None: ...


class Teller(Protocol):
    """Where news go: lines that stay, and progress that replaces itself."""

    def line(self, text: str) -> None: ...
    def progress(self, text: str) -> None: ...


_ENDINGS = {
    "length": "It reached --max-frames or the engine's limit and was cut off.",
    "runaway": "It went on without end and was stopped. Try another --seed.",
    "cancelled": "Stopped; what was made until then is kept.",
}


def say(order: Order, engine: Engine, library: Library, tell: Teller) -> Take:
    """Speak to a file, the loudspeaker or both. Ctrl-C ends it and keeps what was made."""
    voice, take = _voice(order, engine, library), Take()
    with _file(order) as file:
        try:
            with _loudspeaker(order) as speaker, engine.submit(_request(order, voice)) as stream:
                if order.words is not None:
                    _feed(stream, order.words, tell)
                _listen(stream, file + speaker, take, tell)
        except KeyboardInterrupt:
            if not take.seconds:
                raise
    if take.ending in _ENDINGS:
        tell.line(_ENDINGS[take.ending])
    return take


def check(order: Order, choices: Choices) -> None:
    """Whatever can be refused before anything is loaded."""
    named = [name for name in ("voice", "reference", "blend") if getattr(order, name)]
    if len(named) > 1:
        raise InvalidSetting(f"Use one of --{' and --'.join(named)}.")
    if order.transcript and not order.reference:
        raise InvalidSetting("--transcript tells what is said in a --reference. Add one.")
    if order.instruct.strip() and (order.reference or order.blend):
        raise InvalidSetting(NO_INSTRUCTION)
    if not order.reference:
        _named(order, choices)
    if order.out:
        check_target(order.out)


def record(path: Path, tell: Teller) -> Recording:
    """A checked reference, and what was done to it told."""
    recording = load_recording(path)
    tell.line(", ".join([f"{path.name}: {recording.seconds:.1f} s", *recording.notes]))
    return recording


def list_voices(capabilities: Mapping[str, Capabilities], library: Library) -> Iterator[str]:
    """A line for each voice that can be spoken, and one for each file that is damaged."""
    for choice in Choices(capabilities, library).list():
        yield "\t".join((choice.name, choice.kind, choice.note)).rstrip()
    for found in library.damaged():
        yield f"{found.path.name}\tdamaged\t{found.reason}"


def list_abilities(capabilities: Mapping[str, Capabilities]) -> Iterator[str]:
    """What each checkpoint is and can do."""
    for name, own in capabilities.items():
        yield name
        yield f"  can        {describe(own)}"
        yield f"  size       {own.size}, speaker vectors of {own.width} numbers"
        yield f"  speakers   {', '.join(own.speakers) or 'none'}"
        yield f"  languages  {', '.join(('auto', *own.languages))}"
        for speaker, dialect in own.dialects.items():
            yield f"  dialect    {speaker} speaks {dialect.replace('_', ' ')}"


def _voice(order: Order, engine: Engine, library: Library) -> Voice:
    if order.reference:
        return engine.clone(order.reference.waveform, order.transcript.strip())
    return _named(order, Choices(engine.capabilities(), library))


def _named(order: Order, choices: Choices) -> Voice:
    if order.blend:
        return choices.blend(order.blend, "spherical" if order.spherical else "linear")
    if order.voice:
        return choices.named(order.voice, order.instruct)
    return choices.default(order.instruct)


def _request(order: Order, voice: Voice) -> SpeechRequest:
    return SpeechRequest(
        text=order.text,
        voice=voice,
        language=order.language,
        sampling=Sampling(greedy=order.greedy),
        seed=order.seed,
        max_frames=order.max_frames,
        open_text=order.words is not None,
    )


@contextmanager
def _file(order: Order) -> Iterator[list[Sink]]:
    if order.out is None:
        yield []
        return
    with open_sound(order.out) as file:
        yield [file]


@contextmanager
def _loudspeaker(order: Order) -> Iterator[list[Sink]]:
    """When asked for, and when the sound would go nowhere else."""
    if order.out and not order.play:
        yield []
        return
    with Loudspeaker() as speaker:
        yield [speaker]


def _feed(stream: SpeechStream, words: Iterable[str], tell: Teller) -> None:
    """Append words from a thread of their own: reading may wait for ever."""

    def run() -> None:
        try:
            for piece in words:
                stream.append(piece)
        except TimbreError as error:
            tell.line(str(error))
        stream.close_text()

    threading.Thread(target=run, name="words", daemon=True).start()


def _listen(stream: SpeechStream, sinks: list[Sink], take: Take, tell: Teller) -> None:
    """Hand every chunk on as it comes, and keep count."""
    take.seed, started = stream.seed, time.perf_counter()
    for chunk in stream:
        take.wall = time.perf_counter() - started
        take.first = take.wall if take.first is None else take.first
        take.seconds += chunk.seconds
        for sink in sinks:
            sink.write(chunk.pcm)
        tell.progress(f"{take.seconds:.1f} s")
    take.seed, end = stream.seed, stream.end
    take.ending = end.reason if end else take.ending
