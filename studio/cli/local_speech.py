"""`say` on an engine of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from engine import (
    BootedProcess,
    Capabilities,
    Library,
    Pcm,
    Preset,
    Recording,
    SamplingParams,
    SpeechEngine,
    SpeechRequest,
    SpeechStream,
    UnknownLanguage,
    Voice,
    check_readable,
    load_reference_audio,
)
from studio.cli.app_context import AppContext
from studio.cli.console import Reporter, feed
from studio.cli.listing import describe_speed
from studio.cli.say_options import SayOptions, check_options
from studio.cli.speech_output import Take, check_loudspeaker, speak
from studio.voices.moods import split_mood
from studio.voices.voice_catalog import Choices


def say_here(options: SayOptions, context: AppContext, booted: BootedProcess | None) -> Take:
    """What can be refused is refused before a model is loaded."""
    able, tell = context.capabilities(), context.tell
    _check(options, Choices(able, context.library()))
    _check_language(options.language, able.values())
    _check_text(options, able)
    recording = _record(options.reference, tell) if options.reference else None
    check_loudspeaker(options)
    with context.engine(booted) as engine:
        here = LocalSynthesis(engine, context.library(), tell)
        return speak(options, here.open(options, recording), tell)


def _check(options: SayOptions, choices: Choices) -> None:
    """Checks that need no loaded model."""
    check_options(options)
    if not options.reference:
        _named(options, choices)
    elif options.mood:
        choices.moods.named(split_mood(options.mood)[0])


def _check_language(language: str, able: Iterable[Capabilities]) -> None:
    """Raises UnknownLanguage where no checkpoint speaks it."""
    known = ("auto", *dict.fromkeys(each for model in able for each in model.languages))
    if language.strip().lower() not in known:
        raise UnknownLanguage(
            "No model here speaks '{wanted}'. There is: {there}.",
            wanted=language[:80],
            there=", ".join(known),
        )


def _check_text(options: SayOptions, able: Mapping[str, Capabilities]) -> None:
    """Raises InvalidText where the one model that is there can read nothing of it."""
    if options.words is None and len(able) == 1:
        [(name, model)] = able.items()
        check_readable(_request(options, Preset("")), name, model)


def _record(path: Path, tell: Reporter) -> Recording:
    """Load a reference and report what was changed."""
    recording = load_reference_audio(path)
    tell.line(", ".join([f"{path.name}: {recording.seconds:.1f} s", *recording.notes]))
    return recording


@dataclass(frozen=True)
class LocalSynthesis:
    """The engine and the voices of this process."""

    engine: SpeechEngine
    library: Library
    tell: Reporter

    @contextmanager
    def open(
        self, options: SayOptions, recording: Recording | None = None
    ) -> Iterator[LocalSpeech]:
        """`recording`: the checked reference, if there is one."""
        early = options.early_start or self.engine.settings.early_start
        if options.live and (slow := describe_speed(self.engine.stats().speed, early)):
            self.tell.line(slow)
        moods = self._choices().moods.in_text(options.text)
        request = replace(_request(options, self._voice(options, recording)), moods=moods)
        with self.engine.submit(request) as stream:
            if options.words is not None:
                feed(options.words, stream.append, stream.close_text, self.tell)
            for notice in stream.notices:
                self.tell.line(notice)
            yield LocalSpeech(stream)

    def _voice(self, options: SayOptions, recording: Recording | None) -> Voice:
        if recording:
            words = recording.continued(options.transcript.strip())
            clone = self.engine.clone(recording.waveform, words)
            return _in_mood(options, clone, self._choices())
        return _named(options, self._choices())

    def _choices(self) -> Choices:
        return Choices(self.engine.capabilities(), self.library)


@dataclass(frozen=True)
class LocalSpeech:
    """A stream as a `Speech`."""

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


def _named(options: SayOptions, choices: Choices) -> Voice:
    return _in_mood(options, _plain(options, choices), choices)


def _in_mood(options: SayOptions, voice: Voice, choices: Choices) -> Voice:
    return choices.moods.put_on(voice, *split_mood(options.mood)) if options.mood else voice


def _plain(options: SayOptions, choices: Choices) -> Voice:
    if options.blend:
        return choices.blend(options.blend, "spherical" if options.spherical else "linear")
    if options.voice:
        return choices.read(options.voice, options.instruct)
    return choices.default(options.instruct)


def _request(options: SayOptions, voice: Voice) -> SpeechRequest:
    return SpeechRequest(
        text=options.text,
        voice=voice,
        language=options.language,
        sampling=SamplingParams(greedy=options.greedy),
        spell_out=options.spell_out,
        seed=options.seed,
        max_frames=options.max_frames,
        early_start=options.early_start,
        open_text=options.words is not None,
    )
