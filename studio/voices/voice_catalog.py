"""Resolves typed or picked names to voices. Shared by API, command line and page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from typing import Final, Literal, TypeAlias

from engine import (
    Blend,
    Capabilities,
    Clone,
    Design,
    InvalidSetting,
    Library,
    Message,
    Mood,
    Mooded,
    NotCapable,
    Preset,
    SavedVoice,
    UnknownVoice,
    Voice,
    check_strength,
    folded,
    is_native,
    parse_blend,
)
from studio.voices.foreign_names import Traits, foreign_name, stand_in, stand_ins, traits_of
from studio.voices.moods import Moods
from studio.voices.speaker_notes import described

MARKS = frozenset("+,:()")  # names with these are written as ids in a blend
BLEND_MARKS = "+,(:"  # a name with one of these is a written blend
LISTED = 60  # saved voices in a menu, and voices that a search finds
Method: TypeAlias = Literal["linear", "spherical"]
PHRASE: Final = "Hello! This is how I sound when I read something to you."  # tries a voice
NO_INSTRUCTION = Message("Saved voices can't follow style instructions. Clear that field.")


@dataclass(frozen=True)
class Choice:
    """A voice that can be picked."""

    name: str
    kind: Literal["preset", "saved", "design"]
    note: str = ""
    key: str = ""  # what is stored of it; unchanged by a rename
    written: str = ""  # its name in a blend

    @property
    def label(self) -> str:
        """The shown name: speakers with a capital, saved voices as written."""
        return self.name.capitalize() if self.kind == "preset" else self.name


@dataclass(frozen=True)
class Menu:
    """The voices that a menu lists."""

    voices: tuple[Choice, ...]
    complete: bool  # there are no others


class Choices:
    """All available voices: speakers of the checkpoints, and saved ones."""

    def __init__(self, capabilities: Mapping[str, Capabilities], library: Library) -> None:
        self._models = capabilities
        self._capabilities = tuple(capabilities.values())
        self._library = library
        self.moods = Moods(capabilities, library)

    def list(self) -> tuple[Choice, ...]:
        """Speakers first, then saved voices that these checkpoints can speak."""
        return (*self._presets(), *map(_choice, self._saved()))

    def menu(
        self,
        words: str = "",
        also: Iterable[str] = (),
        blends: bool = False,
        as_long: bool = False,
    ) -> Menu:
        """All voices (`blends`: that can be blended), unless many are saved.

        Then the built-in and the newest, or those with `words` in their names. `also`: names or
        keys of voices that are selected, and thus listed in any case. `as_long`: after those found
        come others, until the list is as long as without words. A menu that shows by itself what
        fits would draw a shorter list by its old one's numbers.
        """
        saved = self._blendable() if blends else self._saved()
        if sum(not each.built_in for each in saved) <= LISTED:
            return Menu((*self._presets(), *map(_choice, saved)), complete=True)
        selected, wanted = {self.key(name) for name in also}, folded(words.strip())
        if not wanted:
            return Menu(self._newest(saved, selected), complete=False)
        found = self._fitting(saved, selected, wanted)
        if as_long:
            newest = self._newest(saved, selected)
            others = (each for each in newest if each not in found)
            found = (*found, *others)[: max(len(found), len(newest))]
        return Menu(found, complete=False)

    def _newest(self, saved: Iterable[SavedVoice], selected: set[str]) -> tuple[Choice, ...]:
        """Speakers, built-in voices, the newest and the selected."""
        made = (each for each in saved if not each.built_in)
        newest = nlargest(LISTED, made, key=lambda each: each.card.created)
        keys = selected | set(map(_key, newest))
        listed = (each for each in saved if each.built_in or _key(each) in keys)
        return (*self._presets(), *map(_choice, listed))

    def _fitting(
        self, saved: Iterable[SavedVoice], selected: set[str], wanted: str
    ) -> tuple[Choice, ...]:
        """Voices whose names contain `wanted`, folded, and the selected one."""
        found = _found(saved, wanted)[:LISTED]
        presets = (
            each for each in self._presets() if wanted in folded(each.name) or each.key in selected
        )
        others = selected - set(map(_key, found))
        kept = (each for each in saved if _key(each) in others)
        return (*presets, *map(_choice, (*found, *kept)))

    def key(self, name: str) -> str:
        """The key to store for a voice or a written blend; unknown names are unchanged."""
        bare = name.strip()
        if speaker := self._speaker(bare):
            return speaker
        if saved := self._library.find(bare):
            return f"#{saved.id}"
        return self._rewritten(bare, self.key)

    def shown(self, key: str) -> str:
        """The current name of a stored key; empty if the voice is deleted."""
        if speaker := self._speaker(key):
            return speaker.capitalize()
        if saved := self._library.find(key):
            return saved.name
        gone = key.startswith("#") and not MARKS & set(key)
        return "" if gone else self._rewritten(key, lambda part: self.shown(part) or part)

    def is_speaker(self, name: str) -> bool:
        return self._speaker(name) is not None

    def speakers(self) -> tuple[str, ...]:
        every = (name for model in self._capabilities if model.preset for name in model.speakers)
        return tuple(dict.fromkeys(every))

    def example(self) -> str:
        """An example of a written blend."""
        names = self.speakers()
        if len(names) < 2:
            names = (*names, *map(_written, self._blendable()), "one", "another")
        return f"{names[0]}(2)+{names[1]}(1)"

    def models(self, able: Callable[[Capabilities], bool]) -> tuple[str, ...]:
        """The names of checkpoints with an ability."""
        return tuple(name for name, model in self._models.items() if able(model))

    def languages(self) -> tuple[str, ...]:
        every = (name for model in self._capabilities for name in model.languages)
        return ("auto", *dict.fromkeys(every))

    def named(self, name: str, instruct: str = "") -> Voice:
        """A speaker, or a saved voice by name or id. Raises UnknownVoice with a list."""
        if speaker := self._speaker(name):
            return Preset(speaker, instruct)
        saved = self._library.find(name)
        if saved is None:
            raise UnknownVoice(
                "No voice is called '{name}'. {there}", name=name[:80], there=self._there()
            )
        if instruct.strip():
            raise InvalidSetting(NO_INSTRUCTION)
        return saved.voice

    def default(self, instruct: str = "") -> Voice:
        """The default voice."""
        if self.speakers():
            return Preset(self.speakers()[0], instruct)
        if any(model.design for model in self._capabilities):
            return Design(instruct.strip() or "A calm, clear voice.")
        raise NotCapable(
            "This model has no preset voices. Make one under Clone, or give --reference FILE."
        )

    def read(self, name: str, instruct: str = "", method: Method = "linear") -> Voice:
        """A named voice, a written blend, or without a name the default."""
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

    def aliases(self) -> Mapping[str, str]:
        """Voices of other services and the voice here that each stands for; names that are here
        are left out. They stand for preset speakers, or without any for saved voices."""
        return stand_ins(tuple(self._targets().items()))

    def alias(self, name: str) -> str | None:
        """The voice that a name or an id of another service stands for."""
        wanted = foreign_name(name)
        if wanted is None:
            return None
        return self._speaker(wanted) or stand_in(wanted, self._targets(), self.aliases())

    def unlike(self, name: str) -> str:
        """The voice that a foreign name stands for although its sex is another or not known;
        empty if it is like it, and for voices that are here."""
        if foreign_name(name) is None or (other := self.standing(name)) == name:
            return ""
        return "" if self.is_like(other, name) else other

    def is_like(self, other: str, name: str) -> bool:
        """Whether a voice here has the sex of the foreign voice for which it stands."""
        return self._targets()[other].sex == traits_of(foreign_name(name) or name).sex

    def stand_in(self, name: str) -> str | None:
        """The speaker that a name of another service stands for, unless a saved voice has the
        name: the library is not asked."""
        return self.alias(name) if self.speakers() else None

    def knows(self, name: str) -> bool:
        """Whether it is the name of a voice, here or elsewhere."""
        return bool(foreign_name(name) or self._speaker(name) or self._library.find(name))

    def standing(self, name: str) -> str:
        """The name of the voice that speaks where this name is written."""
        if self._speaker(name) or self._library.find(name):
            return name
        return self.alias(name) or name

    def requested(self, name: str, instruct: str = "", method: Method = "linear") -> Voice:
        """A request's voice: as `read`, or a voice of another service."""
        try:
            return self.read(name, instruct, method)
        except UnknownVoice:
            alias = self.alias(name)
            if alias is None:
                raise
        return self.named(alias, instruct)

    def blend(self, text: str, method: Method = "linear") -> Blend | Mooded:
        """A written blend of named voices, with moods: `anna:2+robert+glad:0.5`."""
        parts: list[tuple[Preset | Clone, float]] = []
        moods: list[tuple[Mood, float]] = []
        for name, weight in parse_blend(text):
            if mood := self.mood_of(name):
                moods.append((mood, check_strength(weight)))
            else:
                parts.append((self._part(name), weight))
        if not parts:
            raise InvalidSetting("Name a voice for the mood, like anna+glad:0.5.")
        if not moods:
            return Blend(tuple(parts), method)
        alone = parts[0][0] if len(parts) == 1 else None
        return Mooded(alone or Blend(tuple(parts), method), tuple(moods))

    def blend_parts(self, text: str) -> Sequence[str]:
        """The names of the voices that a written blend is made of."""
        names = [name for name, _ in parse_blend(text) if not self.mood_of(name)]
        return [self.standing(name) for name in names]

    def mood_of(self, name: str) -> Mood | None:
        """The mood that a part of a written blend names: no voice has the name."""
        if self._speaker(name) or self._library.find(name):
            return None
        return self.moods.find(name)

    def refusal(self, name: str) -> Message:
        """Why this voice follows no instruction; empty if it does."""
        if not self._speaker(name):
            return NO_INSTRUCTION
        holders = (model for model in self._capabilities if _has(model, name))
        able = any(model.instruct for model in holders)
        return Message("") if able else Message("This model follows no instructions.")

    def stranger(self, voice: Voice) -> Message:
        """A note about a voice whose own model is not here; otherwise empty."""
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

    def _targets(self) -> Mapping[str, Traits]:
        """The voices that other services' names can stand for."""
        return self._preset_targets or _traits(self.list())

    @cached_property
    def _preset_targets(self) -> Mapping[str, Traits]:
        return _traits(self._presets())

    def _presets(self) -> Iterator[Choice]:
        for name in self.speakers():
            note = described(name) or self._dialect(name)
            yield Choice(name, "preset", note, name, name)

    def _saved(self) -> Sequence[SavedVoice]:
        """Saved voices that these checkpoints can speak."""
        return [saved for saved in self._library.list() if self._speakable(saved.voice)]

    def _blendable(self) -> Sequence[SavedVoice]:
        """Saved voices that can be blended; none has the name of a speaker."""
        taken = set(map(folded, self.speakers()))
        clones = (each for each in self._library.list() if isinstance(each.voice, Clone))
        return [each for each in clones if folded(each.name) not in taken]

    def blendable(self) -> Iterator[tuple[Choice, Preset | Clone, str]]:
        """All voices that a blend may have, the oldest first, each with the colour that it was
        given."""
        for preset in self._presets():
            yield preset, Preset(preset.name), ""
        for saved in sorted(self._blendable(), key=lambda each: (each.card.created, each.id)):
            assert isinstance(saved.voice, Clone)
            yield _choice(saved), saved.voice, saved.card.colour

    def _speaker(self, name: str) -> str | None:
        return self._spelt.get(folded(name.strip()))

    @cached_property
    def _spelt(self) -> Mapping[str, str]:
        """Speakers by their folded names."""
        return {folded(name): name for name in reversed(self.speakers())}

    def _rewritten(self, text: str, part: Callable[[str], str]) -> str:
        """A written blend with its parts' names replaced; other text is unchanged."""
        if not MARKS & set(text):
            return text
        try:
            parts = parse_blend(text)
        except InvalidSetting:
            return text
        return "+".join(f"{part(name)}({weight:.6g})" for name, weight in parts)

    def _part(self, name: str) -> Preset | Clone:
        voice = self.named(self.standing(name))
        if isinstance(voice, Preset | Clone):
            return voice
        raise InvalidSetting("'{name}' is a designed voice, which cannot be blended.", name=name)

    def _speakable(self, voice: Clone | Design) -> bool:
        if isinstance(voice, Design):
            return any(model.design for model in self._capabilities)
        if voice.trained:
            return is_native(voice, self._models)
        takes = (model for model in self._capabilities if model.clone or model.preset)
        return any(model.width == len(voice.vector) for model in takes)

    def _dialect(self, name: str) -> str:
        tables = (model.dialects for model in self._capabilities)
        return next((each[name].replace("_", " ") for each in tables if name in each), "")

    def _there(self) -> Message:
        names = [choice.name for choice in self.list()]
        if not names:
            return Message("There is none yet.")
        return Message("There are: {names}.", names=", ".join(names[:40]))


def _traits(voices: Iterable[Choice]) -> Mapping[str, Traits]:
    return {each.name: traits_of(each.name, each.note) for each in voices}


def _found(voices: Iterable[SavedVoice], wanted: str) -> Sequence[SavedVoice]:
    """Voices whose names contain `wanted`, folded; names that begin with it come first."""
    found = [choice for choice in voices if wanted in folded(choice.name)]
    return sorted(found, key=lambda choice: not folded(choice.name).startswith(wanted))


def _choice(saved: SavedVoice) -> Choice:
    kind: Literal["saved", "design"] = "design" if saved.card.kind == "design" else "saved"
    return Choice(saved.name, kind, saved.card.note, _key(saved), _written(saved))


def _key(saved: SavedVoice) -> str:
    return f"#{saved.id}"


def _written(saved: SavedVoice) -> str:
    """Its name in a blend; its id if the name has separators."""
    return _key(saved) if MARKS & set(saved.name) else saved.name


def _has(able: Capabilities, name: str) -> bool:
    return folded(name) in map(folded, able.speakers)
