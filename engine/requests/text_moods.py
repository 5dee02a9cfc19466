"""The voices of a text that names moods: which one each run is spoken with.

A mood that the voice's person was recorded in is spoken with that recording, any other with the
learned shift. Knows no prompts and no slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.errors import InvalidVoice
from engine.messages import Message
from engine.plan import Checkpoint
from engine.text.mood_tags import (
    InMood,
    MoodRun,
    mood_runs,
    unknown_tags,
    without_mood_tags,
    without_tags,
)
from engine.types import Blend, Clone, Design, Mooded, Preset, SpeechRequest, Voice
from engine.voices.instructions import understood
from engine.voices.mood import check_strength
from engine.voices.routing import route_voice

UNKNOWN = "Tags that name no mood here are left out: {tags}."


class TextMoods:
    """The moods that one request's text may name."""

    def __init__(
        self, request: SpeechRequest, talker: str, checkpoints: Mapping[str, Checkpoint]
    ) -> None:
        self._request, self._talker, self._checkpoints = request, talker, checkpoints
        voice = request.voice
        self._base = voice.voice if isinstance(voice, Mooded) else voice
        self._recorded = recorded_moods(self._base)
        self._voices: dict[InMood, Preset | Clone | Design] = {}
        self._used: dict[str, bool] = {}  # mood: whether it was recorded
        self._left_out = False
        self._unknown: tuple[str, ...] = ()  # names in tags

    @property
    def known(self) -> frozenset[str]:
        """The names that tags may have."""
        return frozenset((*self._request.moods, *self._recorded))

    def runs(self) -> list[MoodRun]:
        """The text's runs, each in one mood."""
        text = self._request.text
        if self._request.ignore_end:
            return [MoodRun(text)]
        unknown = unknown_tags(text, self.known)
        self._unknown = tuple(unknown.values())
        return mood_runs(without_tags(text, unknown), self.known, self._request.language)

    def voice(self, spoken: InMood) -> Preset | Clone | Design:
        """The voice in a mood, for the request's checkpoint."""
        if spoken not in self._voices:
            wanted = self._wanted(spoken)
            routed = route_voice(wanted, self._checkpoints, self._talker)
            able = self._checkpoints[self._talker].capabilities
            self._voices[spoken] = understood(routed.voice, able)[0]
        return self._voices[spoken]

    @property
    def notices(self) -> tuple[Message, ...]:
        """Which moods were recorded, which are learned, and which are unknown."""
        unknown = (Message(UNKNOWN, tags=", ".join(self._unknown)),) if self._unknown else ()
        if self._left_out:
            notice = "Moods in the text are left out: this voice has a style instruction."
            return (*unknown, Message(notice))
        kinds = (
            Message("{mood} (its own recording)", mood=mood)
            if recorded
            else Message("{mood} (learned)", mood=mood)
            for mood, recorded in self._used.items()
        )
        listed = Message.listed(kinds)
        used = (Message("Moods in this text: {moods}.", moods=listed),) if listed else ()
        return (*unknown, *used)

    def _wanted(self, spoken: InMood) -> Voice:
        strength = check_strength(1.0 if spoken.strength is None else spoken.strength)
        if isinstance(self._base, Preset) and self._base.instruct.strip():
            self._left_out = True
            return self._request.voice
        if not strength:
            return self._base
        if (reference := self._reference(spoken.mood)) is not None:
            self._used[spoken.mood] = True
            return reference
        mood = self._request.moods[spoken.mood]
        self._used[mood.name] = False
        if not isinstance(self._base, Preset | Clone | Blend):
            raise InvalidVoice(
                "A voice that is only described has no vector for a mood to move. Listen to it "
                "under Design and keep it: then it has."
            )
        return Mooded(self._base, ((mood, strength),))

    def _reference(self, name: str) -> Clone | None:
        """The person's own recording in a mood, by any of the mood's names."""
        mood = self._request.moods.get(name)
        names = {name, *(map(str.casefold, (mood.name, *mood.words)) if mood else ())}
        return next((self._recorded[each] for each in self._recorded if each in names), None)


def said_text(request: SpeechRequest) -> str:
    """The request's text without the tags of its moods."""
    voice = request.voice
    recorded = recorded_moods(voice.voice if isinstance(voice, Mooded) else voice)
    return without_mood_tags(request.text, {*request.moods, *recorded})


def recorded_moods(voice: Voice) -> Mapping[str, Clone]:
    """Recordings of a voice's person, by mood in small letters."""
    if not isinstance(voice, Clone) or not voice.references:
        return {}
    return {
        mood.casefold(): replace(reference, references=()) for mood, reference in voice.references
    }
