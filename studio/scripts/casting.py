"""The cast: voice keys by speaker.

The caller resolves keys to voices. This module knows no library and no engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pydantic import Field

from engine import Design, InvalidSetting, Message, Preset, TimbreError, UnknownVoice, Voice
from studio.scripts.model import LONGEST_VOICE, Line, Record, Script
from studio.scripts.speaker_sex import Sex, speaker_sexes
from studio.voices.voice_catalog import BLEND_MARKS

Resolve = Callable[[str], Voice]  # raises UnknownVoice
MISSING: Final = Design("")  # stands for a deleted voice; never submitted
_OTHER: Final[Mapping[Sex, Sex]] = {"female": "male", "male": "female"}
_SEX = re.compile(r"\b(?:woman|girl|female|(man|boy|male))\b", re.IGNORECASE)


class Casting(Record):
    """Voices by speaker; all others have the default voice."""

    default: str = Field(max_length=LONGEST_VOICE)
    voices: Mapping[str, str] = Field(default_factory=dict)
    digests: Mapping[str, str] = Field(default_factory=dict)  # of the voices as they were, by key

    def voice_of(self, speaker: str) -> str:
        """A speaker's voice; names are compared without case."""
        return self.voices_of([speaker])[speaker]

    def voices_of(self, speakers: Iterable[str]) -> dict[str, str]:
        """The voices of many speakers, by speaker."""
        named = {name.casefold(): voice for name, voice in self.voices.items() if voice}
        return {who: named.get(who.casefold(), self.default) for who in speakers}

    def heard_in(self, line: Line) -> str:
        """The voice of a line's sound: of a locked one, the voice that it was made with."""
        return (line.locked and line.voice) or self.voice_of(line.speaker)

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
    for speaker, voice in casting.voices_of(speakers).items():
        try:
            voices[speaker] = resolve(voice)
        except UnknownVoice as error:
            who = speaker or Message("the narrator")
            missing.append(Message("{who}: {why}", who=who, why=error.message))
    if missing:
        raise UnknownVoice(
            "Choose another voice for {missing}", missing=Message.listed(missing, between=" ")
        )
    return voices


def found_voice(key: str, resolve: Resolve) -> Voice:
    """The voice of a key. A preset is known by name while its model is not loaded."""
    try:
        return resolve(key)
    except TimbreError:
        saved = key.startswith("#") or any(mark in key for mark in BLEND_MARKS)
        return MISSING if saved else Preset(key)


def found_cast(
    casting: Casting, speakers: Iterable[str], resolve: Resolve
) -> tuple[dict[str, Voice], dict[str, str]]:
    """The voice of each speaker, and the digests of those that are gone."""
    cast = casting.voices_of(speakers)
    voices = {who: found_voice(key, resolve) for who, key in cast.items()}
    gone = [who for who, voice in voices.items() if voice is MISSING]
    return voices, {who: casting.digests.get(cast[who], "") for who in gone}


def suggest(
    script: Script, voices: Mapping[str, str], default: str, notes: Mapping[str, str] | None = None
) -> Casting:
    """A first cast: the voice with the speaker's name, else another voice for each speaker.

    `voices`: keys by shown name. `notes`: descriptions by key; a woman gets a voice that is
    described as one where there is one, and so does a man. Speakers of whom nothing is
    known alternate between the sexes, so that a listener can distinguish two of them.
    """
    speakers = [who for who in script.speakers if who]
    by_name = {name.casefold(): voice for name, voice in voices.items()}
    cast = {who: by_name[who.casefold()] for who in speakers if who.casefold() in by_name}
    uses = {voice: 0 for voice in voices.values() if voice not in {*cast.values(), default}}
    described = {
        voice: _described_sex((notes or {}).get(voice, "")) for voice in (*uses, *cast.values())
    }
    sexes = speaker_sexes(script)
    wanted = _alternating(speakers, sexes, {who: described[voice] for who, voice in cast.items()})
    # Speakers of known sex get their voices first.
    for who in sorted(speakers, key=lambda each: each not in sexes):
        if who not in cast and uses:
            fitting = [voice for voice in uses if described[voice] == wanted[who]]
            vague = [voice for voice in uses if fitting and described[voice] is None]
            cast[who] = min([*fitting, *vague] or uses, key=uses.__getitem__)
            uses[cast[who]] += 1
    return Casting(default=default, voices=cast)


def _alternating(
    speakers: Sequence[str], known: Mapping[str, Sex], cast: Mapping[str, Sex | None]
) -> dict[str, Sex]:
    """A sex for everybody: who is not known has the other one than the speaker before, and at the
    beginning than the speaker after."""
    sexes = [known.get(who) or cast.get(who) for who in speakers]
    place, sex = next(((place, sex) for place, sex in enumerate(sexes) if sex), (0, "female"))
    before: Sex = sex if place % 2 else _OTHER[sex]
    found: dict[str, Sex] = {}
    for who, sex_of in zip(speakers, sexes, strict=True):
        before = found[who] = sex_of or _OTHER[before]
    return found


def _described_sex(note: str) -> Sex | None:
    """The sex of a voice by its description."""
    found = {"male" if each[1] else "female" for each in _SEX.finditer(note)}
    return ("male" if "male" in found else "female") if len(found) == 1 else None


def read_cast(text: str, default: str) -> Casting:
    """`Anna = clara`, one a line or with commas between."""
    pairs = [entry.partition("=") for entry in re.split(r"[\n,]", text) if entry.strip()]
    wrong = next((name for name, sign, voice in pairs if not sign or not voice.strip()), None)
    if wrong is not None:
        raise InvalidSetting(
            "Write the cast as `Anna = clara`, not {wrong!r}.", wrong=wrong.strip()[:60]
        )
    voices = {name.strip(): voice.strip() for name, _, voice in pairs}
    return Casting(default=default, voices=voices)
