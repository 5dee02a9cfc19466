"""`say` on an engine of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine import (
    Library,
    Pcm,
    Recording,
    SamplingParams,
    SpeechEngine,
    SpeechRequest,
    SpeechStream,
    Voice,
    load_reference_audio,
)
from studio.cli.console import Teller
from studio.cli.say_options import Order, check_order
from studio.cli.text_feeder import feed
from studio.voices.voice_catalog import Choices


def check(order: Order, choices: Choices) -> None:
    """Whatever can be refused before anything is loaded."""
    check_order(order)
    if not order.reference:
        _named(order, choices)


def record(path: Path, tell: Teller) -> Recording:
    """A checked reference, and what was done to it told."""
    recording = load_reference_audio(path)
    tell.line(", ".join([f"{path.name}: {recording.seconds:.1f} s", *recording.notes]))
    return recording


@dataclass(frozen=True)
class Here:
    """The engine and the voices of this process."""

    engine: SpeechEngine
    library: Library
    tell: Teller

    @contextmanager
    def open(self, order: Order, recording: Recording | None = None) -> Iterator[LocalSpeech]:
        """`recording`: the order's reference."""
        with self.engine.submit(_request(order, self._voice(order, recording))) as stream:
            if order.words is not None:
                feed(order.words, stream.append, stream.close_text, self.tell)
            yield LocalSpeech(stream)

    def _voice(self, order: Order, recording: Recording | None) -> Voice:
        if recording:
            return self.engine.clone(recording.waveform, order.transcript.strip())
        return _named(order, Choices(self.engine.capabilities(), self.library))


@dataclass(frozen=True)
class LocalSpeech:
    """A stream as `speaking.py` hears it."""

    stream: SpeechStream

    @property
    def seed(self) -> int | None:
        return self.stream.seed

    @property
    def reason(self) -> str:
        end = self.stream.end
        return end.reason if end else "cancelled"

    def __iter__(self) -> Iterator[Pcm]:
        for chunk in self.stream:
            yield chunk.pcm


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
        sampling=SamplingParams(greedy=order.greedy),
        seed=order.seed,
        max_frames=order.max_frames,
        open_text=order.words is not None,
    )
