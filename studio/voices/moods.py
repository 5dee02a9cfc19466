"""Moods by name: put on voices, named inside texts, learned. Shared by API, command and page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from engine import (
    MAX_STRENGTH,
    Blend,
    Capabilities,
    Clone,
    Design,
    InvalidSetting,
    InvalidVoice,
    Library,
    Mood,
    Mooded,
    Preset,
    SavedMood,
    SpeechEngine,
    SpeechRequest,
    UnknownVoice,
    Vector,
    Voice,
    check_strength,
    learn_shift,
    load_reference_audio,
    mood_named,
    mood_words,
    recorded_moods,
    speaker_space,
)

SAID = "She opened the window and looked at the street for a while before she answered."
SEED = 43
NO_CONSENT = "A mood is learned from recordings only if who speaks in them has agreed: --consent."
Source: TypeAlias = Path | str  # a recording, or a voice's name

__all__ = ["MAX_STRENGTH", "Moods", "in_mood", "learn", "split_mood"]


class Moods:
    """The moods that these checkpoints' voices can have."""

    def __init__(self, capabilities: Mapping[str, Capabilities], library: Library) -> None:
        self._spaces = {speaker_space(able) for able in capabilities.values()}
        self._library = library.moods

    def list(self) -> tuple[SavedMood, ...]:
        return self._library.fitting(self._spaces)

    def words(self) -> Mapping[str, Mood]:
        """Moods by all their names, in small letters."""
        return mood_words(self.list())

    def find(self, name: str) -> Mood | None:
        """A mood by its name or by another word for it."""
        words = self.words()
        key = mood_named(name, words.keys())
        return words[key] if key else None

    def named(self, name: str) -> Mood:
        """Raises UnknownVoice with a list."""
        if (mood := self.find(name)) is None:
            there = ", ".join(each.name for each in self.list()) or "-"
            raise UnknownVoice(
                "No mood is called '{name}'. There are: {there}.", name=name[:80], there=there
            )
        return mood

    def put_on(self, voice: Voice, name: str, strength: float = 1.0) -> Voice:
        """The voice in a mood; where its person was recorded in that mood, that recording."""
        check_strength(strength)
        if not name.strip():
            return voice
        found = in_mood(voice, name, strength, self.words())
        if found is not None:
            return found
        self.named(name)
        raise InvalidVoice(
            "A voice that is only described has no vector for a mood to move. Listen to it "
            "under Design and keep it: then it has."
        )

    def in_text(self, text: str) -> Mapping[str, Mood]:
        """What tags in a text may name; nothing where it has no brackets."""
        return self.words() if "[" in text or "(" in text else {}


def in_mood(voice: Voice, name: str, strength: float, words: Mapping[str, Mood]) -> Voice | None:
    """The voice in a mood: its person's own recording, else the learned mood of this name; None:
    there is neither, or the voice is only described."""
    recorded = recorded_moods(voice)
    if strength and (recording := recorded.get(mood_named(name, recorded.keys()))):
        return recording
    key = mood_named(name, words.keys())
    if not key or isinstance(voice, Design):
        return None
    if isinstance(voice, Mooded):
        return Mooded(voice.voice, (*voice.moods, (words[key], strength)))
    return Mooded(voice, ((words[key], strength),))


def split_mood(text: str) -> tuple[str, float]:
    """`glad`, `glad:0.5` or `gladly`: a name and a strength. Raises InvalidSetting."""
    name, colon, number = text.strip().strip("()").partition(":")
    try:
        strength = float(number) if colon else 1.0
    except ValueError:
        raise InvalidSetting(
            "'{text}' is no mood. Write it like glad or glad:0.5.", text=text[:80]
        ) from None
    return name.strip(), check_strength(strength)


def learn(
    engine: SpeechEngine,
    library: Library,
    name: str,
    pairs: Sequence[tuple[Source, Source]],
    find: Callable[[str], Voice],
    words: Iterable[str] = (),
    consent: bool = False,
    model: str | None = None,
) -> SavedMood:
    """Learn a mood from pairs of voices, plain and moody, and keep it.

    Each is a sound file, as a Path, or the name of a voice that `find` knows.
    """
    files = any(isinstance(side, Path) for pair in pairs for side in pair)
    if files and not consent:
        raise InvalidSetting(NO_CONSENT)
    if not pairs:
        raise InvalidSetting("Give at least one pair: a plain voice and the same in the mood.")
    found = [tuple(_vector(engine, side, find, model) for side in pair) for pair in pairs]
    learned = learn_shift([(plain, moody) for plain, moody in found])
    able = _capabilities(engine, model, len(learned.shift))
    made_from = "; ".join(f"{_called(a)}, {_called(b)}" for a, b in pairs)[:400]
    details = {"consent": consent, "made_from": made_from}
    return library.moods.save(name, learned, speaker_space(able), able.name, words, **details)


def _vector(
    engine: SpeechEngine, source: Source, find: Callable[[str], Voice], model: str | None
) -> Vector:
    if isinstance(source, Path):
        return engine.clone(load_reference_audio(source).waveform, "", model).vector
    voice = find(source)
    if isinstance(voice, Design):  # it is heard once, and read back
        stream = engine.submit(SpeechRequest(SAID, voice, seed=SEED, live=False))
        wave = stream.collect().astype(np.float32) / np.float32(32768)
        return engine.clone(wave, "", model).vector
    assert isinstance(voice, Preset | Clone | Blend | Mooded)
    routed = engine.resolve(Blend(((voice, 1.0),)) if isinstance(voice, Preset) else voice).voice
    assert isinstance(routed, Clone)
    return routed.vector


def _called(source: Source) -> str:
    return source.name if isinstance(source, Path) else source


def _capabilities(engine: SpeechEngine, model: str | None, width: int) -> Capabilities:
    able = engine.capabilities()
    fitting = (model for model in able.values() if model.width == width)
    return able[model] if model else next(fitting)
