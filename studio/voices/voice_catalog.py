"""From what a person typed or picked to a voice. Shared by the command line and the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from engine import (
    Blend,
    Capabilities,
    Clone,
    Design,
    InvalidSetting,
    Library,
    Message,
    NotCapable,
    Preset,
    SavedVoice,
    UnknownVoice,
    Voice,
    is_native,
    parse_blend,
)
from studio.voices.foreign_names import FOREIGN_VOICES
from studio.voices.speaker_notes import described

MARKS = frozenset("+,:()")  # names with these go by their id in a written blend
BLEND_MARKS = "+,(:"  # one of these makes a name a written blend
Method: TypeAlias = Literal["linear", "spherical"]
NO_INSTRUCTION = Message("Saved voices can't follow style instructions. Clear that field.")


@dataclass(frozen=True)
class Choice:
    """A voice somebody can pick by name."""

    name: str
    kind: Literal["preset", "saved", "design"]
    note: str = ""
    key: str = ""  # what is kept of it: stays when the voice gets another name

    @property
    def label(self) -> str:
        """A speaker's name with a capital; a saved one as somebody wrote it."""
        return self.name.capitalize() if self.kind == "preset" else self.name


class Choices:
    """All voices that can be named: speakers of the checkpoints, and the saved ones."""

    def __init__(self, capabilities: Mapping[str, Capabilities], library: Library) -> None:
        self._models = capabilities
        self._capabilities = tuple(capabilities.values())
        self._library = library

    def list(self) -> tuple[Choice, ...]:
        """Speakers first, then saved voices these checkpoints can speak."""
        speakers = (
            Choice(name, "preset", described(name) or self._dialect(name), name)
            for name in self.speakers()
        )
        saved = (_saved(own) for own in self._library.list() if self._speakable(own.voice))
        return (*speakers, *saved)

    def key(self, name: str) -> str:
        """What is kept of a named voice or a written blend; what is not here stays as it is."""
        bare = name.strip()
        if speaker := self._speaker(bare):
            return speaker
        if saved := self._find(bare):
            return f"#{saved.id}"
        return self._rewritten(bare, self.key)

    def shown(self, key: str) -> str:
        """The name that a kept voice has now; empty where it is gone."""
        if speaker := self._speaker(key):
            return speaker.capitalize()
        if saved := self._find(key):
            return saved.name
        gone = key.startswith("#") and not MARKS & set(key)
        return "" if gone else self._rewritten(key, lambda part: self.shown(part) or part)

    def speakers(self) -> tuple[str, ...]:
        every = (name for own in self._capabilities if own.preset for name in own.speakers)
        return tuple(dict.fromkeys(every))

    def blendable(self) -> tuple[tuple[str, str], ...]:
        """Labels and written names of what can be blended; no name is there twice."""
        speakers = self.speakers()
        taken = {name.casefold() for name in speakers}
        own = [each for each in self._library.list() if isinstance(each.voice, Clone)]
        free = [each for each in own if each.name.casefold() not in taken]
        written = ((each.name, self._written(each)) for each in free)
        return (*((name, name) for name in speakers), *written)

    def example(self) -> str:
        """A written blend of voices that are here, as a hint."""
        first, second, *_ = *(name for _, name in self.blendable()), "one", "another"
        return f"{first}(2)+{second}(1)"

    def models(self, able: Callable[[Capabilities], bool]) -> tuple[str, ...]:
        """The checkpoints that can do something, by name."""
        return tuple(name for name, own in self._models.items() if able(own))

    def languages(self) -> tuple[str, ...]:
        every = (name for own in self._capabilities for name in own.languages)
        return ("auto", *dict.fromkeys(every))

    def named(self, name: str, instruct: str = "") -> Voice:
        """A speaker, or a saved voice by name or id. Raises UnknownVoice with what there is."""
        if speaker := self._speaker(name):
            return Preset(speaker, instruct)
        saved = self._find(name)
        if saved is None:
            raise UnknownVoice(
                "No voice is called '{name}'. {there}", name=name[:80], there=self._there()
            )
        if instruct.strip():
            raise InvalidSetting(NO_INSTRUCTION)
        return saved.voice

    def default(self, instruct: str = "") -> Voice:
        """The voice of somebody who named none."""
        if self.speakers():
            return Preset(self.speakers()[0], instruct)
        if any(own.design for own in self._capabilities):
            return Design(instruct.strip() or "A calm, clear voice.")
        raise NotCapable(
            "This model has no preset voices. Make one under Clone, or give --reference FILE."
        )

    def read(self, name: str, instruct: str = "", method: Method = "linear") -> Voice:
        """A named voice, a written blend, or with no name the models' own."""
        if not name.strip():
            return self.default(instruct)
        try:
            return self.named(name, instruct)
        except UnknownVoice:
            if not any(mark in name for mark in BLEND_MARKS):
                raise
        if instruct.strip():
            raise InvalidSetting(NO_INSTRUCTION)
        return self.blend(name, method)

    def aliases(self) -> dict[str, str]:
        """Voices of other services by the voice each stands for; one of that name comes first.

        They are dealt out over the preset speakers, or where there are none over the saved voices.
        """
        voices = self.speakers() or tuple(choice.name for choice in self.list())
        taken = {name.casefold() for name in voices}
        free = [name for name in FOREIGN_VOICES if name not in taken]
        return {name: voices[i % len(voices)] for i, name in enumerate(free) if voices}

    def requested(self, name: str, instruct: str = "", method: Method = "linear") -> Voice:
        """What a request names: as `read`, or a voice of another service."""
        try:
            return self.read(name, instruct, method)
        except UnknownVoice:
            alias = self.aliases().get(name.strip().casefold())
            if alias is None:
                raise
        return self.named(alias, instruct)

    def blend(self, text: str, method: Method = "linear") -> Blend:
        """A written blend of named voices."""
        parts = tuple((self._part(name), weight) for name, weight in parse_blend(text))
        return Blend(parts, method)

    def refusal(self, name: str) -> Message:
        """Why this voice takes no instruction; empty where it takes one."""
        if name.casefold() not in {own.casefold() for own in self.speakers()}:
            return NO_INSTRUCTION
        holders = (own for own in self._capabilities if _has(own, name))
        able = any(own.instruct for own in holders)
        return Message("") if able else Message("This model follows no instructions.")

    def stranger(self, voice: Voice) -> Message:
        """What to know of a voice whose own model cannot speak it here; else empty."""
        if not isinstance(voice, Clone) or is_native(voice, self._models):
            return Message("")
        if not self._speakable(voice):
            return Message(
                "It was made with {model}. No model here can speak it.", model=voice.model
            )
        return Message(
            "It was made with {model}, which cannot speak it here. Another model does, "
            "and may sound different.",
            model=voice.model,
        )

    def _speaker(self, name: str) -> str | None:
        wanted = name.strip().casefold()
        return next((own for own in self.speakers() if own.casefold() == wanted), None)

    def _written(self, own: SavedVoice) -> str:
        """Its name in a blend; its id where the name has marks."""
        return f"#{own.id}" if MARKS & set(own.name) else own.name

    def _find(self, name: str) -> SavedVoice | None:
        """By its name; else by its id, which may be the name of another voice."""
        wanted = name.strip().casefold()
        named = (own for own in self._library.list() if own.name.casefold() == wanted)
        return next(named, None) or self._library.find(name)

    def _rewritten(self, text: str, part: Callable[[str], str]) -> str:
        """A written blend with other names for its parts; what is none stays as it is."""
        if not MARKS & set(text):
            return text
        try:
            parts = parse_blend(text)
        except InvalidSetting:
            return text
        return "+".join(f"{part(name)}({weight:.6g})" for name, weight in parts)

    def _part(self, name: str) -> Preset | Clone:
        voice = self.named(name)
        if isinstance(voice, Preset | Clone):
            return voice
        raise InvalidSetting("'{name}' is a designed voice, which cannot be blended.", name=name)

    def _speakable(self, voice: Clone | Design) -> bool:
        if isinstance(voice, Design):
            return any(own.design for own in self._capabilities)
        takes = (own for own in self._capabilities if own.clone or own.preset)
        return any(own.width == len(voice.vector) for own in takes)

    def _dialect(self, name: str) -> str:
        tables = (own.dialects for own in self._capabilities)
        return next((each[name].replace("_", " ") for each in tables if name in each), "")

    def _there(self) -> Message:
        names = [choice.name for choice in self.list()]
        if not names:
            return Message("There is none yet.")
        return Message("There are: {names}.", names=", ".join(names[:40]))


def _saved(own: SavedVoice) -> Choice:
    kind: Literal["saved", "design"] = "design" if isinstance(own.voice, Design) else "saved"
    return Choice(own.name, kind, own.card.note, f"#{own.id}")


def _has(own: Capabilities, name: str) -> bool:
    return name.casefold() in {speaker.casefold() for speaker in own.speakers}
