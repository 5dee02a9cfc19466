"""Converts filled-in fields to a request, and to a take's card and back.

The Speak tab, the endpoints and regeneration share it. It knows no components.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from engine import (
    FRAME_SECONDS,
    Blend,
    EarlyStart,
    InvalidSetting,
    RequestError,
    SamplingParams,
    SpeechEngine,
    SpeechRequest,
    checked,
    recorded_moods,
)
from studio.scripts.text.cues import cues_of, said_of, unknown_moods
from studio.scripts.text.pieces import pieces_of
from studio.takes.joined_stream import JoinedStream, PacedStream, Part
from studio.takes.live_take import Stream
from studio.takes.take_store import Take, random_seed
from studio.voices.moods import split_mood
from studio.voices.voice_catalog import Choices

SPEEDS = (0.5, 2.0)
MAX_PIECES = 60  # of a text, between its pauses and cues


@dataclass(frozen=True)
class SpeechForm:
    """The fields of one press of Speak."""

    text: str
    voice: str = ""  # a name, or a blend like robert(2)+clara(1); empty: the model's default
    language: str = "auto"
    instruct: str = ""
    seed: int | None = None
    sampling: SamplingParams = field(default_factory=SamplingParams)
    longest: float | None = None  # seconds
    speed: float = 1.0
    spellings: str = ""  # a pronunciation list
    early_start: EarlyStart = "off"
    mood: str = ""  # put on the voice
    strength: float = 1.0  # of the mood
    method: Literal["linear", "spherical"] = "linear"  # of a blend
    model: str = ""  # empty: the voice picks it

    def request(self, choices: Choices, live: bool = True) -> SpeechRequest:
        """Raises RequestError."""
        voice = choices.requested(self.voice, "" if self.mood else self.instruct)
        if isinstance(voice, Blend):
            voice = replace(voice, method=self.method)
        return SpeechRequest(
            text=self.text,
            voice=choices.moods.put_on(voice, self.mood, self.strength),
            language=self.language or "auto",
            sampling=self.sampling,
            seed=self.seed,
            max_frames=_frames(self.longest),
            live=live,
            early_start=self.early_start,
            model=self.model or None,
            moods=choices.moods.in_text(self.text),
        )

    def submit(self, engine: SpeechEngine, choices: Choices) -> Stream:
        """Have it spoken: at its speed, with its pauses. Raises RequestError."""
        stream = self._submit(engine, choices)
        return stream if self.speed == 1 else PacedStream(stream, self.speed)

    def said(self, choices: Choices) -> str:
        """What is heard of the text: no cues, no tags of moods."""
        return said_of(self.text, self._moods(choices))

    def dropped(self, choices: Choices) -> tuple[str, ...]:
        """Cues in the text that its voice cannot follow."""
        return () if self._follows(choices) else cues_of(self.text, self._moods(choices))

    def unknown(self, choices: Choices) -> tuple[str, ...]:
        """Tags in the text that name no mood, and are left out."""
        return tuple(unknown_moods(self.text, self._moods(choices)).values())

    def _moods(self, choices: Choices) -> Collection[str]:
        """What tags in the text may name: the library's moods, and recordings of the person."""
        moods: Collection[str] = choices.moods.in_text(self.text)
        with suppress(RequestError):  # told where it is spoken
            moods = {*moods, *recorded_moods(choices.requested(self.voice))}
        return moods

    def _submit(self, engine: SpeechEngine, choices: Choices) -> Stream:
        if not SPEEDS[0] <= self.speed <= SPEEDS[1]:
            raise InvalidSetting("The speed goes from {low} to {high}.", low=0.5, high=2)
        pieces = pieces_of(self.text, self.spellings, self._moods(choices))
        if len(pieces) > MAX_PIECES:
            raise InvalidSetting(
                "The text has more than {most} pauses and cues. Use the Script tab.",
                most=MAX_PIECES,
            )
        if len(pieces) == 1 and not pieces[0].cues:
            whole = replace(self, text=pieces[0].text or self.text)
            return engine.submit(whole.request(choices))
        seed = random_seed() if self.seed is None else self.seed
        follows = self._follows(choices)
        parts: list[Part] = []
        for piece in pieces:
            instructions = [self.instruct.strip(), *piece.cues] if follows else [self.instruct]
            instruct = ", ".join(filter(None, instructions))
            form = replace(self, text=piece.text, instruct=instruct, seed=seed)
            parts.append((form.request(choices) if piece.text else None, piece.pause))
        return JoinedStream(engine, parts)

    def _follows(self, choices: Choices) -> bool:
        name = self.voice.strip() or next(iter(choices.speakers()), "")
        return not choices.refusal(name)

    def settings(self) -> dict[str, Any]:
        """The settings on a take's card besides text, voice and seed."""
        chosen = self.sampling.model_dump(exclude_defaults=True)
        return {
            "language": self.language,
            "instruct": self.instruct,
            "sampling": chosen,
            "longest": self.longest,
            "speed": None if self.speed == 1 else self.speed,
            "pronunciation": self.spellings.strip(),
            "mood": f"{self.mood}:{self.strength:g}" if self.mood else "",
            "interpolation": "" if self.method == "linear" else self.method,
            "model": self.model,
        }


def asked_for(take: Take) -> SpeechForm:
    """The form that generates a take again."""
    known: Mapping[str, Any] = take.settings
    mood, strength = split_mood(str(known.get("mood") or ""))
    return SpeechForm(
        text=take.text,
        voice=take.voice_key or take.voice,
        language=str(known.get("language") or "auto"),
        instruct=str(known.get("instruct") or ""),
        seed=take.seed,
        sampling=checked(SamplingParams, **(known.get("sampling") or {})),
        longest=known.get("longest"),
        speed=float(known.get("speed") or 1),
        spellings=str(known.get("pronunciation") or ""),
        mood=mood,
        strength=strength,
        method="spherical" if known.get("interpolation") == "spherical" else "linear",
        model=str(known.get("model") or ""),
    )


def named_now(takes: Iterable[Take], choices: Choices) -> list[Take]:
    """Takes with the current names of their voices."""
    called = voice_names(choices)
    return [take.model_copy(update={"voice": called(take)}) for take in takes]


def voice_names(choices: Choices) -> Callable[[Take], str]:
    """The current name of a take's voice; its old name if the voice is deleted."""
    shown = cache(choices.shown)
    return lambda take: shown(take.voice_key) or take.voice


def read_seed(written: str) -> int | None:
    """Parse a seed; None for an empty field."""
    digits = written.strip()
    if not digits:
        return None
    if not digits.isdecimal() or len(digits) > 18:
        raise InvalidSetting("The seed must be a whole number, or empty.")
    return int(digits)


def draw_seed() -> str:
    return str(random_seed())


def rounded(seconds: float) -> str:
    """An approximate duration as text."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def _frames(seconds: float | None) -> int | None:
    if seconds is None:
        return None
    if not 0 < seconds < math.inf:
        raise InvalidSetting("The length must be more than 0 seconds, or empty.")
    return max(1, round(seconds / FRAME_SECONDS))
