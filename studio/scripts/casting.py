"""The cast: voice keys by speaker.

The caller resolves keys to voices. This module knows no library and no engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pydantic import Field

from engine import Message, UnknownVoice, Voice
from studio.scripts.model import Record

Resolve = Callable[[str], Voice]  # raises UnknownVoice


class Casting(Record):
    """Voices by speaker; all others have the default voice."""

    default: str = Field(max_length=200)
    voices: Mapping[str, str] = Field(default_factory=dict)
    digests: Mapping[str, str] = Field(default_factory=dict)  # of the voices as they were, by key

    def voice_of(self, speaker: str) -> str:
        """A speaker's voice; names are compared without case."""
        named = {name.casefold(): voice for name, voice in self.voices.items() if voice}
        return named.get(speaker.casefold(), self.default)

    def with_voice(self, speaker: str, voice: str) -> Casting:
        others = {k: v for k, v in self.voices.items() if k.casefold() != speaker.casefold()}
        return self.having(voices={**others, speaker: voice})

    def rekeyed(self, key: Callable[[str], str]) -> Casting:
        """The same cast with `key` applied to each voice."""
        voices = {speaker: key(voice) for speaker, voice in self.voices.items()}
        return self.having(default=key(self.default), voices=voices)


def resolve_cast(speakers: Iterable[str], casting: Casting, resolve: Resolve) -> dict[str, Voice]:
    """The voice of every speaker. Raises UnknownVoice naming all that have none."""
    voices: dict[str, Voice] = {}
    missing: list[Message] = []
    for speaker in speakers:
        try:
            voices[speaker] = resolve(casting.voice_of(speaker))
        except UnknownVoice as error:
            who = speaker or Message("the narrator")
            missing.append(Message("{who}: {why}", who=who, why=error.message))
    if missing:
        raise UnknownVoice(
            "Choose another voice for {missing}", missing=Message.listed(missing, between=" ")
        )
    return voices


def suggest(speakers: Sequence[str], voices: Mapping[str, str], default: str) -> Casting:
    """A first cast: the voice with the speaker's name, else another voice for each speaker.

    `voices`: keys by shown name.
    """
    by_name = {name.casefold(): voice for name, voice in voices.items()}
    named = {who: by_name[who.casefold()] for who in speakers if who.casefold() in by_name}
    taken = {*named.values(), default}
    spare = [voice for voice in voices.values() if voice not in taken]
    others = [who for who in speakers if who and who not in named]
    dealt = {who: spare[i % len(spare)] for i, who in enumerate(others)} if spare else {}
    return Casting(default=default, voices={**dealt, **named})
